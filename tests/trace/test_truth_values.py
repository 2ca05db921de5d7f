"""Truth values that are computed with: Python's are integers then, NumPy's stay truth values."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import ConcreteValueError

from .idioms import check_number

Function = Callable[[float], Any]

A = np.array([1.0, 2.0])
LIST = [1.0, 2.0, 4.0, 8.0]

SUMS: dict[str, Function] = {
    "sum": lambda x: x * ((x > 0) + (x > 0.5)),
    "with True": lambda x: x * (True + (x > 0.5)),
    "difference": lambda x: x * ((x > 0.5) - (x > 0) + 5),
    "product": lambda x: x * ((x > 0) * (x > 0.5) + (x > 0.2)),
    "power": lambda x: x * ((x > 0.5) ** (x > 0) + 1),
    "quotient": lambda x: x * ((x > 0.5) // (x > 0) + (x > 0.2)),
    "rest": lambda x: x * ((x > 0.5) % (x > 0) + (x > 0.2)),
    "shift": lambda x: x * ((x > 0) << (x > 0.5)),
    "bits": lambda x: x * (((x > 0) & (x > 0.5)) + ((x > 0) ^ (x > 0.5))),
    "negative": lambda x: x * -(x > 0.5),
    "positive": lambda x: x * (+(x > 0) + +(x > 0.5)),
    "inverted": lambda x: x * ~(x > 0.5),
    "not": lambda x: x * ((not x > 0.5) + (not x > 3)),
    "chained": lambda x: x * ((0 < x < 1) + (0.5 < x < 1)),
    "and": lambda x: x * ((x > 0 and x > 0.5) + (x > 0 or x > 5)),
    "any": lambda x: x * (any([x > 0, x > 0.5]) + all([x > 0, x > 0.5])),
    "index": lambda x: x * LIST[(x > 0) + (x > 0.5)],
    "math": lambda x: x * (math.isfinite(x) + (x > 0.5)),
    "equal": lambda x: x + ((x > 0) + (x > 0.5) == 2),
    "by functions": lambda x: x * operator.add(x > 0, x > 0.5) + x * operator.invert(x > 0.5),
    "reduced": lambda x: x * functools.reduce(operator.add, [x > 0, x > 0.5, x > 0.2]),
    "accumulated": lambda x: x * list(itertools.accumulate([x > 0, x > 0.5, x > 0.2]))[-1],
    "from True": lambda x: x * sum([x > 0, x > 0.5], True),
    "of NumPy": lambda x: x * ((A[0] * x > 0) + (A[1] * x > 0.5)),
    "of NumPy and True": lambda x: x * ((A[0] * x > 0.5) + True),
    "of both": lambda x: x * ((A[0] * x > 0) + (x > 0.5)),
    "of arrays": lambda x: x * np.sum((A * x > 0.5) + (x > 0.5)),
}


def added_in_place(x: float) -> float:
    k = x > 0
    k += x > 0.5
    k += True
    return x * k


def counted(x: float) -> float:
    n = x > 0
    for k in range(10):
        n = n + (k * x > 1)
    return x * n


def of_python_first(x: float) -> float:
    """In the first step a float of Python's, then NumPy's: True + True is 2, then True."""
    s = x
    for _ in range(5):
        s = 0.5 * s + 0.1 * (True + (s > 0)) + 0.1 * A[0]
    return s


PROGRAMS = [*SUMS.values(), added_in_place, counted, of_python_first]


@pytest.mark.parametrize("at", [0.3, 0.7])
@pytest.mark.parametrize("program", PROGRAMS, ids=[*SUMS, "in place", "counted", "python first"])
def test_computed_with(program: Function, at: float) -> None:
    check_number(program, at, memory="1 MB")


def of_a_branch(x: float) -> Any:
    s = x if x > 0.5 else x * A[0]
    return x * (True + (s > 0))


def inverted(x: float) -> Any:
    s = x if x > 0.5 else x * A[0]
    return x * ~(s > 0)


def is_true(x: float) -> Any:
    s = x if x > 0.5 else x * A[0]
    return x * ((s > 0) is True)


@pytest.mark.parametrize("program", [of_a_branch, inverted, is_true])
def test_a_class_that_is_not_known_is_an_error(program: Function) -> None:
    with pytest.raises(ConcreteValueError, match=r"test_truth_values.py:\d+: .*write int\(c\)"):
        ckad.jit(program, engine="vm")(0.7)


def infinite(x: float) -> Any:
    y = -x * math.inf
    z = y
    z **= 0.5
    return y**0.5, z, pow(y, 0.5), np.float64(x) * (-0.0) ** 0.5, np.power(A * y, 0.5)


def test_roots_of_numbers_are_those_of_c() -> None:
    with np.errstate(invalid="ignore"):
        expected = infinite(0.7)
    for got, want in zip(ckad.jit(infinite, engine="vm")(0.7), expected, strict=True):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[np.isfinite(got)], False)
