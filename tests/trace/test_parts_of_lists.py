"""Texts and lists at places that steps compute; names that only some steps bind at their start."""

import warnings

import numpy as np
import pytest

import ckad
from ckad.errors import ConcreteValueError

TEXT = "hello world, how are you"
PAIRS = [(1.0, 2), (0.5, 0), (0.25, 1), (2.0, 2), (1.5, 1), (0.7, 0)]
RATES = [0.1, 0.2, 0.4, 0.8, 0.3, 0.6, 0.2]


def windows_of_a_text(x, n):
    """A pointer that goes back to the start, and a state that is made anew then."""
    numbers = {ch: k for k, ch in enumerate(sorted(set(TEXT)))}
    total, p, k = 0.0, 0, 0
    while k < n:
        if p + 4 >= len(TEXT) or k == 0:
            state, p = np.zeros(2), 0
        inputs = [numbers[ch] for ch in TEXT[p : p + 3]]
        targets = [numbers[ch] for ch in TEXT[p + 1 : p + 4]]
        for t in range(len(inputs)):
            state = np.tanh(x * inputs[t] * 0.1 + 0.5 * state)
            total += np.sum(state) * targets[t]
        p += 3
        k += 1
    return total


def windows_of_lists(x, n):
    total, p = 0.0 * x, 0
    for k in range(n):
        left, right = RATES[p : p + 2]
        (weight, place), second = PAIRS[p : p + 2][0], PAIRS[(k + 1) % 6]
        total = total + weight * x**place + left * np.sin(right * x) + second[0] * x
        p = (p + 2) % 4
    return total


def by_the_step(x, n):
    """What is read is there for certain: no check is made."""
    total = 0.0 * x
    for k in range(5):
        a, b, c = RATES[k : k + 3]
        total = total * a + b * x + c + ord(TEXT[k]) * x
    return total


def floats_stay_weak(x, n):
    y = np.ones(3, np.float32)
    for k in range(n // 4 + 1):
        y = y * RATES[k % 7] + PAIRS[k % 6][0]
    assert y.dtype == np.float32
    return np.sum(y.astype(np.float64)) * x


def bound_by_the_first_step(x, n):
    for k in range(n):
        if k == 0:
            h = np.ones(2) * x
        h = np.tanh(h * x + 0.1 * k)
    return np.sum(h)


def bound_now_and_then(x, n):
    p, k, total = 0, 0, 0.0
    while k < n:
        if p > 4 or k == 0:
            h, p = x * 1.0, 0
        before, h = h, np.sin(h + p)
        total += before * h
        p += 3
        k += 1
    return total + h


RIGHT = [windows_of_a_text, windows_of_lists, by_the_step, floats_stay_weak]
RIGHT += [bound_by_the_first_step, bound_now_and_then]


@pytest.mark.parametrize("fun", RIGHT)
def test_recorded_once(fun):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of loops that are written out
        value, slope = ckad.value_and_grad(fun, engine="vm")(0.7, 20)
    tolerance = 1e-6 if fun is floats_stay_weak else 1e-13
    np.testing.assert_allclose(value, fun(0.7, 20), rtol=tolerance)
    if fun is not floats_stay_weak:
        by_differences = (fun(0.7 + 1e-6, 20) - fun(0.7 - 1e-6, 20)) / 2e-6
        np.testing.assert_allclose(slope, by_differences, rtol=1e-7)
    rows = [len(ckad.trace(fun)(0.7, n).rows) for n in (20, 34)]
    assert rows[0] == rows[1]


def beyond_the_end(x, n):
    p = 0
    for _ in range(n):
        x = x * sum(RATES[p : p + 3])
        p += 1 + (x > 1e3) * 0
    return x


def below_the_start(x, n):
    p = 3
    for _ in range(n):
        x = x * sum(RATES[p : p + 3])
        p -= 1 - (x > 1e3) * 0
    return x


@pytest.mark.parametrize("fun", [beyond_the_end, below_the_start])
def test_a_shorter_part_stops_the_program(fun):
    """Python would give fewer items there."""
    assert ckad.jit(fun, engine="vm")(1.0, 3) == fun(1.0, 3)
    with pytest.raises((IndexError, ConcreteValueError)):
        ckad.jit(fun, engine="vm")(1.0, 9)


@pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning")
def test_the_last_part_is_shorter():
    """Where it is known that a part may be, the loop is written out, and right."""

    def batches(x):
        for k in range(0, 7, 3):
            x = x + len(RATES[k : k + 3]) * x * sum(RATES[k : k + 3])
        return x

    np.testing.assert_allclose(ckad.jit(batches, engine="vm")(0.7), batches(0.7), rtol=1e-14)


def test_a_name_that_is_not_bound_yet():
    def late(x, n):
        for k in range(n):
            if k == 3:
                h = x
            x = x + h
            h = 2 * x
        return x

    with pytest.raises((UnboundLocalError, NameError)):
        ckad.jit(late, engine="vm")(0.5, 20)


def test_what_is_asked_of_a_part_of_a_text():
    def compared(x, n):
        p = 0
        for _ in range(n):
            x = x + (1.0 if TEXT[p : p + 2] == "he" else 0.5)
            p = (p + 2) % 8
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ckad.jit(compared, engine="vm")(0.5, 12) == compared(0.5, 12)
