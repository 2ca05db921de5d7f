"""Tuples and objects that are compared, sorted and kept in heaps, where traced values decide."""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass, field
from functools import total_ordering
from types import SimpleNamespace

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, ConcreteValueError, RaisedError

from .idioms import check


class Member:
    """Told by its name, ordered by its cost."""

    def __init__(self, name, genes, target):
        self.name, self.genes = name, genes
        self.cost = sum((gene - target) ** 2 for gene in genes)

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __lt__(self, other):
        return self.cost < other.cost


@total_ordering
class Arrival:
    def __init__(self, time, load):
        self.time, self.load = time, load

    def __eq__(self, other):
        return self.time == other.time

    def __lt__(self, other):
        return self.time < other.time


@dataclass(order=True)
class Event:
    time: float
    kind: str = field(compare=False)
    size: float = field(compare=False, default=0.0)


@dataclass
class Named:
    name: str
    cost: float


def members(a, b):
    return [Member(f"m{k}", [0.3 * k, 1.0 - 0.2 * k + 0.1 * b], a) for k in range(5)]


def arrivals(a, b):
    return [Arrival(abs(0.4 * k - a), b * k) for k in range(5)]


def tuples_are_compared(a, b):
    x, y = (a, b, 1), (a, a, 2)
    total = a if x < y else 2.0 * b
    total = total + (a * b if x >= y else a**2)
    total = total + (3.0 * b if (a, 1) == (a, 1.0) else a) + (a if [a, b] != [b, a] else b)
    return total + (a if (a, 1) < (a, 1, b) else b) + (b if ((a, 0), b) > ((a, 0), a) else a)


def what_is_not_reached_is_not_compared(a, b):
    first, second = (a, None, "x"), (b, {}, 3)
    return a * b if first < second else a + b


def objects_are_compared(a, b):
    one, other = arrivals(a, b)[1:3]
    total = a if one < other else b
    total = total + (a if one > other else 2.0 * b) + (b if one >= other else a * a)
    same = Arrival(a, 1.0) == Arrival(a, 2.0)
    return total + (3.0 * a if same else b) + (a if one != other else 5.0)


def fields_are_compared(a, b):
    one, other = Event(a, "in", b), Event(b, "out", a)
    total = one.size if one < other else other.size
    return total + (a * b if Event(a, "in") == Event(a, "out") else 7.0)


def sorted_by_their_methods(a, b):
    found = sorted(members(a, b))
    worst = sorted(members(a, b), reverse=True)[0]
    return found[0].cost * b + found[1].genes[0] * a + worst.genes[1]


def sorted_in_place(a, b):
    found = arrivals(a, b)
    found.sort()
    return sum((k + 1) * one.load + one.time for k, one in enumerate(found))


def best_by_their_methods(a, b):
    found = members(a, b)
    return min(found).cost * b + min(found).genes[0] * a + max(found).genes[1] * max(found).cost


def chosen_objects_are_compared_by_their_methods(a, b):
    found = sorted(members(a, b), key=lambda one: one.cost)
    total = 2.0 * a if found[0] == Member("m1", [a], b) else a
    return total * b + (a if found[0] == found[1] else b) + (a if found[1] != found[2] else 4.0)


def chosen_objects_are_looked_for(a, b):
    one, twin, other = Member("x", [a], b), Member("x", [b], a), Member("y", [a], 0.0)
    found = one if a < b else other
    again = other if b < 0.6 else twin
    total = a * [twin, other].index(found) + b * [twin, other, one].count(found)
    total = total + (a if found in [twin] else b) + (3.0 * a if found is one else 1.0)
    return total + (a if found == again else b) * (2.0 if {one: 1, other: 2}[found] == 1 else a)


def what_is_chosen_is_changed(a, b):
    found = members(a, b)
    best = min(found, key=lambda one: one.cost)
    best.cost = best.cost * 3.0
    return sum(one.cost for one in found) + best.genes[1] * b


def tuples_are_sorted(a, b):
    found = sorted([(abs(0.4 * k - a), k, [a, b * k]) for k in range(4)])
    first = min((one.cost, one.name) for one in members(a, b))
    return found[0][0] * b + found[1][2][1] + first[0] + found[2][1]


def tuples_with_objects_are_sorted(a, b):
    scored = sorted([(one.cost, one) for one in members(a, b)], key=lambda pair: pair[0])
    cost, best = scored[0]
    greatest, number, worst = max([(one.cost, k, one) for k, one in enumerate(members(a, b))])
    return cost * b + best.genes[0] * a + greatest * worst.genes[1] + number


def keys_of_several_numbers(a, b):
    found = sorted(members(a, b), key=lambda one: (round(one.cost), -one.genes[0], one.name))
    return sum((k + 1) * one.cost for k, one in enumerate(found)) * b


