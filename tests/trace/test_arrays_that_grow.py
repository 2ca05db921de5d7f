"""Arrays that a loop makes longer, by np.append, np.vstack and the like: recorded once."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.errors import BudgetError, RaisedError
from ckad.trace.source.memory import growing

from .idioms import check


class Record:
    def __init__(self, a):
        self.h, self.n = np.array([a]), 0

    def add(self, x):
        self.h = np.append(self.h, x)
        self.n += 1


def of_an_object(a, n):
    r = Record(a)
    for _ in range(n):
        r.add(np.sin(r.h[-1]) + 0.1)
    return np.sum(r.h) + r.n


def rows_of_a_solver(a, n):
    ys = np.array([[a, 2.0]])
    for _ in range(n):
        y = ys[-1]
        y = y + 0.1 * np.array([y[1], -a * y[0]])
        ys = np.vstack((ys, y))
    return np.sum(ys**2)


def until_a_time(a, n):
    t, x = 0.0, np.zeros((2, 1)) + a
    h = x
    while t < n - 1e-9:
        t += 1.0
        x = np.sin(x) * a
        h = np.hstack((h, x))
    return np.sum(h**2) + h.shape[1]


def sometimes(a, n):
    h = np.array([])
    for k in range(n):
        if k % 3 == 0:
            h = np.append(h, np.sin(a * k))
        if len(h) > 2:
            h = np.append(h, h[-1] * 0.5)
    return np.sum(h**2) + h[2]


def nested(a, n):
    h = np.zeros((1, 3))
    for _ in range(n):
        for j in range(7):
            h = np.concatenate((h, [h[-1] * 0.5 + a * j]))
    return np.mean(h**2)


def above(a, n):
    x = a
    h = np.array([a])
    for k in range(n):
        x = x * 0.9 + 0.2 * np.cos(k)
        if x > 0.5:
            h = np.append(h, x)
    return np.sum(h**2) + len(h) + h[-1]


def left_with_the_first_row(a, n):
    """The first row is no row yet, and the loop may be left with it."""
    s = np.array([a, 0.3])
    rows = np.array(s)
    for k in range(n):  # noqa: B007
        s = s + 0.1 * np.array([s[1], -s[0]])
        rows = np.vstack((rows, s))
        if s[0] < 0.69:
            break
    return np.sum(rows[:, 1] * rows[:, 0]) + k * a + len(rows)


def left_in_the_first_step(a, n):
    found = None
    for k in range(n + 20):
        a = a * 0.9
        if found is None:
            found = np.array([a, a])
            if k < n:
                break
            continue
        found = np.hstack((found, [a]))
        if a < 0.3:
            break
    return np.sum(found**2) + k * a


def in_a_dict(a, n):
    d = {"t": np.array([0.0]), "x": np.array([a])}
    for _ in range(n):
        d["t"] = np.append(d["t"], d["t"][-1] + 0.1)
        d["x"] = np.append(d["x"], d["x"][-1] * 0.9)
    return np.trapezoid(d["x"], d["t"])


def by_while_and_break(a, n):
    h, k = np.array([a]), 0
    while True:
        k += 1
        if k > n:
            break
        h = np.append(h, h[-1] * 0.8)
    return np.sum(h) * h.size


def twice_by_the_same_name(a, n):
    h = np.array([a])
    for k in range(n):
        h = np.append(h, a * k)
    total = np.sum(h)
    for _ in range(n):
        h = np.append(h, h[-1] * 0.5)
    return total + np.sum(h)


def kept_in_another_name(a, n):
    h = np.array([a])
    longest = h
    for k in range(n):
        h = np.append(h, a * k)
        if k % 4 == 0:
            longest = h
    return np.sum(longest) + np.sum(h)


def swapped(a, n):
    g, h = np.array([a]), np.array([2 * a])
    for k in range(n):
        g, h = np.append(h, a * k), np.append(g, a)
    return np.sum(g * np.arange(len(g))) + h[-2]


def written_before_and_after(a, n):
    first = np.array([a, a])
    h = first
    for k in range(n):
        h = np.append(h, a * k)
    h[0] = 5.0
    return np.sum(h) + first[0]


def by_a_helper(a, n):
    def push(h, y):
        return np.vstack([h, y])

    h = np.zeros((1, 2))
    y = np.array([a, 1.0])
    for _ in range(n):
        y = y * 0.9 + a
        h = push(h, y)
    return np.mean(h) + h[-1, 0]


def left_early(a, n):
    h = np.array([a])
    k = 0
    while True:
        h = np.append(h, h[-1] * 0.8)
        k += 1
        if k >= n:
            break
    return np.sum(h) * h.size


def two_arrays(a, n):
    t = np.array([0.0])
    x = np.array([[a], [1.0]])
    for _ in range(n):
        t = np.append(t, t[-1] + 0.1)
        x = np.hstack((x, x[:, -1:] * 0.9))
    return np.trapezoid(x[0], t) + x[1, -1]


def columns(a, n):
    u = np.linspace(0, 1, 5) * a
    h = u.reshape(5, 1)
    for _ in range(n):
        u = u - 0.1 * np.roll(u, 1)
        h = np.column_stack((h, u))
    return np.mean(h**2)


def by_brackets(a, n):
    h = np.array([a])
    g = np.array([[a], [a]])
    for _ in range(n):
        h = np.r_[h, h[-1] * 0.5 + 1]
        g = np.c_[g, g[:, -1] * 0.9]
    return np.sum(h) + np.sum(g)


def several_rows(a, n):
    h = np.zeros((1, 2)) + a
    for k in range(n):
        h = np.vstack((h, h[-1] * 0.5))
        h = np.concatenate((h, np.array([[a, k], [k, a]])))
    return np.sum(np.sin(h))


def other_counts(a, n):
    h = np.array([a])
    for _ in range(n):
        x = h[-1] * 1.1
        if x > 2.0:
            h = np.append(h, [x * 0.5, x * 0.25])
        else:
            h = np.append(h, x)
    return np.sum(h**2) + len(h)


def the_one_before(a, n):
    h = np.array([a])
    s = 0.0
    for _ in range(n):
        old = h
        h = np.append(h, h[-1] * 0.9)
        s = s + np.sum(old) - 0.1 * np.sum(h)
    return s


def one_for_itself(a, n):
    h = np.array([a])
    s = 0.0
    for _ in range(n):
        z = np.append(h, 10.0 * a)
        h = np.append(h, h[-1] * 0.9)
        s = s + np.sum(z)
    return s + np.sum(h)


def from_nothing(a, n):
    h = np.empty((0, 2))
    x = np.array([a, 2 * a])
    for _ in range(n):
        x = np.cos(x)
        h = np.append(h, [x], axis=0)
    return h.mean(axis=0)[1] + h[n // 2, 0]


def from_a_list(a, n):
    h = []
    for k in range(n):
        h = np.append(h, np.sin(a * k))
    return np.sum(h**2)


def from_none(a, n):
    h = None
    x = a
    for _ in range(n):
        x = x * 0.9
        h = np.array([x]) if h is None else np.append(h, x)
    return np.sum(h)


def in_an_inner_loop(a, n):
    s = 0.0
    for k in range(n):
        h = np.array([a])
        for _ in range(6):
            h = np.append(h, h[-1] * 0.9 + k)
        s = s + np.sum(h)
    return s


def of_all_so_far(a, n):
    h = np.array([a])
    for _ in range(n):
        h = np.append(h, np.mean(h) * 0.5 + a)
    return h[-1] + h.max()


def lagged(a, n):
    h = np.array([a])
    for k in range(n):
        lag = h[k - 3] if k >= 3 else 1.0
        h = np.append(h, h[k] * 0.5 + 0.1 * lag)
    return h.sum()


def returned_early(a, n):
    h = np.array([a])
    for _ in range(n):
        h = np.append(h, h[-1] * 0.8)
        if h[-1] < 0.1:
            return np.sum(h)
    return h[-1]


def on_either_side(a, n):
    h = np.array([a])
    for k in range(n):
        g = h
        if k % 2 == 0:
            h = np.append(g, a * k)
        else:
            h = np.append(h, g[-1] * 0.5)
    return np.sum(h)


def from_an_integer(a, n):
    h = np.array([0])
    for k in range(n):
        h = np.append(h, a * k)
    return np.sum(h)


def blocks(a, n):
    h = np.ones((2, 2)) * a
    d = np.ones((2, 2, 1)) * a
    for _ in range(n):
        h = np.block([[h], [h[-1:] * 0.5]])
        d = np.dstack((d, d[:, :, -1] * 0.9))
    return np.sum(h) + np.sum(d)


def continued(a, n):
    h = np.array([a])
    for k in range(n):
        x = np.sin(k * a)
        if x < 0:
            continue
        h = np.append(h, x)
    return np.sum(h * h)


def in_a_state(a, n):
    def step(state, k):
        h, x = state
        x = x * 0.9
        return np.append(h, x), x

    state = (np.array([a]), a)
    for k in range(n):
        state = step(state, k)
    return np.sum(state[0]) + state[1]


def written_into(a, n):
    h = np.array([a])
    for _ in range(n):
        h = np.append(h, 0.5 * a)
        h[-1] = h[-1] + h[-2]
    return np.sum(h)


def put_in_front(a, n):
    h = np.array([a])
    for _ in range(n):
        h = np.concatenate(([h[0] * 0.9], h))
    return np.sum(h * np.arange(len(h)))


def inserted(a, n):
    h = np.array([a])
    for _ in range(n):
        h = np.insert(h, len(h), h[-1] * 0.9)
    return np.sum(h)


def window(a, n):
    h = np.array([a])
    for _ in range(n):
        h = np.append(h, h[-1] * 0.9)[-5:]
    return np.sum(h)


ONCE = [
    of_an_object,
    rows_of_a_solver,
    until_a_time,
    sometimes,
    nested,
    above,
    left_with_the_first_row,
    in_a_dict,
    by_while_and_break,
    twice_by_the_same_name,
    written_before_and_after,
    by_a_helper,
    left_early,
    two_arrays,
    columns,
    by_brackets,
    several_rows,
    other_counts,
    the_one_before,
    one_for_itself,
    from_nothing,
    from_a_list,
    from_none,
    in_an_inner_loop,
    of_all_so_far,
    lagged,
    returned_early,
    on_either_side,
    from_an_integer,
    blocks,
    continued,
    in_a_state,
]
WRITTEN_OUT = [written_into, put_in_front, inserted, window, swapped, kept_in_another_name]


def agrees(program, n, engine):
    a, h = 0.7, 1e-6
    value, gradient = ckad.value_and_grad(program, engine=engine)(a, n)
    np.testing.assert_allclose(value, program(np.float64(a), n), rtol=1e-11)
    slope = (program(a + h, n) - program(a - h, n)) / (2 * h)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-7)
    _, tangent = ckad.jvp(lambda a: program(a, n), (a,), (1.0,), engine=engine)
    np.testing.assert_allclose(tangent, gradient, rtol=1e-11)
    return value, gradient


@pytest.mark.parametrize("program", ONCE)
@pytest.mark.filterwarnings("error::ckad.errors.UnrolledLoopWarning")
def test_arrays_that_grow_are_recorded_once(program):
    n = 23
    found = agrees(program, n, "vm")
    ways = [loop.way for loop in ckad.explain(program, 0.7, n).loops]
    assert not [way for way in ways if way.startswith("written out") and "short" not in way]
    for memory in (12_000, 60_000, 300_000):
        try:
            within = ckad.value_and_grad(program, engine="vm", memory=memory)(0.7, n)
        except BudgetError:
            continue
        assert within == found
        break
    else:
        raise AssertionError("no budget was enough")


@pytest.mark.parametrize("program", [rows_of_a_solver, until_a_time, sometimes, other_counts])
def test_arrays_that_grow_in_machine_code(program):
    agrees(program, 40, "native")


@pytest.mark.parametrize("program", WRITTEN_OUT)
def test_other_things_done_with_arrays_that_grow(program):
    agrees(program, 11, "vm")


@pytest.mark.parametrize("n", [1, 2, 3, 12])
@pytest.mark.parametrize("program", [left_with_the_first_row, left_in_the_first_step])
def test_loops_that_are_left_in_their_first_steps(program, n):
    agrees(program, n, "vm")


@pytest.mark.parametrize("program", [rows_of_a_solver, sometimes, lagged])
def test_arrays_that_grow_in_second_derivatives(program):
    h, gradient = 1e-5, ckad.grad(program, engine="vm")
    slope = (gradient(0.7 + h, 20) - gradient(0.7 - h, 20)) / (2 * h)
    second = ckad.grad(lambda a: ckad.grad(program)(a, 20), engine="vm")(0.7)
    np.testing.assert_allclose(second, slope, rtol=1e-4, atol=1e-6)


def rows_until_small(a, n):
    h = np.array([a])
    while h[-1] > 1e-3:
        h = np.append(h, h[-1] * 0.9)
    return np.sum(h)


def as_many_as_traced(a, n):
    h = np.array([a])
    for _ in range(int(n * a) + 1):
        h = np.append(h, h[-1] * 0.9)
    return np.sum(h)


def columns_until(a, n):
    """Times, states and errors of steps that adapt, from numbers and empty lists on."""
    y, t, h, times, states, errors = np.array([1.0, 0.5]), 0.0, 0.01 * n, 0, np.ones((2, 1)), []
    while t < 1.0:
        y = y - h * a * y[::-1]
        t = t + h
        times, h = np.hstack((times, t)), 1.1 * h
        states = np.hstack((states, y[:, None]))
        errors = np.append(errors, [h, np.sum(y)])
    return np.sum(states[0] * times) + errors[-1] * len(errors) + np.max(np.diff(times))


@pytest.mark.parametrize("program", [rows_until_small, as_many_as_traced, columns_until])
def test_arrays_that_grow_for_a_time_that_is_not_known(program):
    assert "loop" in str(ckad.trace(program)(0.7, 3.3))
    check(program, 0.7, 3.3)


def test_a_program_stops_where_more_rows_are_made_than_were_assumed(monkeypatch):
    monkeypatch.setattr(growing, "ASSUMED", 50)
    with pytest.raises(RaisedError, match="more items than were assumed at step 100"):
        ckad.grad(lambda a: rows_until_small(a, 0), engine="vm")(1e9)


@pytest.mark.parametrize("start", [lambda: 0, lambda: 1.5, lambda: [], lambda: [2.0]])
def test_arrays_grow_from_numbers_and_lists(start):
    def path(a):
        y, t, found = 1.0, 0.0, start()
        for _ in range(40):
            y = y - 0.05 * a * y
            t = t + 0.01 * y
            found = np.hstack((found, t))
        return np.sum(found) + found[-1] ** 2

    assert str(ckad.trace(path)(0.7)).count("\n") < 60
    check(path, 0.7)


def test_the_memory_is_that_of_a_long_loop():
    """What grows is computed once for each step, not once for all rows in each step."""
    tapes = [ckad.trace(rows_of_a_solver)(0.7, n) for n in (50, 5000)]
    assert len(tapes[0]) == len(tapes[1])


def seen(x, n):
    """What is within range of a few posts: so few that the loop is written out."""
    z = np.zeros((0, 2))
    for i in range(n):
        d = x + 0.5 * i
        if d <= 1.5:
            z = np.vstack((z, np.array([[d, i * d]])))
    return z


def product_of_seen(x, n):
    z = seen(x, n)
    return np.sum(z[:, 0] * z[:, 1]) + len(z)


def drawn_and_seen_in_each_step(x, n):
    np.random.seed(3)
    t = total = 0.0
    while t < 0.6:
        t += 0.1
        z = seen(x + 0.01 * np.random.randn(), n)
        for i in range(len(z[:, 0])):
            total = total + z[i, 0] ** 2 * z[i, 1]
        x = x * 1.1
    return total


@pytest.mark.parametrize("n", [1, 3, 6])
@pytest.mark.parametrize("function", [product_of_seen, drawn_and_seen_in_each_step])
def test_few_steps_some_of_which_make_an_array_longer(function, n):
    for x in (0.3, 0.71, 5.0):
        value, slope = ckad.value_and_grad(function)(x, n)
        assert value == pytest.approx(function(x, n), rel=1e-14)
        by_differences = (function(x + 1e-6, n) - function(x - 1e-6, n)) / 2e-6
        assert slope == pytest.approx(by_differences, rel=1e-6, abs=1e-8)


def test_few_steps_of_which_python_knows_which_make_an_array_longer():
    def of_known_length(a):
        z = np.zeros(0)
        for i in range(4):
            if i % 2:
                z = np.append(z, a * i)
        return np.sum(z.reshape(2, 1) ** 2)

    assert ckad.value_and_grad(of_known_length)(2.0) == (40.0, 40.0)


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
@pytest.mark.parametrize("n", [2, 9])
def test_a_number_that_no_step_makes_longer_is_of_length_one(n):
    def from_a_number(a):
        h = 0.5
        for _ in range(n):
            if a < 0.3:
                h = np.append(h, a)
        return np.sum(np.asarray(h) ** 2) * a + np.size(h)

    for a in (0.1, 0.7):
        assert ckad.jit(from_a_number, engine="vm")(a) == pytest.approx(from_a_number(a))
