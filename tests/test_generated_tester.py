"""The tester of random programs is tested: what it makes, what it finds, what it shrinks."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError

from .generated.generate import generated
from .generated.judge import FAILED, LOOSE, REFUSED, RIGHT, Facts, Verdict, judge
from .generated.program import Program
from .generated.reference import ComplexMath, Plain
from .generated.shrink import shrunk
from .generated.worker import Worker

#: What programs hold, as a pattern of their text.
FEATURES = {
    "three loops": r"\n +for .*(\n .*)*\n {8,}for .*(\n .*)*\n {12,}for ",
    "carry rescaled": r"(\w+) = [\d.-]+ \* \1\n|(\w+) = \2 \* [\d.-]+\n",
    "swap": r"(\w+), (\w+) = \(\2, \1\)",
    "rotation": r"(\w+), (\w+), (\w+) = \(\2, \3, \1\)",
    "roll": r"(\w+) = np\.roll\(\1, ",
    "shift": r"np\.concatenate",
    "permutation": r"(\w+) = \1\[np\.array\(",
    "alias": r"\n +([a-z]\d*) = ([a-z]\d*)\n",
    "copy": r"\.copy\(\)",
    "element": r"\[i\d+ [+-] \d+\]",
    "mirrored element": r"\[-\d - i\d+\]",
    "periodic element": r"\[\(i\d+ \* \d \+ \w+\) % \d+\]",
    "stencil": r"\[1:-1\] \+= .*\[2:\] - .*\[:-2\]",
    "stride": r"\[\d*:\d*:2\]",
    "negative step": r"\[::-1\]",
    "view": r"\n +a\d+ = \w+\[",
    "transposed view": r"\n +[a-zA-Z]\d* = \w+\.T\n",
    "row": r"= [A-Z]\[[^,\]]*\]\n",
    "column": r"\[:, [^\]]*\]",
    "reshaped": r"\.reshape\(",
    "write through a view": r"\n +a\d+\[.*\] [*+-]?= ",
    "extent": r"\[:i\d+ \+ 1\]",
    "traced slice": r"\[(\w+):\1 \+ \d+\]",
    "while": r"\n +while t\d+ > ",
    "break": r"\n +break\n",
    "continue": r"\n +continue\n",
    "early return": r"\n {8,}return ",
    "elif": r"\n +elif ",
    "ternary": r" if .* else ",
    "helper": r"\ndef h1\(",
    "nested function": r"\n {4,}def f\d+\(",
    "nonlocal": r"\n +nonlocal ",
    "scan": r"ckad\.scan\(",
    "fori_loop": r"ckad\.fori_loop\(",
    "while_loop": r"ckad\.while_loop\(",
    "cond": r"ckad\.cond\(",
    "list": r"\.append\(",
    "mask": r"\n +(\w+)\[\1 [<>]=? .*\] [*+]?= ",
    "where": r"np\.where\(",
    "reduction": r"np\.(sum|max|mean|min|dot)\(",
    "norm": r"np\.linalg\.norm\(",
    "matmul": r" @ ",
    "clip": r"np\.clip\(",
    "enumerate": r"in enumerate\(",
    "zip": r"in zip\(",
    "backwards": r"range\(\d+, \d+, -1\)|reversed\(range",
    "triangular": r"in range\(i\d+",
    "constant condition": r"(if|and|or|elif) (not )?\(?FLAG",
    "out=": r", out=\w+\)",
    "large": r"(?<!\d)(4097|20001)(?!\d)",
}


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    return [generated(seed) for seed in range(600)]


def test_programs_have_every_feature(programs: list[Program]) -> None:
    missing = [
        name
        for name, pattern in FEATURES.items()
        if not any(re.search(pattern, p.text) for p in programs)
    ]
    assert not missing


def test_a_seed_gives_one_program(checkout: Path) -> None:
    code = "from tests.generated.generate import generated; print(generated(17))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=checkout,
            env={"PYTHONPATH": str(Path(ckad.__file__).parents[1]), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert texts == {f"{generated(17)}\n"}


def test_numpy_runs_every_program(programs: list[Program]) -> None:
    facts = [Facts(p) for p in programs[:200]]
    assert sum(f.is_steady for f in facts) > 170
    assert max(abs(f.value) for f in facts) < 1e5


def test_the_derivative_is_that_of_differences(programs: list[Program]) -> None:
    """What is held against ckad does not come from it."""
    compared = 0
    for program in programs[200:260]:
        plain, directions = Plain(program), program.directions()
        derivative, margin = plain.derivative(directions)
        if margin < 1e-4:
            continue
        h, arguments = 1e-6, program.arguments()
        above, below = (
            plain.at([x + t * d for x, d in zip(arguments, directions, strict=True)])
            for t in (h, -h)
        )
        assert abs((above - below) / (2 * h) - derivative) < 1e-5 * max(1.0, abs(derivative))
        compared += 1
    assert compared > 20


EFFECTS = """\
import ckad
import numpy as np

