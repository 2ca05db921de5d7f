"""Lists and deques whose length loops and branches change: recorded once, as in Python."""

from __future__ import annotations

import enum
import math
from collections import deque

import numpy as np
import pytest

import ckad
from ckad.errors import BudgetError, RaisedError, TraceError, UnrolledLoopWarning


class Log:
    def __init__(self):
        self.kept, self.calls = [], 0

    def put(self, x):
        self.calls += 1
        if self.calls % 4 == 0:
            self.kept.append(x)
        return self.kept[-1] if len(self.kept) > 0 else x


def last_item(a, n):
    xs = [a]
    for _ in range(n):
        xs.append(xs[-1] * 0.9 + 0.1 * np.sin(xs[-1]))
    return xs[-1] + sum(xs) + max(xs) + len(xs)


def last_two(a, n):
    xs = [a, 2 * a]
    for _ in range(n):
        xs.append(0.5 * xs[-1] + 0.3 * xs[-2] * a)
    return xs[-1] + np.mean(xs) + min(xs)


def arrays(a, n):
    us = [a * np.ones(3)]
    for _ in range(n):
        u = us[-1]
        us.append(u * 0.9 + 0.1 * np.sin(u) * np.arange(3))
    return np.sum(us[-1]) + np.sum(np.array(us) ** 2) + us[3][1]


def arrays_taken_apart(a, n):
    def slope(u, t):
        return np.array([u[1], -a * np.sin(u[0]) + np.cos(t)])

    us = [a * np.ones(2), a * np.arange(2.0)]
    for k in range(n):
        before, last = us[-2:]
        us.append(last + 0.05 * (1.5 * slope(last, 0.1 * k) - 0.5 * slope(before, 0.1 * k)))
    before, last = us[-2:]
    return np.sum(us) + last[0] * before[1]


def multistep(a, n):
    """Adams and Bashforth's, which begins with as many steps of Euler's as there are slopes."""
    slopes, u, coefficients = deque(maxlen=3), a * np.ones(2), [23 / 12, -16 / 12, 5 / 12]
    for k in range(n):
        slopes.appendleft(np.array([u[1], -a * np.sin(u[0]) + np.cos(0.1 * k)]))
        if k < 2:
            u = u + 0.1 * slopes[0]
        else:
            u = u + 0.1 * sum(c * f for c, f in zip(coefficients, slopes, strict=True))
    return u[0] + 2.0 * u[1]


class Multistep:
    def __init__(self, h):
        self.h, self.past = h, deque(maxlen=2)

    def step(self, f):
        self.past.append(f)
        if len(self.past) < 2:
            return self.h * f
        return self.h * (1.5 * self.past[-1] - 0.5 * self.past[0])


def multistep_of_an_object(a, n):
    method, u, t = Multistep(0.05), a, 0.0
    while t < 0.05 * n:
        u = u + method.step(-a * u + np.sin(t))
        t += method.h
    return u


def every_seventh(a, n):
    u, t, frames, times = a * np.ones(4), 0.0, [], []
    for k in range(n):
        u = u + 0.01 * np.sin(u) * np.arange(4)
        t += 0.1 * a
        if k % 7 == 0:
            frames.append(u.copy())
            times.append(t)
    return np.sum((frames[-1] - frames[0]) ** 2) + times[-1] + len(frames)


def above(a, n):
    x, xs = a, []
    for k in range(n):
        x = x * 0.97 + 0.2 * np.sin(3 * x + k)
        if x > 1.0:
            xs.append(x * x)
    return sum(xs) + np.mean(xs) + xs[-1] + max(xs) - min(xs) + np.max(xs) + len(xs)


def delay(a, n):
    xs, out = [a + 0.01 * k for k in range(20)], []
    for _ in range(n):
        before = xs.pop(0)
        x = xs[-1] + 0.1 * (0.2 * before / (1 + before**4) - 0.1 * xs[-1])
        xs.append(x)
        out.append(x)
    return np.mean(out) + out[-1] + xs[0]


def string(a, n):
    line, sound = deque([a * (1 if k < 25 else -1) for k in range(50)], maxlen=50), []
    for _ in range(n):
        first = line.popleft()
        sound.append(first)
        line.append(0.4985 * (first + line[0]))
    return np.sum(np.array(sound) * np.cos(np.arange(n)))


