"""Loops that are recorded again: what is recalled of them is a guess that shows nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import CarryError, CkadError
from ckad.trace.source.control import loops
from ckad.trace.source.control.recalled import guesses
from ckad.trace.source.memory.contents import ITEMS, Stacked, contents
from ckad.trace.source.memory.housing import check_alike
from ckad.trace.source.names.frame import open_ledger
from ckad.transforms import reuse


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    guesses.clear()
    yield
    guesses.clear()


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The line of a loop for each time that its body is recorded."""
    seen: list[int] = []
    run = loops.StagedLoop._round

    def counted(self: Any) -> Any:
        seen.append(self.steps.node.lineno)
        return run(self)

    monkeypatch.setattr(loops.StagedLoop, "_round", counted)
    return seen


def tape(function: Callable[..., Any], *args: Any) -> list[str]:
    """Its rows, without lines of the program: a constant has that where it was first met."""
    reuse.clear()
    lines = str(ckad.trace(function)(*args)).splitlines()
    return [line for line in lines if not line.lstrip().startswith("#")]


def check_like_first(function: Callable[..., Any], before: tuple[Any, ...], *args: Any) -> None:
    """Recorded after other arguments it is the program that it would be without them."""
    guesses.clear()
    alone = tape(function, *args)
    guesses.clear()
    tape(function, *before)
    assert tape(function, *args) == alone
    reuse.clear()
    np.testing.assert_allclose(ckad.jit(function)(*args), function(*args), rtol=1e-12)


def smoothed(u, k):
    u, old, most, t = u.copy(), u, 0.0, 0.0
    for _ in range(6):
        new = u.copy()
        new[1:-1] = u[1:-1] + k * (u[2:] - u[:-2])
        old, u = u, new
        most = max(most, np.max(u))
        t += k
    return np.sum(u * old) + most + t


def test_a_loop_is_recorded_once_for_another_shape(rounds):
    tape(smoothed, np.linspace(0.0, 1.0, 7), 0.1)
    assert len(rounds) > 1
    rounds.clear()
    tape(smoothed, np.linspace(0.0, 1.0, 9), 0.2)
    assert len(rounds) == 1
    check_like_first(smoothed, (np.ones(7), 0.1), np.linspace(0.0, 1.0, 9), 0.2)


class Pendulum:
    def __init__(self, angle):
        self.angle, self.speed, self.trace = angle, 0.0, []

    def step(self, dt):
        self.speed -= dt * np.sin(self.angle)
        self.angle += dt * self.speed
        self.trace.append(2.0 * self.angle)


def swung(angle, dt):
    pendulum, seen = Pendulum(angle), {"fast": [], "slow": []}
    for _ in range(8):
        pendulum.step(dt)
        seen["fast"].append(pendulum.speed)
    return np.sum(np.array(seen["fast"])) + np.sum(np.array(pendulum.trace))


def test_attributes_and_lists_are_recalled(rounds):
    tape(swung, np.array(0.3), 0.1)
    rounds.clear()
    tape(swung, np.array(0.4), 0.2)
    assert len(rounds) == 1
    check_like_first(swung, (np.array(0.3), 0.1), np.array(0.4), 0.2)


def chosen(x, n, moves, stops, notes):
    """What its loop carries, writes, appends and ends on depends on options."""
    y, total, last, found = x.copy(), 0.0, 0.0, []
    for k in range(n):
        if not moves:
            last = 0.5 * k
        total = total + np.sum(y) * last
        if moves:
            y[1:] += 0.1 * y[:-1]
            last = total * 0.1
        if notes:
            found.append(total)
        if stops and total > 3.0:
            break
    return total + last + np.sum(np.array(found)) if notes else total + last


OPTIONS = [(a, b, c) for a in (True, False) for b in (True, False) for c in (True, False)]
OPTIONS = [x for x in OPTIONS if not (x[1] and x[2])]


@pytest.mark.parametrize("before", OPTIONS, ids=str)
@pytest.mark.parametrize("now", OPTIONS, ids=str)
def test_an_option_changes_what_a_loop_does(before, now):
    x = np.array([0.5, 0.2, 0.4])
    check_like_first(chosen, (x, 5, *before), x, 6, *now)


