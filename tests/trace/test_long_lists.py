"""Lists that loops run over, look into by bisection, and fill with objects."""

from __future__ import annotations

import bisect
import itertools
import math
import random

import numpy as np
import pytest

import ckad
from ckad.errors import NoneValueError
from ckad.trace.source.control import repetition
from ckad.trace.source.control.sequences import long_lists

from .idioms import check_number

AT = 0.9


# --- items that steps change ---------------------------------------------------------------------


def ahead_of_the_loop(p):
    xs, places, total = [], [0], 0.0
    for n in range(40):
        xs.append(p + n)
    for x in xs:
        places[0] = min(places[0] + 1, 39)
        xs[places[0]] += 0.5 * x
        total += x
    return total


def behind_and_ahead_by_number(p):
    xs, total = [p + n for n in range(40)], 0.0
    for k, x in enumerate(xs):
        xs[(7 * k) % 40] = 0.1 * x
        total += x
    return total + xs[0]


def beside_another(p):
    xs, total = [], 0.0
    for n in range(40):
        xs.append(p + n)
    for x, y in zip(xs, xs[2:], strict=False):
        xs[5] = total
        total += x * y
    return total


def from_the_end(p):
    xs, total = [p + n for n in range(40)], 0.0
    for x in reversed(xs):
        xs[3] += 0.1 * x
        total += x
    return total


def beside_one_that_python_holds(p):
    xs, total = [float(k) for k in range(36)], 0.0
    ys = [p + x**2 for x in xs]
    for x, y in zip(xs, ys, strict=True):
        xs[-1] = p
        total += x * y
    return total + sum(xs)


def until_a_step_ends_it(p):
    xs, total = list(p * np.linspace(0.0, 1.0, 9)), 0.0
    for k, x in enumerate(xs):
        xs[5] = total
        total += x * (k + p)
        if x > 2.0:
            break
    return total + sum(xs)


CHANGED = [ahead_of_the_loop, behind_and_ahead_by_number, beside_another, from_the_end,
           beside_one_that_python_holds, until_a_step_ends_it]  # fmt: skip


@pytest.mark.parametrize("program", CHANGED)
def test_a_step_sees_what_steps_before_it_have_put_into_the_list(program):
    check_number(program, AT)


# --- many numbers --------------------------------------------------------------------------------

LEVELS = [0.05 * k for k in range(60)]


def levels(p):
    total = 0.0
    for level in LEVELS:
        total += np.sin(p * level)
    return total


def left_early(p):
    found = []
    for level in LEVELS:
        if level * p > 2.0:
            break
        found.append(level * p)
    else:
        found.append(100.0)
    return sum(found) + level


def made_of_each_other(p):
    xs = [p * k for k in range(100)]
    ys = [x**2 for x in xs]
    ws = [k * (x - y) for k, (x, y) in enumerate(zip(xs, ys, strict=True))]
    return sum(ws) + max(ys) + ws[3] * ws[-1]


def sums_of_sums(p):
    a = p * np.arange(120.0).reshape(10, 12)
    return sum([sum([i * s * a[s, i] for i in range(12)]) for s in range(10)])


@pytest.mark.parametrize("program", [levels, left_early, made_of_each_other, sums_of_sums])
def test_long_lists_of_numbers(program):
    check_number(program, AT)
    assert len(ckad.trace(program)(AT).rows) < 80


# --- items that may be None ----------------------------------------------------------------------


def looked_up(x, most):
    if x > most:
        return None
    return x**2


def with_gaps(p, most):
    found = []
    for k in range(40):
        found.append(looked_up(p * k, most))
    return sum(found) + np.mean(found) + max(found) + found[int(np.argmin(np.array(found)))]


def test_lists_whose_items_may_be_none():
    check_number(lambda p: with_gaps(p, 1000.0), AT)
    with pytest.raises(NoneValueError):
        ckad.value_and_grad(with_gaps)(AT, 30.0)


# --- places in sorted lists ----------------------------------------------------------------------


def segments(p):
    nodes, total = [p, 2 * p, 4.0, 5.0], 0.0
    for k in range(30):
        i = bisect.bisect(nodes, 0.2 * k * p)
        total += nodes[min(i, 3)] ** 2 + i * p
    return total


def kept_in_order(p):
    xs = []
    for k in range(12):
        bisect.insort(xs, np.sin(k * p))
    return xs[0] + 2 * xs[5] ** 2 + xs[-1]


