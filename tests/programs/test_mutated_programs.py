"""Programs with random mistakes in them: the right gradient or an error, never another number.

An operator, a number, a name, a statement of a program is changed. What NumPy makes of the result
decides: where it raises, ckad has to raise; where it gives numbers, ckad gives the same ones with
their derivatives, or refuses with a `CkadError`.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import ckad
from ckad.trace.source.control import repetition

from .mutations import mutated
from .oracles import Arrays, Plain, copied, floats
from .program import Program
from .registry import PROGRAMS
from .test_programs import Differentiated, assert_dots, check_value, size

#: Mutants of one test; seconds that a mutant may take in NumPy, and in ckad.
MUTANTS, PLAIN_SECONDS, SECONDS = 8, 1, 60
#: What becomes of a mutant.
SAME, REFUSED, RAISES = "as in NumPy", "refused by ckad alone", "refused by NumPy"
NOT_COMPARED = "not compared"
#: Of the mutants of one test, which are the same at every run: most have none that is refused.
MOST_REFUSED, LEAST_COMPARED = 2, 4
#: What changes much over a small step has no derivative worth comparing; relative.
SMOOTH, CLOSE = 1e-6, 1e-5
#: Derivatives below this are rounding errors of larger terms that cancel; relative.
ROUNDING = 1e-13
#: Differences do not see that a bracket between doubles moves in steps.
STAIRS = "bisection"
#: Errors that Python's numbers raise, and NumPy's do not: arguments that are floats are traced.
OF_PYTHON = (ZeroDivisionError, OverflowError, AttributeError)


class TooLong(BaseException):
    """A mutant that runs on."""


@contextmanager
def seconds(n: int) -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(n)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def numbas_own() -> None:
    """Numba compiles its ``zeros`` once, by the ``np.empty`` that there is at that time."""
    numba.njit(lambda n: np.empty_like(np.zeros(n)))(1)


@pytest.fixture
def unset_is_nan(numbas_own: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results show whether a mutant reads elements of ``np.empty`` that it has not written."""

    def filled(make: Any) -> Any:
        def empty(*args: Any, **options: Any) -> Any:
            made = make(*args, **options)
            made.fill(np.nan if made.dtype.kind in "fc" else 7)
            return made

        return empty

    for name in ("empty", "empty_like"):
        monkeypatch.setattr(np, name, filled(getattr(np, name)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("short", [0, 4])
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(k, marks=pytest.mark.slow) for k in range(12, 100))]
)
def test_mutants(
    seed: int,
    short: int,
    tmp_path: Path,
    unset_is_nan: None,
    monkeypatch: pytest.MonkeyPatch,
    tally: Counter[str],
) -> None:
    monkeypatch.setattr(repetition, "SHORT", short)
    rng = np.random.default_rng([seed, short])
    for _ in range(MUTANTS):
        program = PROGRAMS[rng.integers(len(PROGRAMS))]
        try:
            function, said = mutated(program, rng, tmp_path, int(rng.integers(1, 3)))
        except SyntaxError:
            continue
        mutant = program._replace(
            function=getattr(function, "py_func", function), complex_step=False
        )
        with np.errstate(all="ignore"):
            try:
                tally[check(mutant)] += 1
            except (AssertionError, TooLong) as error:
                raise AssertionError(f"{program.name}, {said}: {error!r}") from error
    assert tally[REFUSED] <= MOST_REFUSED
    assert tally[SAME] + tally[RAISES] >= LEAST_COMPARED


def check(mutant: Program) -> str:
    """What became of the mutant."""
    plain = Plain(mutant)
    direction = plain.directions[0]
    try:
        with seconds(PLAIN_SECONDS):
            results = plain.results
            derivative, other = (
                Plain(mutant._replace(step=h * mutant.step)).derivative(direction)
                for h in (1.0, 0.6)
            )
    except (TooLong, *OF_PYTHON):
        return NOT_COMPARED
    except Exception as error:
        return check_raises(mutant, plain, error)
    if not results or not all(np.isfinite(x).all() for x in (*results, *derivative)):
        return NOT_COMPARED
    smooth = off(other, derivative) < SMOOTH and mutant.function.__name__ != STAIRS
    return check_like_numpy(mutant, plain, direction, derivative if smooth else None)


def check_raises(mutant: Program, plain: Plain, error: Exception) -> str:
    """ckad raises too; or gives NaN for what NumPy has no number for."""
    options: dict[str, Any] = {} if mutant.returns is None else {"returns": mutant.returns}
    try:
        with seconds(SECONDS):
            result = ckad.jit(mutant.function, engine="vm", **options)(
                *(copied(a) for a in plain.arguments)
            )
    except Exception:
        return RAISES
    lost = all(np.isfinite(x).all() for x in floats(result))
    assert not lost, f"NumPy raises {error!r}, ckad gives {result}"
    return RAISES


def check_like_numpy(
    mutant: Program, plain: Plain, direction: Arrays, derivative: Arrays | None
) -> str:
    run = Differentiated(mutant, "vm", plain)
    with seconds(SECONDS):
        try:
            _, tangent, gradient = run.value, run.pushforward(direction), run.gradient
        except Exception as refusal:
            if not tells_the_place(refusal):
                raise AssertionError("an error without a place") from refusal
            return REFUSED
    # what a relative change of the arguments becomes in the results: rounding does not fare better
    largest = max(size(plain.results), 1e-300)
    growth = size(tangent if derivative is None else derivative) / largest
    check_value(run, mutant.rtol * max(1.0, growth if np.isfinite(growth) else 1.0))
    single = any(x.dtype == np.float32 for x in (*plain.leaves, *plain.results))
    if all(np.isfinite(x).all() for x in (*tangent, *gradient)):
        # where both modes give but the rounding errors of a zero, these need not agree
        if max(size(tangent), size(gradient)) >= ROUNDING * largest:
            assert_dots(run, direction, tangent, CLOSE if single else SMOOTH)
        if derivative is not None and not single:
            assert off(tangent, derivative) < CLOSE, "tangent"
    return SAME


def tells_the_place(refusal: Exception) -> bool:
    return ".py:" in "\n".join([str(refusal), *getattr(refusal, "__notes__", ())])


def off(got: Arrays, want: Arrays) -> float:
    return size([x - y for x, y in zip(got, want, strict=True)]) / max(size(want), 1e-9)
