"""Names that loops and branches bind to other views of memory: NumPy's numbers, or a refusal.

Value, gradient and forward mode of each program of `memory_programs`, by both engines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, CkadError

from . import memory_programs
from .memory_programs import EITHER, RIGHT, Program

pytestmark = [
    pytest.mark.usefixtures("engine"),
    pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning"),
]

X = np.array([0.31, 0.2, 0.45, 0.83, 0.57, 0.74])
FLAGS = np.array([0, 1, 0, 0, 1, 0])
STEP = 1e-4


def differences(program: Program, *rest: Any) -> np.ndarray:
    """The gradient in NumPy; the programs are polynomials, and fourth order takes them exactly."""
    gradient = np.zeros(X.shape)
    for k in range(X.size):
        for weight, shift in ((8.0, 1), (-8.0, -1), (-1.0, 2), (1.0, -2)):
            moved = X.copy()
            moved[k] += shift * STEP
            gradient[k] += weight * program(moved, *rest)
    return gradient / (12.0 * STEP)


def check(program: Program, n: Any, flags: np.ndarray) -> None:
    plain = int(n)
    want = program(X.copy(), plain, flags)
    value, gradient = ckad.value_and_grad(program)(X, n, flags)
    np.testing.assert_allclose(value, want, rtol=1e-12)
    expected = differences(program, plain, flags)
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-7)
    direction = np.linspace(-1.0, 1.0, X.size)
    value, slope = ckad.jvp(lambda x: program(x, n, flags), (X,), (direction,))
    np.testing.assert_allclose(value, want, rtol=1e-12)
    np.testing.assert_allclose(slope, gradient @ direction, rtol=1e-9, atol=1e-9)


def check_or_refused(program: Program, n: Any, flags: np.ndarray) -> None:
    try:
        ckad.value_and_grad(program)(X, n, flags)
    except CkadError as refusal:
        assert_places(refusal)
    else:
        check(program, n, flags)


def assert_places(refusal: CkadError) -> None:
    assert "memory_programs.py:" in str(refusal), str(refusal)


def of(programs: list[Program]) -> Any:
    return pytest.mark.parametrize("program", programs, ids=[p.__name__ for p in programs])


@pytest.mark.sampled(4)
@of(RIGHT)
@pytest.mark.parametrize("n", [0, 5, 6])
def test_it_is_what_numpy_gives(program: Program, n: int) -> None:
    check(program, n, FLAGS)


@pytest.mark.sampled(4)
@of([*EITHER, *RIGHT])
def test_it_is_what_numpy_gives_or_refused_where_only_the_run_tells(program: Program) -> None:
    for n in (np.array(0), np.array(5)):
        check_or_refused(program, n, FLAGS)
    for n in (5, 6):
        check_or_refused(program, n, FLAGS)


def test_the_error_names_both_lines() -> None:
    with pytest.raises(AliasError, match=r"written into at .*memory_programs\.py:\d+.*copy\(\)"):
        ckad.jit(memory_programs.exchanged_under_a_condition)(X, 5, FLAGS)


def test_long_loops_of_views_are_recorded_once() -> None:
    recorded = [len(ckad.trace(memory_programs.reversed_views)(X, n, FLAGS)) for n in (7, 100_001)]
    assert recorded[0] == recorded[1]
    value = ckad.jit(memory_programs.reversed_views)(X, 100_001, FLAGS)
    np.testing.assert_allclose(value, memory_programs.reversed_views(X, 100_001, FLAGS), rtol=1e-9)


@pytest.mark.parametrize("part", [np.s_[::2], np.s_[::-1], np.s_[:3]])
def test_arguments_that_are_strided_views(part: slice) -> None:
    """A flat array of what has gaps is a copy; of what has none, a view."""

    def flattened(x: Any) -> Any:
        flat = x.ravel()
        flat[0] = 9.0
        return np.sum(x * x)

    ckad.jit(flattened)(X[: X[part].size].copy())  # of the same shape: not to be used again
    if part == np.s_[:3]:
        value = ckad.jit(flattened)(X[part])
        np.testing.assert_allclose(value, flattened(X.copy()[part]))
    else:
        with pytest.raises(AliasError, match="copy"):
            ckad.jit(flattened)(X[part])