def by_a_key(p):
    events = [(p, "a"), (2 * p, "b"), (5.0, "c")]
    return events[bisect.bisect_left(events, 1.1 * p, key=lambda x: x[0])][0] ** 2


@pytest.mark.parametrize("program", [segments, kept_in_order, by_a_key])
def test_bisection(program):
    check_number(program, AT)


# --- objects -------------------------------------------------------------------------------------


class Body:
    def __init__(self, x, v):
        self.x, self.v = x, v

    def move(self, force, dt):
        self.v += force * dt
        self.x += self.v * dt


def drawn(p):
    random.seed(1)
    bodies = []
    for _ in range(6):
        bodies.append(Body(random.uniform(-1.0, 1.0), random.random()))
    for _ in range(10):
        for one in bodies:
            one.move(sum(p * (other.x - one.x) for other in bodies if other != one), 0.01)
    return sum(one.x**2 for one in bodies)


def of_arrays(p):
    rng, bodies = np.random.default_rng(0), []
    for k in range(6):
        bodies.append(Body(rng.random(2), k * p * np.ones(2)))
    for _ in range(10):
        for one in bodies:
            one.move(-p * one.x, 0.1)
    return sum(np.sum(one.x**2) for one in bodies)


@pytest.mark.parametrize("program", [drawn, of_arrays])
def test_objects_that_a_loop_puts_into_a_list_are_changed_there(program):
    check_number(program, AT)


def test_bounds_of_a_bisection_are_those_of_python():
    def program(x):
        return float(bisect.bisect([0.1, 0.4, 0.8], x, 0, -1)) * x

    assert ckad.jit(program)(0.5) == program(0.5)
    with pytest.raises(ValueError, match="lo must be non-negative"):
        ckad.jit(lambda x: bisect.bisect([0.1, 0.4], x, -1) * x)(0.5)


