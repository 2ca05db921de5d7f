"""Names that are None or a value, by a traced condition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import CarryError, CkadError, ConcreteValueError, NoneValueError

from .idioms import check, check_further

PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS.append(function)
    return function


@program
def refractory(a, b):
    last, v, total = None, 0.0, 0.0
    for i in range(40):
        t = i * 0.1
        if last is not None and t - last < 0.5:
            v = 0.0
        else:
            v += a * (1 + b * math.sin(t)) - 0.1 * v
        if v > 1.0:
            last = t
            v = 0.0
        total += v
    if last is None:
        return total
    return total + last * a


@program
def previous(a, b):
    before, total = None, 0.0
    for k in range(6):
        x = np.sin(a * k) + b
        if before is not None:
            total += (x - before) ** 2
        before = x
    return total + before


@program
def best(a, b):
    least, where = None, None
    for k in range(8):
        cost = np.cos(a * k) + b * k * 0.1
        if least is None or cost < least:
            least, where = cost, k
    return least * 2 + where * a


@program
def arrays(a, b):
    kept = None
    u = np.array([a, b, a * b])
    for _ in range(7):
        u = u * 1.1
        if np.sum(u) > 2.0 and kept is None:
            kept = u.copy()
    if kept is None:
        kept = np.zeros(3)
    kept[0] += a
    return np.sum(kept * u)


@program
def returned(a, b):
    def find(limit):
        x = a
        for _ in range(10):
            x = x * 1.3 + b
            if x > limit:
                return x
        return None

    found, never = find(3.0), find(1e9)
    if found is None:
        found = 0.0
    return found + (0.5 * a if never is None else never)


@program
def without_a_return(a, b):
    def find(limit):
        x = a
        for _ in range(10):
            x = x * 1.3 + b
            if x > limit:
                return x

    return (find(3.0) or 1.0) * b + (1.0 if find(1e9) is None else 2.0)


class Neuron:
    def __init__(self):
        self.last, self.v, self.peak = None, 0.0, None

    def step(self, t, current):
        if self.last is not None and t - self.last < 0.3:
            return 0.0
        self.v += current
        if self.v > 1.0:
            self.v = 0.0
            self.last = t
        if self.peak is None or self.v > self.peak:
            self.peak = self.v
        return self.v


@program
def attributes(a, b):
    neuron, total = Neuron(), 0.0
    for i in range(20):
        total += neuron.step(i * 0.1, a * b)
    late = neuron.last if neuron.last is not None else 0.0
    return total + neuron.peak * 3 + late * a


@program
def tuples(a, b):
    found = None
    for k in range(6):
        x = np.sin(k * a)
        if found is None or x > found[0]:
            found = (x, k * b)
    v, w = found
    return v * w + found[1]


@program
def until_it_is_there(a, b):
    x, crossing, n = a, None, 0
    while crossing is None:
        x = x * 1.2 + b
        n += 1
        if x > 4:
            crossing = x - 4
        if n > 50:
            break
    return crossing * x


@program
def expressions(a, b):
    y = None if a > b else b
    z = None if a < b else a * 2
    w = b if y is None else y * 3
    if z:
        w += z
    if not y:
        w *= 2
    least = None
    for x in [a, a * 2, 1.3 - a, 0.35]:
        least = x if least is None else min(least, x)
    return w + (z if z is not None else 1.0) + least


@program
def nested_loops(a, b):
    last, total = None, 0.0
    for i in range(4):
        first = None
        for j in range(5):
            x = np.sin(a * i + b * j)
            if x > 0.3:
                if first is None:
                    first = x
                last = x * j
                if j == 3:
                    break
            elif last is not None:
                total += last * 0.1
        if first is not None:
            total += first
        else:
            last = None
    return total + (last if last is not None else a)


@program
def parameters(a, b):
    def product(x, y=None):
        if y is None:
            y = x * 2
        return x * y

    t = None
    if a > 0.5:
        t = b
    kept = [t, 2.0]
    return product(a, t) + product(b) + product(a, y=t) + np.sum(np.array(kept)) + np.maximum(t, 0)


@program
def intervals(a, b):
    start, stop, spent, begun, busy = None, None, 0.0, None, False
    for i in range(30):
        x = math.sin(i * a * 0.5)
        if x > 0.5 and not busy:
            busy = True
            begun = i * b
        elif x <= 0.5 and busy:
            busy = False
            spent += i * b - begun
            begun = None
        if x > 0 and start is None:
            start = i * b
        if start is not None and x < 0 and stop is None:
            stop = i * b
        if stop is not None:
            break
    if start is None or stop is None:
        return a
    return (stop - start) * a + i + spent


@program
def items(a, b):
    slots, table, total = [None] * 3, {"x": None, "n": 0.0}, 0.0
    for k in range(3):
        if a * k > 0.5:
            slots[k] = a * k
            table["x"] = b * k
        table["n"] += a
    for x in slots:
        if x is not None:
            total += x
    return total + (table["n"] if table["x"] is None else table["x"])


@program
def complex_numbers_and_fields(a, b):
    z, Z = None, None
    for k in range(6):
        w = np.exp(1j * k * a)
        if w.real < 0 and z is None:
            z = w
            Z = np.zeros(2, [("u", float)])
            Z["u"] = b
        if Z is not None:
            Z["u"] += 1
    return 0.0 if z is None else z.imag * abs(z) + Z["u"].sum()


@program
def texts(a, b):
    mode = None
    for k in range(4):
        if a * k > 1:
            mode = "fast" if mode is None else "slow"
    return a if mode is None else (2 * a if mode == "fast" else 3 * a * b)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_program(function: Callable[..., Any]) -> None:
    check(function, 0.7, 0.45)


@pytest.mark.parametrize("function", [refractory, best, intervals], ids=lambda f: f.__name__)
def test_second_derivatives_and_the_native_engine(function: Callable[..., Any]) -> None:
    check_further(function, 0.7, 0.45)


# --- None where a value is needed ----------------------------------------------------------------


def last_of(limit):
    def run(a):
        last = None
        for k in range(5):
            if k * a > limit:
                last = a * k
        return last * 2

    return run


def test_none_stops_where_python_raises() -> None:
    assert ckad.value_and_grad(last_of(1.0))(0.7) == (5.6, 8.0)
    with pytest.raises(NoneValueError, match=r"test_absence\.py:\d+: None is used") as caught:
        ckad.grad(last_of(100.0))(0.7)
    assert isinstance(caught.value, TypeError)


def may_return_nothing(a):
    if a > 1:
        return a**2


def test_a_function_that_returns_none_gives_no_number() -> None:
    assert ckad.grad(may_return_nothing)(3.0) == 6.0
    with pytest.raises(NoneValueError):
        ckad.grad(may_return_nothing)(0.5)


def none_among_numbers(a):
    return None * a


def test_none_among_numbers_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="None is used where a number is needed"):
        ckad.grad(none_among_numbers)(0.5)


def lists(a):
    found = None
    for k in range(5):
        if k * a > 1:
            found = [k * a, a]
    return found[0]


def classes(a):
    found = None
    if a > 1:
        found = a
    return a if isinstance(found, float) else 2 * a


def shapes(a):
    found = None
    for k in range(6):
        if k * a > 2:
            found = np.ones(2) * a
        elif k * a > 1:
            found = np.ones(3) * a
    return found[0]


def views(a):
    u, kept = np.ones(3) * a, None
    for k in range(5):
        if k * a > 2 and kept is None:
            kept = u
        u[0] += 1
    return kept[0] + u.sum()


@pytest.mark.parametrize(
    ("function", "error", "says"),
    [
        (lists, CarryError, "on one side of a branch and None on the other"),
        (classes, ConcreteValueError, "whether this is None depends on a traced value"),
        (shapes, CarryError, "the variable 'found'"),
        (views, CkadError, "copy"),
    ],
)
def test_refused(function: Callable[..., Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        ckad.grad(function)(0.7)
    assert "test_absence.py" in str(caught.value)


class Cell:
    def __init__(self) -> None:
        self.state: Any = None

    def step(self, x: Any) -> Any:
        if self.state is None:
            self.state = np.zeros((2, 3))
        _, width = self.state.shape
        self.state = np.tanh(self.state + x) * width
        return self.state


def shape_of_an_attribute(x):
    cell, total = Cell(), 0.0
    for k in range(10):
        total = total + np.sum(cell.step(x))
        if k == 5:
            cell.state = None
    return total


def shape_of_a_name(x):
    found, total = None, 0.0
    for k in range(10):
        if k % 3 == 0:
            found = np.ones((2, 3)) * x
        if x > k:
            found = None if k == 7 else found
        shape = found.shape
        total = total + shape[0] * found[0, 0]
    return total


@pytest.mark.parametrize("function", [shape_of_an_attribute, shape_of_a_name])
def test_attributes_of_what_may_be_none_are_those_of_the_value(function: Any) -> None:
    value, gradient = ckad.value_and_grad(function, engine="vm")(0.3)
    assert value == pytest.approx(function(0.3), rel=1e-13)
    difference = (function(0.3 + 1e-6) - function(0.3 - 1e-6)) / 2e-6
    assert gradient == pytest.approx(difference, rel=1e-6)


def taken_once(x):
    seen, pending, t = x[0], x[1], 0.0
    while t < 5.0 + x[0]:
        t += 1.0
        if pending is not None:
            seen = 2.0 * pending
        pending = None
    return seen * t


def taken_once_beside_an_array(x):
    y, seen, pending = x.copy(), x[0], 0.7
    for _ in range(7):
        seen = 2.0 * seen if pending is None else pending * y[1]
        pending = None
        y[0] *= 0.9
    return seen + y[0]


def taken_and_given_back(x):
    total, pair, t = x[0], (x[1], x), 0.0
    while t < 5.0 + x[0]:
        t += 1.0
        if pair is None:
            pair = (t * x[2], 2.0 * x)
            continue
        total = 0.9 * total + pair[0] * np.sum(pair[1])
        pair = None
    return total if pair is None else total + pair[0]


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("function", [taken_once, taken_once_beside_an_array, taken_and_given_back])
def test_values_from_before_a_loop_that_become_none_in_it(function: Any, engine: str) -> None:
    at = np.array([0.31, 0.62, 0.95])
    value, gradient = ckad.value_and_grad(function, engine=engine)(at)
    assert value == pytest.approx(function(at), rel=1e-13)
    steps = 1e-6 * np.eye(3)
    differences = [(function(at + d) - function(at - d)) / 2e-6 for d in steps]
    assert gradient == pytest.approx(differences, rel=1e-6)
