"""Numbers outside of a function that its loops count up and that decide nothing: whatever they
are, the recording holds; one that something is computed from is part of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import ckad
from ckad.trace.source.control.recalled import guesses
from ckad.transforms import reuse

from .test_recalled_in_sight import rounds as rounds

COUNT = 0


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    guesses.clear()
    reuse.clear()
    yield
    guesses.clear()


def counted(x):
    global COUNT
    for _ in range(6):
        try:
            x = x - 0.1 * x**3
        finally:
            COUNT += 1
    return x


def on_a_function(x):
    for _ in range(6):
        note()
        x = np.sin(x)
    return x


def note():
    note.calls += 1


note.calls = 0  # type: ignore[attr-defined]


def in_a_branch(x):
    global COUNT
    while x < 3.0:
        if x > 0.9:
            COUNT += 1
        x = x + 0.5
    return x


def _closure():
    calls = 0

    def run(x):
        nonlocal calls
        for _ in range(6):
            calls += 1
            x = np.cos(x)
        return x

    def bind(value):
        nonlocal calls
        calls = value

    return run, bind


by_closure, bind_calls = _closure()


def after(x):
    return counted(x) * COUNT


def before(x):
    return COUNT * x + counted(x)


def within(x):
    global COUNT
    for _ in range(6):
        COUNT += 1
        x = x * (0.5 if COUNT > 4 else 0.9)
    return x


def by_another(x):
    global COUNT
    for _ in range(6):
        COUNT += 1
        x = x + looked_up() * x
    return x


def looked_up():
    return sum([0.1 * COUNT for _ in range(2)])


def by_globals(x):
    return counted(x) * globals()["COUNT"]


def by_vars(x):
    return on_a_function(x) * vars(note)["calls"]


def as_length(x):
    x = counted(x)
    for _ in range(COUNT % 3):
        x = np.sin(x)
    return x


def last(x):
    global COUNT
    for _ in range(6):
        if x > 0.5:
            COUNT = 7
        x = 0.9 * x
    return x * COUNT


FREE = (counted, on_a_function, by_closure)
READ = (in_a_branch, after, before, within, by_another, by_globals, by_vars, as_length, last)


def set_all(value):
    global COUNT
    COUNT = note.calls = value
    bind_calls(value)


@pytest.mark.parametrize("program", FREE + READ, ids=lambda x: x.__name__)
def test_it_is_what_it_is_when_the_function_is_called(program):
    run = ckad.jit(program, engine="vm")
    for value in (0, 3, 9, 0, 5, 2**40, 30):
        for x in (0.7, 0.1):
            set_all(value)
            expected = program(x)
            set_all(value)
            np.testing.assert_allclose(run(x), expected, rtol=1e-12)


@pytest.mark.parametrize("program", FREE, ids=lambda x: x.__name__)
def test_one_that_decides_nothing_has_nothing_recorded_again(program, rounds):
    run = ckad.jit(program, engine="vm")
    run(0.7)
    rounds.clear()
    for value in (4, 0, 17):
        set_all(value)
        run(0.7)
    assert rounds == []


def test_a_number_of_another_kind_has_it_recorded_again(rounds):
    run = ckad.jit(counted, engine="vm")
    for value in (0, 1.5, 2**40):
        set_all(value)
        rounds.clear()
        np.testing.assert_allclose(run(0.7), counted(0.7), rtol=1e-12)
        assert rounds