def turned(a, n):
    ring, total = deque([a * k for k in range(12)]), 0.0
    for _ in range(n):
        ring.rotate(1)
        total += ring[0] * ring[3]
    return total


def window(a, n):
    seen, total = deque(maxlen=10), 0.0
    for k in range(n):
        seen.append(a * np.sin(0.1 * k))
        mean = sum(seen) / len(seen)
        total += math.sqrt(sum((x - mean) ** 2 for x in seen) / len(seen) + 0.01)
    return total


def shortened(a, n):
    xs, x = [a], a
    for _ in range(n):
        x = 0.9 * x + 0.2 * np.cos(x)
        xs.append(x)
        if len(xs) > 10:
            xs.pop(0)
    return xs[-1] + xs[0] + len(xs)


def two_lists(a, n):
    one, other = [a], [0.0]
    for _ in range(n):
        one.append(one[-1] * 0.99 + other[-1] * 0.01)
        other.append(other[-1] * 0.9 + one[-2] * 0.1)
    return one[-1] + other[-1] * sum(one)


def left_early(a, n):
    x, xs = a, [a]
    for _ in range(n):
        x = 0.9 * x + 0.05
        xs.append(x)
        if abs(xs[-1] - xs[-2]) < 1e-2:
            break
    return xs[-1] + sum(xs) / len(xs)


def counted_while(a, n):
    x, y, path, t = a, 0.0, [], 0.0
    while t <= 0.1 * n:
        x += 0.1 * y
        y -= 0.1 * x
        path.append([x, y, t])
        t += 0.1
    return np.mean(np.array(path) ** 2)


def until_small(a, n):
    x, error, errors = a, 1.0, []
    while error > 1e-6 and len(errors) < n:
        y = 0.5 * (x + 2 / x)
        error = abs(y - x)
        x = y
        errors.append(error)
    return x + sum(errors) + len(errors)


def nested(a, n):
    xs = [a]
    for _ in range(n):
        for j in range(6):
            xs.append(xs[-1] * 0.99 + 0.001 * j)
    return xs[-1] + sum(xs)


def pairs(a, n):
    history = [(0, a)]
    for k in range(n):
        _, x = history[-1]
        history.append((k, 0.9 * x + 0.1 * np.cos(x)))
    return history[-1][1] + sum(x for _, x in history) + history[3][1]


def filtered(a, n):
    x, xs = a, []
    for k in range(n):
        x = x * 0.97 + 0.2 * np.sin(3 * x + k)
        xs.append(x)
    high = [c for c in xs if c > 1.0]
    return sum((c - a) ** 2 for c in xs if c < a) + len(high) * 0.5 + sum(abs(c) for c in high)


def if_empty(a, n):
    x, xs = a, []
    for _ in range(n):
        x = 0.9 * x + 0.1
        if not xs or x < xs[-1] - 0.01:
            xs.append(x)
    return xs[-1] + len(xs)


def of_an_object(a, n):
    log, x = Log(), a
    for _ in range(n):
        x = 0.9 * x + 0.1 * log.put(np.sin(x))
    return log.kept[-1] + np.mean(log.kept) + len(log.kept)


def returned(a, n):
    def run(x):
        xs = [x]
        for _ in range(n):
            xs.append(xs[-1] * 0.9 + np.sin(xs[-1]) * 0.1)
        return xs

    xs = run(a)
    ys, zs = [2 * x for x in xs], list(xs)
    zs.append(3.0)
    return sum(ys) + zs[-2] + len(zs) + sorted(ys)[2] + xs[-3:][0]


def from_the_end(a, n):
    todo = [a, 2 * a, 3 * a]
    for _ in range(n):
        x = todo.pop()
        todo.append(0.9 * x)
        todo.append(0.1 * x)
        todo.pop()
    return todo[-1] + todo[0]


class Route(enum.IntEnum):
    ORAL = 0
    BOLUS = 1


