"""Functions of numbers, arrays and lists of these: what is made of them, and how little is done."""

from __future__ import annotations

import gc
import sys
from collections import deque

import numpy as np
import pytest

import ckad


def of_a_list_that_steps_change(x):
    held, total = [x, 2 * x], 0.0
    for _ in range(20):
        total = total + np.sum(np.array(held))
        held[0] = held[0] * 0.9
        held[1] = held[0] + 1.0
    return total


def of_a_list_with_two_names(x):
    held, total = [x, x], 0.0
    other = held
    for _ in range(10):
        other[0] = other[0] + 1.0
        total = total + np.sum(np.array(held)) * np.sum(np.asarray(other))
    return total


def of_a_list_in_a_list(x):
    held, total = [[x, 1.0], [2.0, x]], 0.0
    for _ in range(9):
        total = total + np.linalg.det(np.array(held))
        held[1][0] = held[1][0] + x
    return total


def of_a_list_bound_in_a_branch(x):
    held, total = [x] * 3, 0.0
    for _ in range(9):
        if total < 5:
            held = [total, x, x * x]
        total = total + np.dot(np.array(held), np.array([1.0, 2.0, 3]))
    return total


def of_a_window(x):
    window = deque([x, x * 2, x * 3], maxlen=3)
    for _ in range(20):
        window.append(np.sin(np.mean(np.array(window))))
    return window[-1]


def of_a_list_that_grows(x):
    held = [x]
    for _ in range(15):
        held.append(held[-1] * 1.1)
        x = x + np.sum(np.array(held[-1:]))
    return x + np.sum(np.array(held))


def of_objects(x):
    held = np.array([{"x": x}, {"x": 2 * x}], dtype=object)
    return held[0]["x"] * held[1]["x"]


def of_literals(x):
    return x * -(2**3) + (-3.5) * x + ~4 * x + x * float(3) * int(-2.5) * len(np.zeros((2, 3)))


PROGRAMS = [value for name, value in list(globals().items()) if name.startswith("of_")]


@pytest.mark.parametrize("program", PROGRAMS)
def test_they_give_what_numpy_gives(program):
    assert ckad.jit(program, engine="vm")(0.7) == pytest.approx(program(0.7), rel=1e-12)


OUTSIDE = [[1.0, 2.0], [3.0, 4.0]]


def test_a_list_from_outside_is_the_present_one():
    compute = ckad.jit(lambda x: np.sum(np.array(OUTSIDE) * x), engine="vm")
    assert compute(2.0) == 20.0
    OUTSIDE[1][0] += 1.0
    assert compute(2.0) == 22.0


LINES = {
    "w = np.array([z, 2.0])": 650,
    "w = np.zeros(5)": 250,
    "w = x[-3:-1]": 160,
    "x = x * z + x": 220,
    "x = np.sin(x)": 180,
    "z = z if z > 3 else z + 1": 1520,
}


@pytest.mark.parametrize("line", LINES)
def test_a_call_takes_few_steps(line, tmp_path):
    """Of Python's, to record it once more; so many that a table passed by for nothing is seen."""

    def steps(n):
        file = tmp_path / f"of_{n}.py"
        file.write_text("\n".join(["def program(x, z):", *[f"    {line}"] * n, "    return x"]))
        names = {"np": np}
        exec(compile(file.read_text(), file, "exec"), names)
        for _ in range(2):
            ckad.clear_caches()
            count = 0

            def note(frame, event, argument):
                nonlocal count
                count += event in ("call", "c_call")

            gc.collect()
            gc.disable()  # what other tests have left behind is not counted
            sys.setprofile(note)
            try:
                ckad.trace(names["program"])(np.ones(5), 2.0)
            finally:
                sys.setprofile(None)
                gc.enable()
        return count

    assert (steps(20) - steps(10)) / 10 < LINES[line]
