"""One program of tests/programs on larger arrays: ckad's value and gradient in turn.

Arguments: the program, "tiny" or "full", rounds, seconds of a turn, seconds after which it is given
up. Every axis of its arguments that is long enough gets as many elements more, so that axes which
belong together still do. The value is the sum of all results under fixed weights. Seconds are those
of a processor.
"""

import json
import signal
import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import optree

sys.path.insert(0, str(Path(__file__).parents[2]))

import ckad
from tests.programs import arguments
from tests.programs.oracles import Plain

#: How many elements more an axis gets, by the most axes that an argument has.
MORE = {1: 3000, 2: 120, 3: 24}
FEW_MORE = 12
#: Axes of fewer elements stay: three are the axes of space in one program, an extent in another.
SHORTEST = (3, 4, 5)

growth = {"more": 0, "shortest": SHORTEST[0]}


def grown(n):
    return n + growth["more"] if n >= growth["shortest"] else n


def growing(maker):
    """A maker of arguments whose shapes, or extents, are grown when it makes them."""

    def made(*extents, **options):
        def make(rng):
            return maker(*(tuple(map(grown, e)) if isinstance(e, tuple) else grown(e)
                           for e in extents), **options)(rng)  # fmt: skip

        return make

    return made


for name in ("drawn", "normal", "chances", "dominant", "positive", "distances", "increasing"):
    setattr(arguments, name, growing(getattr(arguments, name)))
arguments.signed = lambda *shapes: arguments.drawn(*shapes, low=-1.0)

from tests.programs.registry import PROGRAMS  # noqa: E402  (with the makers above)


def late(*_):
    raise TimeoutError("it takes too long")


def arrays_of(plain):
    return [x for x in optree.tree_leaves(plain.arguments) if isinstance(x, np.ndarray)]


def enlarged(program, more):
    """The program at larger arguments, at which NumPy runs it."""
    for growth["shortest"] in SHORTEST:
        growth["more"] = more
        try:
            plain = Plain(program)
            if all(np.isfinite(x).all() for x in plain.results):
                return plain
        except (ValueError, IndexError, KeyError):
            continue
    growth["more"] = 0
    return Plain(program)


def leaves(result):
    if isinstance(result, (tuple, list)):
        return [leaf for x in result for leaf in leaves(x)]
    if isinstance(result, dict):
        return [leaf for key in sorted(result) for leaf in leaves(result[key])]
    return [result]


def scalar(plain):
    """The program as a function to one number, which leaves its arguments as they are."""
    fun, returns = plain.program.function, plain.program.returns
    written = (returns,) if isinstance(returns, int) else returns
    rng = np.random.default_rng(0)
    weights = [rng.uniform(-1, 1, x.shape) for x in plain.results]

    def summed(*given):
        given = tuple([x.copy() if isinstance(x, np.ndarray) else x for x in given])
        result = fun(*given)
        if written is not None:
            result = tuple([given[k] for k in written])
        total, at = 0.0, 0
        for x in leaves(result):
            if np.asarray(x).dtype.kind == "f":
                total = total + np.sum(weights[at] * x)
                at += 1
        return total

    return summed


def seconds(call, turn):
    """The least time of as many calls as fill a turn."""
    end, found = perf_counter() + turn, []
    while not found or perf_counter() < end:
        start = process_time()
        call()
        found.append(process_time() - start)
    return min(found)


def measured(plain, rounds, turn):
    fun, given = scalar(plain), plain.arguments
    value = ckad.jit(fun, threads=1)
    gradient = ckad.value_and_grad(fun, plain.argnums, threads=1)
    for call in (value, gradient):
        call(*given)
    turns = {"value": [], "gradient": []}
    for _ in range(rounds):
        turns["value"].append(seconds(lambda: value(*given), turn))
        turns["gradient"].append(seconds(lambda: gradient(*given), turn))
    return {"size": max(x.size for x in arrays_of(plain)), "turns": turns}


def main(name, size, rounds, turn, limit):
    (program,) = (p for p in PROGRAMS if p.name == name)
    signal.signal(signal.SIGALRM, late)
    signal.alarm(int(float(limit)))
    try:
        ranks = [x.ndim for x in arrays_of(Plain(program))]
        more = MORE.get(max(ranks), FEW_MORE) if size == "full" else 1
        return measured(enlarged(program, more), int(rounds), float(turn))
    except Exception as error:  # whatever it is, it belongs into the table
        return {"error": type(error).__name__, "says": str(error)}
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