def counted(x, step):
    n, items = 0, [1.0, 2.0, 4.0, 8.0, 16.0]
    for _ in range(3):
        n += step
        x = x * 1.5
    return x * items[n] if isinstance(n, int) else x * n


def test_a_number_stays_an_integer():
    check_like_first(counted, (np.array(1.5), 0.5), np.array(1.5), 1)
    check_like_first(counted, (np.array(1.5), 1), np.array(1.5), 0.5)


def grown(x, first):
    total = first
    for _ in range(4):
        total = total + x
    return np.sum(total)


def test_a_name_that_becomes_an_array():
    x = np.arange(3.0)
    for before, now in ((0, x), (x, 0), (0.0, 0), (0, 0.0), (np.ones(1), 0)):
        check_like_first(grown, (x, before), x, now)


def nested(u, n):
    v = np.zeros_like(u)
    for i in range(n):
        s = 0.0
        for j in range(1, len(u)):
            s += u[j] * v[j - 1]
            v[j] = u[j - 1] + 0.1 * s
        u[i] = s
    return np.sum(u * v)


def test_nests(rounds):
    tape(nested, np.linspace(0.0, 1.0, 6), 5)
    first = len(rounds)
    rounds.clear()
    tape(nested, np.linspace(0.0, 1.0, 7), 6)
    assert len(rounds) == 2 < first


def scaled(u, dt):
    t = 0.0
    for _ in range(4):
        t += dt
        u = u * np.cos(u)
    return u * t


def test_single_precision_stays():
    u = np.ones(3, np.float32)
    check_like_first(scaled, (u, np.float64(0.1)), u, np.float32(0.1))
    assert ckad.jit(lambda u: scaled(u, 0.1))(u).dtype == np.float32


def test_lists_are_housed_in_their_order():
    """Not in that of the places where Python has put them, which every process has others of."""
    with open_ledger():
        lists: list[list[float]] = [[float(k)] for k in range(16)]
        keys = [(contents(x), ITEMS) for x in lists]
        side = {key: (*key[0].owner, 1.0) for key in keys}
        with pytest.raises(Stacked) as found:
            check_alike([side, {}])
    assert found.value.owner is lists[0]


# --- lists in buffers, numbers that become floats, arrays that take turns ------------------------


def kept_where(x, n, how):
    """What the steps do with a list decides whether it has to be in buffers."""
    found = [1.0 * x]
    for _ in range(n):
        x = 0.9 * x
        if how == "chosen":
            if x > 0.3:
                found.append(x)
        elif how == "read":
            found.append(x + found[-1])
        elif how == "appended":
            found.append(x)
        elif how == "last":
            found.append(found.pop() * x)
    return sum(found) * len(found)


HOWS = ["chosen", "read", "appended", "last", "left"]


@pytest.mark.parametrize("before", HOWS)
@pytest.mark.parametrize("now", HOWS)
def test_lists_in_buffers(before, now):
    """Buffers that were made for nothing may have left rows in another order."""
    x = np.array(0.5)
    alone = tape(kept_where, x, 6, now)
    guesses.clear()
    tape(kept_where, x, 5, before)
    assert ops(tape(kept_where, x, 6, now)) == ops(alone)
    reuse.clear()
    assert ckad.jit(kept_where)(x, 6, now) == kept_where(x, 6, now)


def ops(lines: list[str]) -> list[str]:
    return sorted(line.split(" = ")[-1].split()[0] for line in lines[2:])


def test_lists_in_buffers_take_one_round(rounds):
    for how in HOWS[:3]:
        tape(kept_where, np.array(0.5), 5, how)
        rounds.clear()
        tape(kept_where, np.array(0.6), 5, how)
        assert len(rounds) == 1, how


def timed(u, dt, k, how):
    t, s = 0, 0
    for _ in range(4):
        if how == "added":
            t += dt
        elif how == "chosen":
            if u[0] > 1.0:
                t = t + k * dt
            else:
                t = t - k
        elif how == "one":
            t += 1
        elif how == "divided":
            t = (t + k) / 2
        s += t
        u = u * np.cos(u + t)
    return u * t, s * 1.5 if isinstance(s, int) else s * 2.5, t