def raised(x):
    x[1:] += x[0]
    return 0.9

def program(u, k):
    if 0.5 < raised(u) < 0.6:
        return 0.0
    _, ys = ckad.scan(lambda carry, x: (carry, carry), 0.5, u)
    ys[0] = u[2] ** 2
    return np.sum(u) + np.sum(ys)
"""


def test_the_derivative_is_that_of_what_is_done_once() -> None:
    """Operands with side effects, and arrays of a scan that hold no derivative at first."""
    program = PROGRAM._replace(text=EFFECTS)
    (u, _), (d, _) = program.arguments(), program.directions()
    expected = np.sum(d) + (np.size(u) - 1) * d[0] + 2 * (u[2] + u[0]) * (d[2] + d[0])
    derivative, _ = Plain(program).derivative(program.directions())
    assert derivative == pytest.approx(expected, rel=1e-13)
    assert judge(program) == Verdict(RIGHT)


# --- what it finds -------------------------------------------------------------------------------

TEXT = """\
import numpy as np

def program(u, k):
    s = 0.3
    for i in range(12):
        s = 0.5 * s + u[i % 5] * k
        u = 0.9 * u + 0.1 * np.sin(s + u)
    return np.sum(u * np.cos(np.arange(5.0))) + s
"""
PROGRAM = Program(TEXT, ((5,), None), seed=12)

Change = Callable[[dict[str, Any], list[Any], Any], Any]


class Planted:
    """What `ckad.value_and_grad` gives, its results changed."""

    def __init__(self, made: Any, options: dict[str, Any], change: Change) -> None:
        self.made, self.options, self.change = made, options, change

    def __call__(self, *args: Any) -> Any:
        return self.change(self.options, list(args), self.made(*args))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], Verdict]:
    """The verdict on a program, with a fault of ckad's."""
    make = ckad.value_and_grad

    def verdict(change: Change) -> Verdict:
        def changed(fun: Any, argnums: Any = 0, **options: Any) -> Planted:
            return Planted(make(fun, argnums, **options), {"argnums": argnums, **options}, change)

        monkeypatch.setattr(ckad, "value_and_grad", changed)
        return judge(PROGRAM)

    return verdict


def scaled(result: Any, factor: float) -> Any:
    value, gradient = result
    if not isinstance(gradient, tuple):
        return value, gradient * factor
    return value, tuple(g * factor for g in gradient)


def where(test: Callable[[dict[str, Any]], bool], factor: float = 1 + 1e-15) -> Change:
    """Gradients a bit larger where a test of the options holds."""
    return lambda options, args, result: scaled(result, factor) if test(options) else result


def wrong_value(options: dict[str, Any], args: list[Any], result: Any) -> Any:
    return (result[0] + 1e-6, result[1]) if options["engine"] == "native" else result


def written(options: dict[str, Any], args: list[Any], result: Any) -> Any:
    args[0][0] = 0.5
    return result


def raising(options: dict[str, Any], args: list[Any], result: Any) -> Any:
    raise KeyError("internal")


