"""Exceptions that a program raises and catches by itself."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.errors import RaisedError

from .idioms import check_number

STRICT = True


class TooLarge(ValueError):
    def __init__(self, at):
        super().__init__(f"too large at {at}")
        self.at = at


def refuse(x):
    if STRICT:
        raise TooLarge(3)
    return x


def by_name_in_a_loop(x):
    total = 0.0
    for k in range(12):
        try:
            total += refuse(x * k)
        except (KeyError, ValueError) as error:
            total += x * error.at
    return total


def of_a_class(x):
    for _ in range(12):
        try:
            try:
                if STRICT:
                    raise KeyError
                x = 2.0 * x
            except ZeroDivisionError:
                x = 3.0 * x
            finally:
                x = 0.9 * x
        except LookupError:
            x = np.sin(x)
    return x


def within_a_branch(x):
    if x > 0.2:
        try:
            raise TooLarge(5)
        except TooLarge as error:
            x = x * error.at
    return x


def from_its_own_handler(x):
    for _ in range(12):
        try:
            try:
                raise KeyError
            except KeyError:
                raise ValueError from None
        except ValueError:
            x = np.cos(x)
    return x


@pytest.mark.parametrize(
    "function", [by_name_in_a_loop, of_a_class, within_a_branch, from_its_own_handler]
)
def test_what_is_raised_whatever_the_numbers_are(function):
    check_number(function, 0.7, rel=1e-14)


def of_another_kind(x, n):
    total = x
    for k in range(n):
        try:
            if STRICT:
                raise KeyError(k)
        except ValueError:
            total = 2.0 * total
    return total


def test_what_no_handler_catches_stops_the_program():
    with pytest.raises(RaisedError, match="raises an error"):
        ckad.grad(of_another_kind)(0.7, 9)


def by_numbers(x):
    total = 0.0
    for k in range(9):
        try:
            if x * k > 4.0:
                raise ValueError
            total += x * k
        except ValueError:
            total += 1.0
    return total


def test_what_numbers_decide_stops_the_program_where_it_is_raised():
    assert ckad.value_and_grad(by_numbers)(0.3) == pytest.approx((by_numbers(0.3), 36.0))
    with pytest.raises(RaisedError, match="raise ValueError"):
        ckad.grad(by_numbers)(0.7)