def doses(a, n):
    events = [(0.0, Route.ORAL, 10.0), (1.25, Route.BOLUS, 8.0), (2.45, Route.ORAL, 5.0)]
    t, amounts, out = 0.0, np.zeros(2), []
    for _ in range(n):
        while events and events[0][0] <= t + 1e-9:
            _, route, amount = events.pop(0)
            amounts[route] += amount
        amounts = amounts + 0.1 * np.array([-a * amounts[0], a * amounts[0] - 0.2 * amounts[1]])
        t += 0.1
        out.append(amounts[1])
    return max(out) + np.mean(out) + len([x for x in out if x > 4.0])


def events_by_words(a, n):
    events = [(0.0, "oral", 10.0), (1.25, "bolus", 8.0), (2.45, "oral", 5.0)]
    t, gut, blood = 0.0, 0.0, 0.0
    for _ in range(n):
        if len(events) > 0 and t >= events[0][0]:
            _, route, amount = events.pop(0)
            if route == "oral":
                gut = gut + a * amount
            else:
                blood += amount
        gut, blood = 0.9 * gut, blood + 0.1 * gut - 0.02 * a * blood
        t += 0.1
    return blood + gut


def events_that_make_others(a, n):
    queue, x, t = [(0.3, 1.0)], a, 0.0
    for _ in range(n):
        while queue and queue[0][0] <= t:
            when, amount = queue.pop(0)
            x += amount
            queue.append((when + 0.7, amount * 0.9 * a))
        x = x - 0.1 * x * a
        t += 0.1
    return x + len(queue)


ONCE = [
    (last_item, 40),
    (last_two, 40),
    (arrays, 40),
    (arrays_taken_apart, 40),
    (multistep, 40),
    (multistep_of_an_object, 40),
    (every_seventh, 60),
    (above, 60),
    (delay, 90),
    (string, 120),
    (turned, 30),
    (window, 40),
    (shortened, 50),
    (two_lists, 50),
    (left_early, 60),
    (counted_while, 40),
    (until_small, 30),
    (nested, 20),
    (pairs, 30),
    (filtered, 50),
    (if_empty, 40),
    (of_an_object, 60),
    (returned, 30),
    (from_the_end, 30),
    (doses, 60),
    (events_by_words, 60),
    (events_that_make_others, 60),
]


def appended_then_written(a, n):
    u, history = a * np.ones(3), [a * np.ones(3)]
    for k in range(n):
        u = u.copy()
        history.append(u)
        if k % 2 == 0:
            u *= 0.99
        u += 0.1 * np.sin(u)
    return history[-1].sum() + history[0].sum()


def one_array_again_and_again(a, n):
    u, history = a * np.ones(3), []
    for k in range(n):
        if k % 5 == 0:
            history.append(u)
        u += 0.1 * np.sin(u)
    return history[-1].sum() + history[0].sum()


def agrees(program, n, engine):
    a, h = 1.3, 1e-6
    value, gradient = ckad.value_and_grad(program, engine=engine)(a, n)
    np.testing.assert_allclose(value, program(a, n), rtol=1e-11)
    slope = (program(a + h, n) - program(a - h, n)) / (2 * h)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-7)
    return value, gradient


