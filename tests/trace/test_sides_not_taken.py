"""What Python would raise only where it comes there: a side of a branch that is not taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import ConcreteValueError, RaisedError, UnboundError

TAKEN, LEFT = np.array([0.8, 0.6, -0.4]), np.array([0.2, 0.6, -0.4])


def largest_of_nothing(x, _):
    return max([])


def extreme_of_an_empty_array(x, _):
    return np.max(np.zeros(0))


def number_of_a_word(x, _):
    return float("far")


def place_of_what_is_not_there(x, _):
    return [1.0, 2.0].index(5.0)


def too_few_names(x, _):
    a, b = [1.0, x[0], x[1]]
    return a + b


def shapes_that_do_not_fit(x, _):
    return np.sum(x + np.zeros(2))


def root_of_a_negative_number(x, _):
    return math.sqrt(-1.0)


def no_next_item(x, _):
    return next(iter([]))


def no_length(x, k):
    return len(k)


RAISING = [
    *(largest_of_nothing, extreme_of_an_empty_array, number_of_a_word, place_of_what_is_not_there),
    *(too_few_names, shapes_that_do_not_fit, root_of_a_negative_number, no_next_item, no_length),
]
Function = Callable[..., Any]


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("raising", RAISING)
def test_it_is_an_error_only_if_it_is_taken(raising: Function, engine: str) -> None:
    def statement(x):
        y = x[1] ** 2
        if x[0] > 0.5:
            y = raising(x, 3)
        return y * x[2]

    def expression(x):
        return x[2] * (raising(x, 3) if x[0] > 0.5 else x[1])

    def loop(x):
        total = 0.0
        for k in range(6):
            if k * x[0] > 2.0:
                total += raising(x, k)
            total += x[1] * x[2]
        return total

    for program in (statement, expression, loop):
        compiled = ckad.value_and_grad(program, engine=engine)
        value, gradient = compiled(LEFT)
        assert value == pytest.approx(program(LEFT), rel=1e-13)
        steps = 1e-6 * np.eye(3)
        slopes = [(program(LEFT + d) - program(LEFT - d)) / 2e-6 for d in steps]
        assert gradient == pytest.approx(slopes, rel=1e-6, abs=1e-9)
        with pytest.raises(RaisedError):
            compiled(TAKEN)


def raises_either_way(x):
    if x[0] > 0.5:
        raise ValueError
    raise_it = max([]) if x[1] > 0.5 else min([])
    return raise_it


def raises_in_both_blocks(x):
    if x[0] > 0.5:
        raise ValueError
    else:
        raise KeyError


@pytest.mark.parametrize("function", [raises_either_way, raises_in_both_blocks])
def test_a_program_that_raises_on_both_sides_gives_nothing(function: Function) -> None:
    for at in (TAKEN, LEFT):
        with pytest.raises(RaisedError):
            ckad.jit(function)(at)


class Plain: ...


def no_such_name(x, _):
    return not_there + x[0]  # noqa: F821


def no_such_attribute(x, _):
    return Plain().nothing + x.nothing


def nothing_in_a_module(x, _):
    return np.nothing(x)


def not_bound_yet(x, _):
    y = later + x[0]  # noqa: F821
    later = 1.0
    return y + later


def no_such_module(x, _):
    import nothing_at_all

    return nothing_at_all.nothing(x)


NAMES = [no_such_name, no_such_attribute, nothing_in_a_module, not_bound_yet, no_such_module]


@pytest.mark.parametrize("raising", [*NAMES, too_few_names, no_length])
def test_names_and_loops_of_unknown_length(raising: Function) -> None:
    def program(x):
        total, k = 0.0, 0
        while total < 2.0 + x[0]:
            total += x[1] if x[0] < 0.5 else raising(x, k)
            k += 1
        return total * x[2]

    compiled = ckad.value_and_grad(program, engine="vm")
    value, gradient = compiled(LEFT)
    assert value == pytest.approx(program(LEFT), rel=1e-13)
    assert gradient == pytest.approx([0.0, 4 * LEFT[2], 4 * LEFT[1]], rel=1e-13)
    with pytest.raises(RaisedError):
        compiled(TAKEN)


def leaves_names_unbound(x):
    while x[0] > 0.5:
        y = x[1]
        raise ValueError(y)
    return y


def one_error_or_another(x):
    if x[0] > 0.5:
        raise KeyError
    raise ValueError


@pytest.mark.parametrize("function", [leaves_names_unbound, one_error_or_another])
def test_which_error_comes_first_is_not_told(function: Function) -> None:
    for at in (TAKEN, LEFT):
        with pytest.raises((RaisedError, UnboundError)):
            ckad.jit(function)(at)


def test_after_a_loop_of_steps_that_raise_its_names_are_what_they_were() -> None:
    def program(x):
        y = x[1]
        while x[0] > 0.5:
            y = y * 2.0
            raise ValueError
        return y

    value, gradient = ckad.value_and_grad(program)(LEFT)
    assert value == LEFT[1]
    assert gradient.tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(RaisedError):
        ckad.jit(program)(TAKEN)


# --- what Python's numbers do not have -----------------------------------------------------------


def method_of_an_array(x):
    return float(x[0]).sum()


def attribute_of_an_array(x):
    return (2.0 * int(x[0])).shape


def item_of_a_number(x):
    return float(x[0])[0]


def item_put_into_a_number(x):
    y = x[0]
    y[...] = 3.0
    return y


WITHOUT = [method_of_an_array, attribute_of_an_array, item_of_a_number, item_put_into_a_number]


@pytest.mark.parametrize("function", WITHOUT)
def test_what_numbers_do_not_have_is_pythons_error(function: Function) -> None:
    with pytest.raises((AttributeError, TypeError)) as expected:
        function(TAKEN)
    with pytest.raises(expected.type):
        ckad.jit(function)(TAKEN)


# --- the width of what is computed, where a condition decides the class of an operand -------------


def of_float32(x):
    p = 0.1 if x[0] > 0.5 else np.float64(0.7)
    return p * np.ones(3, np.float32)


def of_an_extreme(x):
    return np.float32(0.3) + max(x[0], 0.5)


def of_int8(x):
    p = 3 if x[0] > 0.5 else np.int64(3)
    return np.int8(100) * p


def of_an_array_of_int16(x):
    p = 3 if x[0] > 0.5 else np.int64(3)
    return p + np.array([32767, 5], np.int16)


@pytest.mark.parametrize("function", [of_float32, of_an_extreme, of_int8, of_an_array_of_int16])
def test_a_width_that_a_condition_decides_is_refused(function: Function) -> None:
    with pytest.raises(ConcreteValueError, match=r"computed in .* or "):
        ckad.jit(function)(TAKEN)


def of_one_width(x):
    p = 0.1 if x[0] > 0.5 else np.float64(0.7)
    q = 2 if x[0] > 0.5 else np.float32(2.5)
    return p * np.ones(3), q * np.ones(3, np.float32), q * np.float32(0.5), p + 2, np.float64(p) * 2


@pytest.mark.parametrize("at", [TAKEN, LEFT])
def test_where_all_classes_give_one_width_it_is_computed(at: np.ndarray) -> None:
    for found, expected in zip(ckad.jit(of_one_width)(at), of_one_width(at), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