TIMES = [("added", 0.5, 2), ("added", 3, 2), ("chosen", 0.5, 2.0), ("chosen", 2, 1)]
TIMES += [("one", 0.5, 2), ("divided", 2, 3)]


@pytest.mark.parametrize("before", TIMES, ids=str)
@pytest.mark.parametrize("now", TIMES, ids=str)
def test_integers_that_become_floats(before, now):
    u = np.array([0.5, 1.2])
    first, last = ((u, *of[1:], of[0]) for of in (before, now))
    alone = tape_or_error(timed, *last)
    guesses.clear()
    tape_or_error(timed, *first)
    assert tape_or_error(timed, *last) == alone


def tape_or_error(function: Callable[..., Any], *args: Any) -> list[str]:
    try:
        return tape(function, *args)
    except CkadError as error:
        return [str(error)]


def test_an_integer_that_becomes_a_float_takes_one_round(rounds):
    def run(u, dt, end):
        t = 0
        while t < end:
            step = dt * np.max(u)
            if t + step > end:
                step = end - t
            u = u + step * np.sin(u)
            t += step
        return u * t

    tape(run, np.array([0.5, 0.2]), 0.1, 1.0)
    rounds.clear()
    tape(run, np.array([0.5, 0.2, 0.3]), 0.2, 1.5)
    assert len(rounds) == 1


def test_arrays_that_take_turns_take_one_round(rounds):
    def run(u, n):
        old, now = u.copy(), u * 1.1
        for _ in range(n):
            old, now = now, 2.0 * now - old + 0.1 * np.roll(now, 1)
        return np.sum(old * now)

    tape(run, np.array([0.5, 0.2]), 6)
    rounds.clear()
    tape(run, np.array([0.5, 0.2, 0.3]), 7)
    assert len(rounds) == 1
    check_like_first(run, (np.ones(2), 6), np.array([0.5, 0.2, 0.3]), 7)


def test_an_error_is_one_without_guesses_too():
    """What is guessed may be wrong in a way that only shows after the loop."""
    allowed = []

    def record():
        allowed.append(guesses._attempt.allowed)
        guesses._attempt.used = True
        if guesses._attempt.allowed:
            raise CarryError("of a guess")
        return "recorded"

    assert guesses.attempted(record) == "recorded"
    assert allowed == [True, False]

    def refused():
        allowed.append(guesses._attempt.allowed)
        guesses._attempt.used = True
        raise CarryError("of the program")

    for _ in range(2):
        with pytest.raises(CarryError, match="of the program"):
            guesses.attempted(refused)
    assert allowed == [True, False] + [True, False] + [True]


# --- at other calls of the same function ---------------------------------------------------------


def stepped(u, k):
    total, most = 0.0, 0.0
    for _ in range(7):
        u[1:-1] += k * (u[2:] - u[:-2])
        total = total + np.sum(u**2)
        most = max(most, total)
    return total + most


def at_three_calls(x):
    u, v = x.copy(), np.cos(x)
    first = stepped(u, 0.1)
    second = stepped(v, 0.2 * first)
    return second + stepped(u, 0.3) + np.sum(u * v)


def at_calls_that_differ(x):
    def of(u, k, writes):
        total = 0.0
        for i in range(7):
            if writes:
                u[i] = u[i] + total * k
                k = k * 0.9
            total = total + u[i]
        return total + k

    u = x.copy()
    return of(u, 0.1, False) + of(u, 0.2, True) + of(x, 0.3, False) + of(u, x[0], True)


def test_what_one_call_finds_the_others_begin_with(rounds):
    tape(at_three_calls, np.linspace(0.0, 1.0, 7))
    alone = len(rounds)
    rounds.clear()
    guesses.clear()
    tape(lambda x: stepped(x.copy(), 0.1), np.linspace(0.0, 1.0, 7))
    assert alone == len(rounds) + 2


@pytest.mark.parametrize("function", [at_three_calls, at_calls_that_differ])
def test_calls_that_differ_are_right(function):
    x = np.linspace(0.1, 1.0, 7)
    check_like_first(function, (np.ones(9),), x)
    ckad.testing.check_grads(function, (x,), order=1)
