"""Comprehensions of numbers that are all known: Python itself computes them, to the same ones."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import ckad
from ckad.errors import CkadError

STEP, SCALE = 2, 0.5


def of_functions(x):
    days = [max(0.0, 12 * math.sin(0.7 * d) * math.sin(SCALE * d)) for d in range(40)]
    return x * sum(days) + len(days)


def of_operators(x):
    parts = [-(k % 7) / 3 + 2**-k - k // STEP + math.pi * +1.5 for k in range(-20, 20)]
    return x * sum(parts) - parts[3]


def of_lists(x):
    first = [0.1 * k for k in range(30)]
    second = [abs(round(y, 1)) + float(int(y)) for y in first]
    second[2] = x
    return sum(a * b for a, b in zip(first, second, strict=True))


def of_a_name_that_a_loop_changes(x):
    total = 0.0
    for k in range(3):
        total = total + sum([k * 0.5 + j for j in range(20)]) * x
    return total


def of_a_function_of_its_own(x):
    def root(k):
        return x * k

    return sum([root(k) for k in range(20)])


def of_a_name_of_its_own(x):
    max = min
    return x * sum([max(k, 3) for k in range(20)])


def of_pairs(x):
    return x * len([math.modf(k * 0.3) * 2 for k in range(20)][3])


def of_complex_numbers(x):
    return x * sum([abs((-1.0 - k) ** 0.5) for k in range(20)])


def of_what_is_traced(x):
    scale = 2.0 * x
    return sum([scale * k for k in range(20)])


def in_a_method(x):
    class Table:
        width = 3.0

        def of(self):
            return [self.width * k for k in range(20)]

    return x * sum(Table().of())


PROGRAMS = [value for name, value in list(globals().items()) if name.startswith(("of_", "in_"))]


@pytest.mark.parametrize("program", PROGRAMS)
def test_they_give_what_python_gives(program):
    value, slope = ckad.value_and_grad(program, engine="vm")(0.7)
    assert value == pytest.approx(program(0.7), rel=1e-13)
    difference = (program(0.7 + 1e-6) - program(0.7 - 1e-6)) / 2e-6
    assert slope == pytest.approx(difference, rel=1e-6)


def steps(program):
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    ckad.trace(program)(0.7)
    ckad.clear_caches()
    sys.setprofile(note)
    try:
        ckad.trace(program)(0.7)
    finally:
        sys.setprofile(None)
    return count


def test_they_take_few_steps():
    """Of Python's own there are three in each item."""

    def program(x, n=1):
        return x * [3.0 + 2.0 * math.sin(2 * math.pi * d / 365) for d in range(4000)][7]

    assert steps(program) < 5 * 4000


def test_what_they_read_is_the_present_number():
    global SCALE
    compute = ckad.jit(of_functions, engine="vm")
    assert compute(2.0) == pytest.approx(of_functions(2.0), rel=1e-13)
    before, SCALE = SCALE, 0.25
    try:
        assert compute(2.0) == pytest.approx(of_functions(2.0), rel=1e-13)
    finally:
        SCALE = before


def test_what_goes_wrong_is_pythons_error_at_its_line():
    def program(x):
        return x * sum([1.0 / (k - 17) for k in range(20)])

    with pytest.raises(ZeroDivisionError):
        ckad.trace(program)(0.7)


def test_a_list_of_them_is_written_into_as_any_other():
    def program(x):
        table = [0.5 * k for k in range(20)]
        for k in range(10):
            table[k % 20] = table[k] * x + k
        return np.sum(np.array(table))

    try:
        found = ckad.jit(program, engine="vm")(0.7)
    except CkadError as error:
        pytest.fail(str(error))
    assert found == pytest.approx(program(0.7), rel=1e-13)