def items_with_texts_are_sorted(a, b):
    named = [Named(f"n{k}", abs(0.4 * k - a)) for k in range(4)]
    named.sort(key=lambda one: one.cost)
    dicts = [{"name": f"d{k}", "cost": abs(0.4 * k - b), "at": np.array([a, k])} for k in range(4)]
    dicts = sorted(dicts, key=lambda one: one["cost"], reverse=True)
    pairs = sorted([(f"p{k}", abs(0.4 * k - a)) for k in range(4)], key=lambda pair: pair[1])
    total = dicts[0]["cost"] * b + dicts[1]["at"][0] + (2.0 * a if pairs[0][0] == "p1" else b)
    return total + named[0].cost * (a if named[0].name == "n2" else b)


def ties_keep_their_order(a, b):
    keys = [a, b, a, b, a]
    rising = sorted(enumerate(keys), key=lambda pair: pair[1])
    falling = sorted([Arrival(key, float(k)) for k, key in enumerate(keys)], reverse=True)
    first = min([Arrival(key, float(k)) for k, key in enumerate(keys)])
    last = max([Arrival(key, float(k)) for k, key in enumerate(keys)])
    places = sum(10.0**k * place for k, (place, _) in enumerate(rising))
    places = places + sum(3.0**k * one.load for k, one in enumerate(falling))
    return a * places + b * (first.load + 100.0 * last.load)


def a_heap_of_numbers(a, b):
    heap, total = [], 0.0
    for k in range(6):
        heapq.heappush(heap, abs(0.5 * k - a))
    for _ in range(6):
        total = 0.5 * total + b * heapq.heappop(heap)
    return total


def a_heap_of_tuples(a, b):
    heap = [(abs(0.5 * k - a), f"e{k}", b * k) for k in range(5)]
    heapq.heapify(heap)
    total = heapq.heapreplace(heap, (0.3 * a, "x", a))[2]
    time, name, load = heapq.heappushpop(heap, (0.1 * b, "y", b))
    total = total + time * load + (a if name == "y" else b)
    return total + sum((k + 1) * item[2] for k, item in enumerate(heap))


def a_heap_of_objects(a, b):
    heap, total = [], 0.0
    for one in arrivals(a, b):
        heapq.heappush(heap, one)
    while heap:
        one = heapq.heappop(heap)
        total = 0.5 * total + one.load
        one.load = total
    return total


def events_in_a_loop(a, b):
    heap, levels = [(0.1 * (k + 1) * a, k) for k in range(3)], [a, b, a * b]
    heapq.heapify(heap)
    time = 0.0
    for _ in range(12):
        time, k = heapq.heappop(heap)
        levels[k] = levels[k] + 0.1 * (1.0 - levels[k]) * a
        heapq.heappush(heap, (time + b * (0.3 + 0.1 * k), k))
    return sum(levels) + time


def the_least_and_the_greatest(a, b):
    numbers = [abs(0.37 * k - a) for k in range(8)]
    least = heapq.nsmallest(3, numbers)
    top = heapq.nlargest(2, members(a, b), key=lambda one: one.cost)
    return sum(least) * b + heapq.nlargest(2, numbers)[1] + top[1].genes[0] * top[0].cost


def objects_put_at_a_traced_place(a, b):
    found = members(a, b)
    place = int(2 * a + 0.2)
    found[place] = Member("new", [a, b], b)
    rows = [(0.1 * k * a, k, f"n{k}") for k in range(4)]
    rows[place], rows[-place - 1] = (b, 7, "z"), (a * b, 8, "y")
    total = sum(row[0] * row[1] for row in rows) + (a if rows[1][2] == "z" else b)
    return total + sum((k + 1) * one.cost for k, one in enumerate(found))


PROGRAMS = [
    *(tuples_are_compared, what_is_not_reached_is_not_compared, objects_are_compared),
    *(fields_are_compared, sorted_by_their_methods, sorted_in_place, best_by_their_methods),
    *(chosen_objects_are_compared_by_their_methods, chosen_objects_are_looked_for),
    *(what_is_chosen_is_changed, tuples_are_sorted),
    *(tuples_with_objects_are_sorted, keys_of_several_numbers, items_with_texts_are_sorted),
    *(ties_keep_their_order, a_heap_of_numbers, a_heap_of_tuples, a_heap_of_objects),
    *(events_in_a_loop, the_least_and_the_greatest, objects_put_at_a_traced_place),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_python_orders_them(program):
    check(program, 0.47, 0.7)
    assert ckad.explain(program, 0.47, 0.7).anew == ""
    for point in ((0.7, 0.47), (1.3, 0.2)):
        assert ckad.jit(program, engine="vm")(*point) == pytest.approx(program(*point), rel=1e-13)


def heap_of(steps, keys):
    """A heap to which items are pushed, and from which they are taken, as ``steps`` say."""
    heap, taken = [], []
    for k, step in enumerate(steps):
        if step == "push" or not heap:
            heapq.heappush(heap, Arrival(keys[k % len(keys)], float(k)))
        elif step == "pop":
            taken.append(heapq.heappop(heap).load)
        else:
            taken.append(heapq.heapreplace(heap, Arrival(keys[k % len(keys)], float(k))).load)
    return [one.load for one in heap] + taken


@pytest.mark.parametrize("seed", range(3))
def test_equal_items_of_a_heap_lie_where_python_has_them(seed):
    choose = random.Random(seed)
    steps = choose.choices(["push", "push", "pop", "replace"], k=10)

    def program(a, b, c):
        return np.array(heap_of(steps, [a, b, a, c, b]))

    for point in ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1), (0.2, 0.2, 0.2)):
        assert np.array_equal(ckad.jit(program, engine="vm")(*point), program(*point))


