"""Numbers of which a traced condition decides the class: who asks for it is told, not misled."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import ConcreteValueError

AT = (0.5, 2.5)


def of_a_branch(x):
    y = 2 * x if x > 1 else 3
    return 72.0 if isinstance(y, float) else 1.0 * y


def of_an_operation_with_an_integer(x):
    y = 2.0 if x > 1 else 3
    y = -(2 * y + 1)
    return 72.0 if type(y) is float else 1.0 * y


def of_a_quotient_and_rest(x):
    y = 2.0 if x > 1 else 3
    q, r = divmod(y, 2)
    return 72.0 if isinstance(q, int) and isinstance(r, int) else x


def of_a_pattern(x):
    y = 2.0 if x > 1 else 3
    match y:
        case float():
            return 5.0 * x
        case _:
            return x


def of_an_extreme(x):
    y = max(1, x)
    return 72.0 if isinstance(y, float) else 1.0 * y


def of_items_in_order(x):
    y = sorted([1, x])[1]
    return 72.0 if isinstance(y, float) else 1.0 * y


def of_a_comparison_of_what_is_last(x):
    match sorted((2.0, x), reverse=True)[0] > 1.0:
        case True:
            return 5.0 * x
    return x


def of_an_absolute_value(x):
    y = abs(-2.0 if x > 1 else 3)
    return 72.0 if isinstance(y, float) else 1.0 * y


def of_an_item(x):
    y = [1, 2.0][int(x > 1)]
    return 72.0 if isinstance(y, float) else 1.0 * y


def of_a_list_written_into(x):
    items = [1, 2.0]
    items[int(x > 1)] = 3
    return 72.0 if isinstance(items[1], float) else 1.0 * items[0]


@pytest.mark.parametrize("x", [0.5, 2.5])
def test_a_list_written_into_at_a_place_that_the_call_decides(x: float) -> None:
    assert ckad.jit(of_a_list_written_into)(x) == of_a_list_written_into(x)


def of_items_appended(x):
    items = []
    for i in range(3):
        items.append(x * i if x > i else i)
    return sum(72.0 if isinstance(v, float) else v for v in items)


def of_a_loop_that_may_not_run(x):
    t = 0
    while x > 1:
        t = t + x
        x = x - 1
    return 72.0 if isinstance(t, float) else 1.0 * t


def of_numpy_or_python(x):
    values = np.array([1, 2])
    y = values[0] if x > 1 else 2
    return 72.0 if isinstance(y, int) else 1.0 * y


def of_a_flag(x):
    y = True if x > 1 else 2
    return 72.0 if isinstance(y, bool) else 1.0 * y


def of_an_array_or_a_number(x):
    y = np.array([x, x]) if x > 1 else 2.0
    return 72.0 if np.isscalar(y) else np.sum(y)


@pytest.mark.parametrize("x", AT)
@pytest.mark.parametrize(
    "function",
    [
        of_a_branch,
        of_a_quotient_and_rest,
        of_an_operation_with_an_integer,
        of_a_pattern,
        of_an_extreme,
        of_an_absolute_value,
        of_an_item,
        of_a_loop_that_may_not_run,
        of_numpy_or_python,
        of_a_flag,
        of_an_array_or_a_number,
        of_items_appended,
    ],
    ids=lambda function: function.__name__,
)
def test_a_class_that_is_not_known_is_an_error(function: Callable[..., Any], x: float) -> None:
    with pytest.raises(ConcreteValueError, match=r"Start with a value of the class"):
        ckad.jit(function)(x)


def of_both(x):
    y = 2 * x if x > 1 else 3
    return 72.0 if isinstance(y, (int, float)) and isinstance(y, numbers.Real) else x


def of_a_float_by_now(x):
    y = 2.0 if x > 1 else 3
    return (
        72.0 if type(y * 2.0) is float and type(float(y)) is float and type(y / 2) is float else x
    )


def of_steps_that_run(x):
    t = 0
    for _ in range(4):
        t = t + x
    return 72.0 if type(t) is float else x


def in_the_first_step_and_later(x):
    t, c = 0, 0.0
    for _ in range(4):
        c = c + (x if isinstance(t, (int, float)) else 5)
        t = t + x
    return t + c


def of_a_sum_of_elements(x):
    t, values = 0.0, x * np.array([1.0, 2.0])
    for v in values:
        t = t + v
    return t if isinstance(t, float) else 2 * t


def of_integers_alone(x):
    n = 0
    while x > 0.1:
        x = 0.5 * x
        n += 1
    y = 3 if x > 0.07 else 2.0
    whole = isinstance(math.floor(y), int) and type(int(y)) is int and type(round(y)) is int
    return n * x if isinstance(n, int) and whole else x


@pytest.mark.parametrize("x", AT)
@pytest.mark.parametrize(
    "function",
    [
        of_both,
        of_a_float_by_now,
        of_steps_that_run,
        in_the_first_step_and_later,
        of_a_sum_of_elements,
        of_integers_alone,
    ],
    ids=lambda function: function.__name__,
)
def test_a_class_that_is_known_is_told(function: Callable[..., Any], x: float) -> None:
    assert ckad.jit(function)(x) == pytest.approx(function(x), rel=1e-15)


def _short_or_long(x):
    return np.sum(x.astype(np.float32)) if x[0] > 1 else np.sum(x)


def _python_or_numpy(x):
    return 0.5 if x[0] > 1 else x[0]


OF_A_WIDTH = [
    lambda x: _short_or_long(x).itemsize * x[0],
    lambda x: x[0] if _short_or_long(x).dtype == np.float32 else x[1],
    lambda x: _short_or_long(x).copy() * x[0],
    lambda x: np.sin(_short_or_long(x)) * x[0],
    lambda x: np.array([_short_or_long(x)])[0] * x[0],
    lambda x: np.full(3, _short_or_long(x))[1] * x[0],
    lambda x: np.multiply(_python_or_numpy(x), x.astype(np.float32))[0] * x[0],
    lambda x: np.where(x > 0, _python_or_numpy(x), x.astype(np.float32))[0] * x[0],
]
OF_NONE = [
    lambda x: float(_short_or_long(x)) * x[0],
    lambda x: _short_or_long(x).astype(np.float32) * x[0],
    lambda x: np.sin(_python_or_numpy(x)) * x[0],
    lambda x: np.where(x > 0, _python_or_numpy(x), x)[0] * x[0],
]


@pytest.mark.parametrize("f", OF_A_WIDTH)
def test_a_number_of_float32_or_of_float64_is_not_taken_for_one_of_them(f):
    with pytest.raises(ConcreteValueError, match="computed in float32 or float64"):
        ckad.grad(f, engine="vm")(np.array([0.5, 0.7]))


@pytest.mark.parametrize("f", OF_NONE)
@pytest.mark.parametrize("x", [[0.5, 0.7], [1.5, 0.7]])
def test_a_number_of_either_is_taken_where_that_is_all_one(f, x):
    value, _ = ckad.value_and_grad(f, engine="vm")(np.array(x))
    assert value == pytest.approx(f(np.array(x)), rel=1e-7)


def _clipped(x):
    state = np.array([0.5, 0.0])
    for _ in range(6):
        position, speed = state[0], state[1]
        force = min(max(np.array([x])[0], -1.0), 1.0)
        speed += 0.5 * force - 0.1 * math.cos(position)
        speed = 0.3 if speed > 0.3 else speed
        position += speed
        state = np.array([position, speed], dtype=np.float32)
    return float(state[0])


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
@pytest.mark.parametrize("x", [0.2, 3.0])
def test_the_smallest_of_numbers_has_its_class_as_it_runs(x):
    value, slope = ckad.value_and_grad(_clipped, engine="vm")(x)
    assert value == pytest.approx(_clipped(x), rel=1e-7)
    assert (slope == 0.0) == (x > 1.0)