def in_order(p):
    """Edges in the order of their costs, which loops in loops look for."""
    parent = [*range(36)]

    def root(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    cost = 0.0
    for c, i, j in sorted((abs(math.sin(7 * i)) * p, i, i + 1) for i in range(35)):
        a, b = root(i), root(j)
        if a != b:
            parent[a] = b
            cost += c * (i + 1)
    return cost


def test_numbers_and_places_in_order_are_run_over_at_once():
    assert "steps: 35" in str(ckad.explain(in_order, 1.5))
    value, slope = ckad.value_and_grad(in_order, engine="vm")(1.5)
    assert value == pytest.approx(in_order(1.5), rel=1e-14)
    assert slope == pytest.approx(in_order(1.0), rel=1e-14)


def over_products(p):
    table, total, seen = np.zeros((2, 3, 6)), 0.0, {}
    for i, j, k in itertools.product(range(2), range(3), range(6)):
        table[i, j, k] += p**k * (i + j * k) if i <= j else j * p
    for a, b in itertools.product((0.5, 1.5, 2.0, 1.0, 3.0, 0.1), repeat=2):
        total += p**a * b
    for i, j in itertools.product(range(19, 1, -3), [5, 7, 9, 11, 13, 2]):
        if i == 10 and j == 9:
            break
        total += p * i * j
    for key in itertools.product(range(6), repeat=2):
        seen[key] = p * key[0] + key[1]
    total += sum(seen[i, j] for i, j in itertools.product(range(6), range(6)) if i != j)
    return np.sum(table) + total + p * len(list(itertools.product(range(7), repeat=2)))


def test_many_numbers_in_all_their_combinations_are_run_over_at_once():
    check_number(over_products, 1.1)
    assert str(ckad.explain(over_products, 1.1)).count("recorded once") == 3


def over_counting_lists(p):
    table, total = p * np.ones((9, 12)), 0.0
    rows, columns = list(range(1, 9)), list(reversed(range(1, 12)))
    for _ in range(30):
        for i in rows:
            for j in columns:
                table[i, j] = 0.5 * (table[i - 1, j] + table[i, j - 1]) * (1.0 if i > 3 else p)
        for k in (2, 4, 6, 8, 10, 9):
            total += k * table[k % 9, k]
    return total + np.sum(table) + i * j * p


def test_a_list_that_counts_is_run_over_as_a_range_is():
    check_number(over_counting_lists, 0.9)
    assert len(ckad.trace(over_counting_lists)(0.9)) < 100


# --- long steps over objects ---------------------------------------------------------------------


class Panel:
    """One of many that are alike: numbers, of which steps write some."""

    def __init__(self, k, x):
        self.k, self.x, self.y, self.found = k, x + 0.1 * k, np.cos(x) * k, 0.0
        self.side = "upper" if k % 2 else "lower"

    def reach(self, other):
        found = 0.0
        for k in range(4):
            found = found + np.sin(self.x - other.y + k) * np.cos(other.x + 0.1 * k) / (k + 1.0)
        return found


def panels_of(p):
    return [Panel(k, p) for k in range(9)]


def each_with_each(p):
    panels, a = panels_of(p), np.zeros((9, 9))
    for i, one in enumerate(panels):
        for j, other in enumerate(panels):
            if i != j:
                a[i, j] = one.reach(other)
    return np.sum(a**2)


def written_into(p):
    panels = panels_of(p)
    for one in panels:
        one.found = one.found + one.reach(panels[0]) + one.reach(panels[3])
    return sum(one.found**2 for one in panels)


def in_an_array_of_objects(p):
    panels, total = np.empty(9, dtype=object), 0.0
    for k in range(9):
        panels[k] = Panel(k, p)
    for one in panels:
        total = total + one.reach(panels[2]) * one.k
    return total


def beside_arrays(p):
    panels, total = panels_of(p), 0.0
    rows = [np.array([p, k * p, 1.0]) for k in range(9)]
    for row, one in zip(rows, panels, strict=True):
        total = total + row[0] * one.reach(panels[1]) + row[2]
    return total


def until_one_ends_it(p):
    panels, total = panels_of(p), 0.0
    for one in panels:
        total = total + abs(one.reach(panels[4]))
        if total > 4.0:
            break
    return total * one.x


def that_are_asked_which_they_are(p):
    panels, total = panels_of(p), 0.0
    for one in panels:
        total = total + one.reach(panels[0]) * (2.0 if one is panels[5] else 1.0)
    return total


def whose_words_are_read(p):
    panels, total = panels_of(p), 0.0
    for one in panels:
        total = total + one.reach(panels[0]) * (2.0 if one.side == "upper" else 1.0)
    return total


def whose_list_grows(p):
    panels, total = panels_of(p), 0.0
    for one in panels:
        total = total + one.reach(panels[-1])
        if len(panels) < 12:
            panels.append(Panel(3, total * 0.1))
    return total


def that_change_places(p):
    panels, total = panels_of(p), 0.0
    for k, one in enumerate(panels):
        total = total + one.reach(panels[(k + 1) % 9])
        panels[8] = panels[0]
    return total


def one_of_which_is_met_before(p):
    panels, total = panels_of(p), 0.0
    first, last = panels[0], panels[-1]
    for one in panels:
        first.x = first.x + 0.01
        one.y = one.y + 0.1 * one.reach(last) + first.x
        total = total + last.y
    return total + first.y + last.x


OVER_OBJECTS = [each_with_each, written_into, in_an_array_of_objects, beside_arrays]
OTHERS_OVER_OBJECTS = [
    *(until_one_ends_it, that_are_asked_which_they_are, whose_words_are_read, whose_list_grows),
    *(that_change_places, one_of_which_is_met_before),
]


@pytest.fixture
def little_is_much(monkeypatch):
    ckad.clear_caches()
    monkeypatch.setattr(long_lists, "MUCH", 64)
    monkeypatch.setattr(repetition, "OF_ALL", 100.0)
    yield
    ckad.clear_caches()


@pytest.mark.parametrize("program", OVER_OBJECTS, ids=lambda f: f.__name__)
def test_long_steps_over_objects_are_recorded_as_one(program, little_is_much):
    ways = [loop.way for loop in ckad.explain(program, AT).loops if loop.steps == "8"]
    assert "recorded once" in ways
    check_number(program, AT, rel=1e-12, abs=1e-8)


@pytest.mark.parametrize("program", OTHERS_OVER_OBJECTS, ids=lambda f: f.__name__)
def test_what_else_is_done_with_objects_is_as_in_python(program, little_is_much):
    check_number(program, AT, rel=1e-12, abs=1e-8)


@pytest.mark.parametrize("program", [each_with_each, written_into], ids=lambda f: f.__name__)
def test_what_takes_as_long_as_one_step_for_all_is_given_up(program, little_is_much, monkeypatch):
    monkeypatch.setattr(repetition, "OF_ALL", 0.001)
    ways = [loop.way for loop in ckad.explain(program, AT).loops if loop.steps == "8"]
    assert "recorded once" not in ways
    check_number(program, AT, rel=1e-12, abs=1e-8)