def test_what_cannot_be_ordered_is_an_error_where_python_comes_there():
    def program(a, b):
        return a * b if (a, {}) < (b, {"x": 1}) else a + b

    assert ckad.value_and_grad(program)(0.2, 0.5)[0] == program(0.2, 0.5)
    with pytest.raises(TypeError):
        program(0.5, 0.5)
    with pytest.raises((RaisedError, TypeError)):
        ckad.value_and_grad(program)(0.5, 0.5)


def test_a_chosen_object_is_removed_from_a_list():
    def program(a, b):
        one, twin, other = Member("x", [a], b), Member("x", [b], a), Member("y", [a], 0.0)
        left = [twin, other]
        left.remove(one if a < b else other)
        return a * left[0].cost

    for a, b in ((0.2, 0.5), (0.5, 0.2)):
        value, slope = ckad.value_and_grad(program)(a, b)
        assert value == pytest.approx(program(a, b), rel=1e-15)
        difference = (program(a + 1e-6, b) - program(a - 1e-6, b)) / 2e-6
        assert slope == pytest.approx(difference, rel=1e-8)


def rows_at_a_traced_place(a, b):
    """The steps of a simplex on lists of lists, whose rows are replaced."""
    rows = [[1.0, a, 1.0, 0.0, 4.0], [b, 1.0, 0.0, 1.0, 5.0], [-2.0, -3.0 * a, 0.0, 0.0, 0.0]]
    for _ in range(4):
        column = min(range(4), key=lambda k: rows[-1][k])
        if rows[-1][column] >= -1e-9:
            break
        ratios = [row[-1] / row[column] if row[column] > 1e-12 else 1e9 for row in rows[:2]]
        pivot = ratios.index(min(ratios))
        rows[pivot] = [x / rows[pivot][column] for x in rows[pivot]]
        for k in range(3):
            if k != pivot:
                factor = rows[k][column]
                rows[k] = [x - factor * y for x, y in zip(rows[k], rows[pivot], strict=True)]
    return rows[-1][-1]


def test_rows_of_lists_are_replaced_at_a_traced_place():
    check(rows_at_a_traced_place, 0.47, 0.7)


def changed_by_the_new_name(rows, new, old):
    new[0] = 5.0


def changed_in_the_list(rows, new, old):
    rows[1][0] = 9.0


def changed_by_the_old_name(rows, new, old):
    old[1] = 3.0


@pytest.mark.parametrize(
    "change", [changed_by_the_new_name, changed_in_the_list, changed_by_the_old_name]
)
def test_a_row_that_may_be_the_one_put_there_is_not_changed(change):
    def program(a, b):
        old, new = [a, b], [a * a, 7.0]
        rows = [old, [b, 1.0], [2.0, a * b]]
        rows[int(3 * a)] = new
        change(rows, new, old)
        return sum((k + 1) * (row[0] + 2 * row[1]) for k, row in enumerate(rows))

    with pytest.raises(AliasError, match="may be the one"):
        ckad.value_and_grad(program)(0.47, 0.7)


@pytest.mark.parametrize(
    "held",
    [
        *(lambda x: {1: x}, lambda x: {1: [x]}, lambda x: deque([x])),
        *(lambda x: SimpleNamespace(x=x), lambda x: {"x": SimpleNamespace(y=(x, 1))}),
    ],
)
def test_what_holds_a_chosen_object_is_not_compared_by_python(held):
    def program(a, b):
        one, twin, other = Member("x", [a], b), Member("x", [b], a), Member("y", [a], 0.0)
        found = one if a < b else other
        return a if held(twin) == held(found) else b

    with pytest.raises(ConcreteValueError):
        ckad.value_and_grad(program)(0.2, 0.5)


def test_one_list_that_is_sorted_several_times_stays_one():
    def f(x, both):
        row, other = [x, 0.0], [2.0 * x, 1.0]
        rows = [row, row, other] if both else [row] * 3
        rows.sort(key=lambda r: r[0])
        rows[0][1] = 3.0
        return sum(r[1] for r in rows) * x

    assert ckad.value_and_grad(f, engine="vm")(0.7, False) == (f(0.7, False), 9.0)
    with pytest.raises(ckad.errors.AliasError, match="one and the same"):
        ckad.grad(f, engine="vm")(0.7, True)
