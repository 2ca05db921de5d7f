"""What loops keep in buffers, and which of them cannot be recorded once, is recalled, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.trace.source.control.recalled import guesses
from ckad.transforms import reuse

from .test_recalled_in_sight import rounds as rounds

U = np.array([0.5, 0.2, 0.3])
COUNT = 0
ROWS = [0.0, 1.0]


class Total:
    value = 0.0


TOTAL = Total()
TOTAL.value = 1.5


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    guesses.clear()
    yield
    guesses.clear()


def stacked(u, dt):
    ys, zs = np.zeros((1, 3)), np.array([[1.0], [2.0]])
    for _ in range(70):
        u = u - dt * np.sin(u)
        ys = np.vstack((ys, [u]))
        zs = np.hstack((zs, u[:2, None]))
    return np.sum(ys) + np.sum(zs**2)


def by_steps(u, dt):
    states, kept = {-1: u}, {}
    for t in range(6):
        kept[t] = dt * states[t - 1]
        states[t] = np.tanh(states[t - 1] + kept[t])
    total = np.zeros_like(u)
    for t in range(5, -1, -1):
        total = total + states[t] * kept[t]
    return np.sum(total)


def in_two_loops(u, dt):
    path, x = [], u[0]
    while x < 2.0:
        x = x + dt
        if x > 1.0:
            path.append([x, x * u[1]])
    for _ in range(5):
        x = x - dt * u[2]
        path.append([x, u[1]])
        if x > 1.0:
            path.append([x, dt])
    return np.sum(np.array(path))


def with_none(u, dt):
    last, total = None, u[0]
    for k in range(8):
        total = total + dt * np.sin(total)
        if last is not None:
            total = total + 0.1 * last
        last = u[k % 3] * dt
    return total


def counted_outside(u, dt):
    global COUNT
    for _ in range(6):
        COUNT += 1
        note.calls += 1
        u = u - dt * u**3
    return np.sum(u)


def note() -> None: ...


note.calls = 0  # type: ignore[attr-defined]


def unread(u, dt):
    kind = Total()
    for k in range(9):
        if np.sum(u) > 0.1 * k:
            kind.z = np.array([[None]])
        else:
            kind.z = u[:1]
        u = u - dt * u
    return np.sum(u)


def peeled(u, dt):
    for k in range(6):
        if k == 0:
            before = None
        u = u * (1.0 - dt) if before is None else u - dt * before
        before = np.sum(u) if k == 0 else u[::-1]
    return np.sum(u)


PROGRAMS = (stacked, by_steps, in_two_loops, with_none, counted_outside, unread, peeled)


def outline(tape: Any) -> list[str]:
    """The rows of a tape by their ops and types, in no order."""
    rows = [f"{row.op.name} {row.type}" for row in tape.rows]
    return sorted(rows + [x for body in tape.bodies for x in outline(body)])


def recorded(function: Callable[..., Any], *args: Any) -> Any:
    reuse.clear()
    return ckad.trace(function)(*args)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda x: x.__name__)
def test_a_program_is_recorded_again_in_one_round_for_each_loop(program, rounds):
    first = recorded(program, U, 0.1)
    assert len(rounds) > 1
    rounds.clear()
    again = recorded(program, U, 0.1)
    assert len(rounds) == len({x.steps.node for x in rounds})
    assert outline(again) == outline(first)
    reuse.clear()
    np.testing.assert_allclose(ckad.jit(program)(U, 0.2), program(U, 0.2), rtol=1e-12)


def into_an_object(u):
    total = TOTAL
    for _ in range(5):
        total.value = total.value + u[0]
        u = 0.9 * u
    return total.value


def into_a_list(u):
    rows = ROWS
    for _ in range(5):
        rows[0] = rows[0] + u[0]
        u = 0.9 * u
    return rows[0] * rows[1]


@pytest.mark.parametrize("program", [into_an_object, into_a_list])
def test_no_traced_value_stays_in_what_is_from_outside(program):
    for _ in range(3):
        recorded(program, U)
        assert TOTAL.value == 1.5
        assert ROWS == [0.0, 1.0]


@pytest.mark.parametrize("before", ["whole", "half"])
def test_a_number_that_is_none_at_first_has_the_type_that_it_gets(before):
    def run(u, kind):
        last, total = None, u[0]
        for k in range(6):
            total = total + np.sin(total) * (1 if last is None else last)
            last = (1 if last is None else last + 1) if kind == "whole" else u[k % 3]
        return total, last

    alone = {kind: recorded(run, U, kind) for kind in ("whole", "half") if not guesses.clear()}
    guesses.clear()
    recorded(run, U, before)
    for kind in ("whole", "half"):
        assert outline(recorded(run, U, kind)) == outline(alone[kind])
        reuse.clear()
        for found, given in zip(ckad.jit(run)(U, kind), run(U, kind), strict=True):
            np.testing.assert_allclose(found, given, rtol=1e-12)


def test_an_array_that_grows_otherwise_is_found_anew():
    def run(u, n, wide):
        ys = np.zeros((1, 3))
        for _ in range(n):
            u = 0.9 * u
            ys = np.vstack((ys, [u, u])) if wide else np.vstack((ys, [u]))
        return np.sum(ys * np.arange(len(ys))[:, None])

    calls = [(5, False), (80, False), (5, True), (9, False)]
    for before in calls:
        for now in calls:
            guesses.clear()
            alone = recorded(run, U, *now)
            guesses.clear()
            recorded(run, U, *before)
            assert outline(recorded(run, U, *now)) == outline(alone)


def test_a_loop_that_failed_may_be_recorded_with_another_option():
    def run(u, first):
        before = first
        for _ in range(5):
            u = u - 0.1 * np.sum(before)
            before = u
        return np.sum(u)

    for first in (None, 1.0, U, 2):
        for other in (1.0, U, 2):
            recorded(run, U, U if first is None else first)
            reuse.clear()
            np.testing.assert_allclose(ckad.jit(run)(U, other), run(U, other), rtol=1e-12)