def counting() -> Change:
    calls: Iterator[int] = iter(range(1000))

    def change(options: dict[str, Any], args: list[Any], result: Any) -> Any:
        native = options["engine"] == "native"
        return scaled(result, 1 + 1e-15) if native and next(calls) else result

    return change


FAULTS: dict[str, Change] = {
    "transpose, vm": where(lambda options: options["engine"] == "vm", 1 + 1e-6),
    "engines": where(lambda options: options["engine"] == "native", 1 + 1e-6),
    "value, native": wrong_value,
    "arguments, vm": written,
    "error, vm gradient": raising,
    "second call": counting(),
    "budget, native": where(lambda options: "memory" in options),
    "schedule, native": where(lambda options: "schedule" in options),
    "threads": where(lambda options: options["threads"] == 2),
    "single argument, vm": where(lambda options: isinstance(options["argnums"], int), 1 + 1e-6),
}


@pytest.mark.parametrize("oracle", FAULTS)
def test_faults_are_found(oracle: str, planted: Callable[[Change], Verdict]) -> None:
    assert planted(FAULTS[oracle])[:2] == (FAILED, oracle)


def test_a_wrong_tangent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ckad.jvp

    def wrong(*args: Any, **options: Any) -> Any:
        value, tangent = right(*args, **options)
        return value, tangent * (1 + 1e-6)

    monkeypatch.setattr(ckad, "jvp", wrong)
    assert judge(PROGRAM)[:2] == (FAILED, "forward")


def test_without_a_fault_it_is_right() -> None:
    assert judge(PROGRAM) == Verdict(RIGHT)


def test_a_refusal_has_to_name_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, outcome in ((f"{PROGRAM.file}:3: ", REFUSED), ("", FAILED)):

        def refuse(*args: Any, place: str = place, **options: Any) -> Any:
            raise AliasError(f"{place}what this array holds is not known here")

        monkeypatch.setattr(ckad, "value_and_grad", lambda *a, refuse=refuse, **o: refuse)
        assert judge(PROGRAM).outcome == outcome


def test_a_tie_is_noted() -> None:
    text = TEXT.replace(
        "range(12):", "range(12):\n        if u[1] - u[1] > 0.0:\n            break"
    )
    assert judge(PROGRAM._replace(text=text)) == Verdict(LOOSE)


# --- processes and shrinking ---------------------------------------------------------------------


def test_what_crashes_or_hangs_is_found() -> None:
    worker = Worker(seconds=1.0, patience=20.0)
    for body, oracle in (
        ("import os; os._exit(3)", "crash"),
        ("import ctypes; ctypes.string_at(0)", "crash"),
        ("while True: pass", "time"),
    ):
        verdict, _ = worker.judge(Program(f"def program(u):\n    {body}\n", ((3,),), 1))
        assert verdict[:2] == (FAILED, oracle), body
    worker.stop()


def test_failures_are_shrunk() -> None:
    def failing(program: Program, stage: str) -> Verdict:
        try:
            Facts(program)
        except Exception:
            return Verdict("invalid")
        rolls = "np.roll" in program.text and "for " in program.text
        return Verdict(FAILED if rolls else RIGHT, "planted" if rolls else "")

    seed = next(s for s in range(1000) if "= np.roll(u, 1)" in generated(s).text)
    program = generated(seed)
    small, verdict = shrunk(program, failing(program, ""), failing, seconds=20)
    assert verdict.oracle == "planted"
    # the function, its result, an argument; what remains needs at most five lines to fail
    assert small.n_lines <= 8, small.text


def test_the_reference_raises_what_python_s_math_does():
    math = ComplexMath()
    with pytest.raises(ValueError, match="math domain error"):
        math.sqrt(-0.3)
    with pytest.raises(ValueError, match="math domain error"):
        math.log(np.complex128(-1.0, 1e-30))
    assert math.floor(1.7) == 1
    assert np.imag(math.sqrt(np.complex128(4.0, 1e-30))) == 0.25e-30
