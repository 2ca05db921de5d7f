"""How a ``finally`` ends replaces how its ``try`` ended, also under traced conditions."""

# ruff: noqa: B012

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from .idioms import check_number


def returns(x: float) -> float:
    try:
        if x > 0.5:
            return x
    finally:
        if x < 0.8:
            return 7 * x
    return 3 * x


def breaks_in_a_loop(x: float) -> float:
    s = 0.0
    for k in range(8):
        try:
            if 0.2 * k > x:
                return s * x
            s += x
        finally:
            if s > 1.5 * x and x > 0.7:
                s = s * s
                break
    return s + 1


def returns_at_one_step(x: float) -> float:
    s = 0.0
    for k in range(8):
        try:
            if x * k > 2.0:
                return s
        finally:
            if k == 3:
                return 7 * x
            s += x
    return s


def continues(x: float) -> float:
    s = x
    for k in range(6):
        try:
            if k * x > 2:
                break
            s += x
        finally:
            if k % 2 and s < 3:
                continue
            s *= 1.1
        s += 11 * x
    return s


def ends_an_exception(x: float) -> float:
    s = x
    for _ in range(3):
        try:
            try:
                raise ValueError
            finally:
                s += x
                continue
        except ValueError:
            s += 100
    return s


@pytest.mark.parametrize(
    "fun", [returns, breaks_in_a_loop, returns_at_one_step, continues, ends_an_exception]
)
@pytest.mark.parametrize("x", [0.31, 0.63, 0.92])
def test_the_end_of_finally_counts(fun: Callable[[float], float], x: float) -> None:
    check_number(fun, x)


@contextlib.contextmanager
def catching(found: list[float], x: float) -> Iterator[float]:
    try:
        yield x
    except ValueError:
        found.append(3 * x)
    finally:
        found.append(x)


def raises_in_a_generators_manager(x: float) -> float:
    found: list[float] = []
    s = 0.0
    for k in range(5):
        with catching(found, x) as v:
            s += v
            if k == 3:
                raise ValueError
            s *= 1.1 * x
    return s + sum(found)


def test_what_a_generators_manager_catches() -> None:
    check_number(raises_in_a_generators_manager, 0.7)
