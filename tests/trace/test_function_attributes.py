"""Attributes of functions: counters, caches and settings that loops and branches change."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad

from .idioms import check, check_further

PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS.append(function)
    return function


def counted(function):
    @functools.wraps(function)
    def wrapper(*args):
        wrapper.calls += 1
        return function(*args)

    wrapper.calls = 0
    return wrapper


@counted
def decay(x, rate):
    return x - 0.01 * rate * x


@program
def counted_calls(a, b):
    decay.calls = 0
    for _ in range(30):
        a = decay(a, b)
    return a * decay.calls


@program
def counted_twice_a_step(a, b):
    decay.calls = 0
    for _ in range(12):
        a = decay(decay(a, b), 0.5 * b)
    return a + b * decay.calls


@program
def counted_by_a_function_of_its_own(a, b):
    def slower(x):
        slower.calls += 1
        return x * slower.factor

    slower.calls, slower.factor = 0, 0.9
    for _ in range(30):
        if a > 0.5:
            a = slower(a) - 0.01 * b
        else:
            a = a + 0.3
            slower.factor = 0.99 * slower.factor
    return a * slower.calls


@program
def told_by_the_step_that_makes_it(a, b):
    total = 0.0
    for k in range(30):

        def scaled(x):
            return x * scaled.factor

        scaled.factor = a if k % 3 else b
        if a > 1.0:
            scaled.factor = scaled.factor * 0.5
        a = scaled(0.7) + 0.1
        total += a
    return total


@program
def counted_in_a_nest(a, b):
    decay.calls = 0
    for k in range(6):
        for _ in range(k + 1):
            a = decay(a, b)
        a = a + 0.01 * decay.calls
    return a


@program
def counted_on_one_side(a, b):
    decay.calls = 0
    for _ in range(20):
        a = decay(a, b) if a > 0.6 else a + 0.05 * b
    return a * (1 + decay.calls)


@program
def counted_until(a, b):
    decay.calls = 0
    while a > 0.5:
        a = decay(a, b)
        if decay.calls > 40:
            break
    return a * decay.calls + b


def relaxed(x, target):
    relaxed.change = abs(target - x)
    return x + 0.1 * (target - x)


@program
def the_last_change(a, b):
    relaxed.change = 1.0
    while relaxed.change > 0.05:
        a = relaxed(a, b)
    return a * relaxed.change


def highest(x):
    highest.seen = max(highest.seen, x)
    return highest.seen


@program
def the_greatest_so_far(a, b):
    highest.seen = 0.0
    for k in range(15):
        highest(a * np.sin(0.3 * k) + b * k / 15)
    return highest.seen**2


def memory(x):
    x = 0.9 * x + 0.1 * memory.last
    memory.last = x
    return x


@program
def what_was_computed_last(a, b):
    memory.last = b
    for _ in range(25):
        a = memory(a) + 0.01
    return a + memory.last


@program
def an_array_is_kept(a, b):
    spread.u = np.array([a, b, a * b])
    for _ in range(10):
        spread()
    return np.sum(spread.u**2)


def spread():
    spread.u = spread.u + 0.1 * (np.roll(spread.u, 1) - spread.u)


@program
def an_element_is_written(a, b):
    spread.u = np.array([a, b, a * b])
    for k in range(10):
        spread.u[k % 3] += 0.1 * spread.u[(k + 1) % 3]
    return np.sum(spread.u)


@program
def of_a_function_inside(a, b):
    def step(x):
        step.n += 1
        return x * (1 - 0.01 * b)

    step.n = 0
    for _ in range(20):
        a = step(a)
    return a * step.n


class Scheme:
    def advance(self, x, rate):
        return decay(x, rate) + 0.001 * decay.calls


@program
def through_a_method(a, b):
    decay.calls = 0
    scheme = Scheme()
    for _ in range(16):
        a = scheme.advance(a, b)
    return a


@program
def set_by_name(a, b):
    decay.calls = 0
    for _ in range(10):
        setattr(decay, "calls", getattr(decay, "calls") + 2)  # noqa: B009, B010
        a = a * (1 - 0.01 * b)
    return a * decay.calls


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_program(function: Callable[..., Any]) -> None:
    check(function, 0.7, 0.45)


@pytest.mark.parametrize(
    "function", [counted_until, what_was_computed_last, an_array_is_kept], ids=lambda f: f.__name__
)
def test_second_derivatives_and_the_native_engine(function: Callable[..., Any]) -> None:
    check_further(function, 0.7, 0.45)


def test_what_a_loop_binds_is_undone_when_the_recording_ends() -> None:
    def function(a):
        for _ in range(20):
            a = decay(a, 0.3)
        return a * decay.calls

    decay.calls = 5
    value = ckad.value_and_grad(function)(0.7)[0]
    assert decay.calls == 5
    assert value == function(0.7)


def test_what_straight_code_binds_stays_as_in_python() -> None:
    def function(a):
        return decay(a, 0.3) * decay.calls

    decay.calls = 0
    values = [ckad.value_and_grad(function)(0.7)[0] for _ in range(3)]
    assert decay.calls == 3
    decay.calls = 0
    assert values == [function(0.7) for _ in range(3)]


def test_a_counter_from_outside_is_read_anew() -> None:
    def function(a):
        return a * decay.calls

    for calls in (2, 7):
        decay.calls = calls
        assert ckad.grad(function)(0.7) == calls


def called_by_its_signature(f, x):
    return f(x, 2.0) if f.__code__.co_argcount > 1 else f(x)


def test_a_function_of_the_function_says_how_many_arguments_it_takes() -> None:
    def program(a):
        def one(x):
            return a * np.sum(x**2)

        def two(x, y=3.0):
            return a * np.sum(x) * y

        x = np.array([a, 2 * a])
        last = called_by_its_signature(lambda x, y, *z: y * np.sum(a * x), x)
        return called_by_its_signature(one, x) + called_by_its_signature(two, x) + last

    check(program, 0.7)