@pytest.mark.parametrize(("program", "n"), ONCE, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.filterwarnings("error::ckad.errors.UnrolledLoopWarning")
def test_lists_that_grow_are_recorded_once(program, n):
    found = agrees(program, n, "vm")
    ways = [loop.way for loop in ckad.explain(program, 1.3, n).loops]
    assert not [way for way in ways if way.startswith("written out") and "short" not in way]
    for memory in (20_000, 60_000, 300_000):
        try:
            within = ckad.value_and_grad(program, engine="vm", memory=memory)(1.3, n)
        except BudgetError:
            continue
        assert within == found
        break
    else:
        raise AssertionError("no budget was enough")


@pytest.mark.parametrize("program", [last_item, above, string, window, pairs])
def test_lists_that_grow_in_machine_code(program):
    agrees(program, 40, "native")


@pytest.mark.parametrize("program", [last_item, above, delay])
def test_lists_that_grow_in_second_derivatives(program):
    h, gradient = 1e-5, ckad.grad(program, engine="vm")
    slope = (gradient(1.3 + h, 30) - gradient(1.3 - h, 30)) / (2 * h)
    second = ckad.grad(lambda a: ckad.grad(program)(a, 30), engine="vm")(1.3)
    np.testing.assert_allclose(second, slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("program", [appended_then_written, one_array_again_and_again])
@pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning")
def test_an_item_shows_what_is_written_into_its_array(program):
    assert issubclass(UnrolledLoopWarning, Warning)
    agrees(program, 20, "vm")


def taken_apart_in_steps(x, n):
    window, total = [1.0], 0.0
    for k in range(n):
        window.append(x * k)
        if len(window) > 3:
            window.pop(0)
        first, *others = window
        total = 0.9 * total + first * len(others)
    (*_, last), (second, _) = window, window[:2]
    return total + last * second


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_what_a_list_holds_is_taken_apart(engine):
    agrees(taken_apart_in_steps, 20, engine)


def the_best_of_a_window(x, n):
    window, total = [x, 1.0, 2.0], 0.0
    for k in range(n):
        window.append(x * np.sin(k))
        window.pop(0)
        total += max(window, key=lambda v: -v) + 0.1 * sorted(window, key=abs)[1]
    return total


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_items_are_chosen_by_a_key(engine):
    agrees(the_best_of_a_window, 20, engine)


def the_best_of_what_is_left(x, n):
    left = [x, 1.0, 2.0]
    if x > 0.0:
        best = max(left, key=lambda v: -v)
        left.pop(0)
    return best * n


def test_items_of_a_list_left_open_are_not_chosen_by_a_key():
    with pytest.raises(TraceError, match="which items a list has depends on a traced condition"):
        ckad.grad(the_best_of_what_is_left)(0.7, 20)


def taken_apart_where_it_is_left_open(x, n):
    found, misses = [1.0], 0
    for k in range(n):
        if x * k > 1.0:
            found.append(x * k)
    try:
        first, second = found
        misses += first * second
    except ValueError:
        misses += 1
    return x * misses


def test_a_list_of_another_length_than_names_stops_the_program():
    def both(x):
        found, t = [x], 0.0
        while t < 3.0:
            if t > x:
                found.append(0.5 * found[-1])
            t += 0.5
        first, second = found
        return first + second

    assert ckad.grad(both, engine="vm")(2.2) == 1.5
    for x in (0.7, 2.7):
        with pytest.raises(RaisedError, match="first, second = found"):
            ckad.jit(both, engine="vm")(x)


def test_a_list_of_unknown_length_is_not_taken_apart_where_an_error_is_awaited():
    with pytest.raises(TraceError, match="which items a list has depends on a traced condition"):
        ckad.grad(taken_apart_where_it_is_left_open)(0.7, 20)


outside = []


def test_lists_of_the_caller_keep_no_traced_values():
    given, record = [1.0], {"x": 0.0}

    def noted(x, xs, record):
        outside.append(x)
        xs.append(2 * x)
        record["x"] = x
        return xs[-1] * x + record["x"]

    def noted_within(x):
        seen = []
        slope = ckad.grad(lambda y: (seen.append(y), y**3)[1])(x)
        return slope + sum(seen)

    with pytest.raises(TraceError):
        ckad.jit(noted_within)(2.0)
    for _ in range(2):
        assert ckad.grad(noted)(3.0, given, record) == 13.0
        assert (outside, given, record) == ([], [1.0], {"x": 0.0})


@pytest.mark.parametrize("kind", [list, deque])
@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_items_are_appended_behind_all_that_loops_have_left(kind, steps):
    def f(x, most):
        waiting, total, k = kind([x, 2.0]), 0.0, 0
        while waiting and k < most:
            total = 10.0 * total + (waiting.pop(0) if kind is list else waiting.popleft())
            k += 1
        waiting.append(3.0 * x)
        waiting.insert(0, 4.0) if kind is list else waiting.appendleft(4.0)
        while waiting:
            total = 10.0 * total + (waiting.pop(0) if kind is list else waiting.popleft())
        return total

    found = ckad.jit(f, engine="vm")(1.1, float(steps))
    assert found == pytest.approx(f(1.1, float(steps)), rel=1e-14)
