"""One program of tests/wild: NumPy's run and ckad's gradient in turn; what a first call takes.

Arguments: the program, "tiny" or "full", rounds, seconds of a turn, seconds after which it is given
up. A program that ckad does not take has its error instead of figures.
"""

import contextlib
import io
import json
import signal
import sys
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import ckad
from tests.programs.oracles import Plain
from tests.wild.registry import PROGRAMS

TOLERANCE = 1e-6  # of the values: some of the programs are chaotic


def late(*_):
    raise TimeoutError("it takes too long")


def seconds(call, turn):
    """The mean time of as many calls as fill a turn."""
    start, n = perf_counter(), 0
    while not n or perf_counter() - start < turn:
        call()
        n += 1
    return (perf_counter() - start) / n


def cpu(call):
    """What it gives, and seconds of processors."""
    start = process_time()
    given = call()
    return given, process_time() - start


def measured(plain, rounds, turn):
    fun, arguments = plain.program.function, plain.arguments
    gradient = ckad.value_and_grad(fun, plain.argnums)
    _, record = cpu(lambda: ckad.trace(fun)(*arguments))
    (value, _), first = cpu(lambda: gradient(*arguments))
    if not np.isclose(value, plain.value, rtol=TOLERANCE):
        raise ValueError(f"ckad's value is {value}, NumPy's {plain.value}")
    second = seconds(lambda: gradient(*arguments), 0.0)
    _, again = cpu(lambda: gradient(*arguments))
    turns = {"numpy": [], "gradient": []}
    for _ in range(rounds):
        turns["numpy"].append(seconds(lambda: plain.run(plain.primals), turn))
        turns["gradient"].append(seconds(lambda: gradient(*arguments), turn))
    call = gradient.prepare(arguments, {})[0]
    found = {"turns": turns, "record": record, "compile": max(first - again, 0.0)}
    found |= {"second": second, "anew": call.anew, "rows": rows_of(call.recording.tape)}
    ckad.clear_caches()
    return found | {"record_warm": cpu(lambda: ckad.trace(fun)(*arguments))[1]}


def rows_of(tape):
    """How many there are, those of bodies among them."""
    return len(tape) + sum(map(rows_of, tape.bodies))


def main(name, size, rounds, turn, limit):
    (wild,) = (p for p in PROGRAMS if p.name == name)
    plain = Plain(wild.at(wild.small if size == "tiny" else wild.large))
    signal.signal(signal.SIGALRM, late)
    signal.alarm(int(float(limit)))
    try:
        return measured(plain, int(rounds), float(turn))
    except Exception as error:  # whatever it is, it belongs into the table
        return {"error": type(error).__name__, "says": str(error)}
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the programs print, and long ones are warned of
        figures = main(*sys.argv[1:])
    print(json.dumps(figures))
