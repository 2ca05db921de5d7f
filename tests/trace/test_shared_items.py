"""Items and iterators that a program can reach in two ways: as in Python, or refused by name."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, CkadError, UnrecordableError

pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning")

Function = Callable[[Any], Any]


@dataclass
class Point:
    xs: list[Any] = field(default_factory=list)
    n: Any = 0.0


def item_written_after_the_loop(a):
    rows = []
    for i in range(9):
        rows.append([a * i, a])
    rows[0][1] = 5 * a
    return sum(r[1] for r in rows)


def one_list_appended_again_and_again(a):
    rows, cur = [], [a, 2 * a]
    for _ in range(9):
        rows.append(cur)
        cur[0] *= 0.9
    return sum(r[0] for r in rows)


def name_of_the_last_item(a):
    rows, cur = [], [a, 2 * a]
    for _ in range(9):
        cur = [c * 0.9 for c in cur]
        rows.append(cur)
    cur[0] = 10 * a
    return sum(r[0] for r in rows)


def views_that_turn_round(a):
    """Every step turns the view and writes: the items are one array, shown both ways."""
    u, rows = np.array([1.0, 2.0, 3.0]) * a, []
    for k in range(30):
        u = u[::-1]
        u += np.sin(a * (k + np.arange(3.0)))
        rows.append(u[:])
    return np.sum(np.stack(rows) * np.arange(30.0)[:, None] * np.arange(3.0))


def changed_after_it_was_appended(a):
    path = []
    for k in range(9):
        point = Point()
        path.append(point)
        point.n = a * k
        point.xs.append(a)
    return sum(p.n + sum(p.xs) for p in path)


def iterators_run_over_once(a):
    pairs, s = zip(a * np.arange(9), np.arange(9), strict=True), 0.0
    for x, k in pairs:
        s += x * k
    for j in range(6):
        for x, k in zip(a * np.arange(3), range(3), strict=True):
            s += x * k * j
        for k, x in enumerate(a * np.arange(7)):
            s += x * k * j
        for x in reversed(a * np.arange(7)):
            s += x * j
    return s


def sorted_by_words(a):
    parts = {"b": a, "c": a * a, "a": 2 * a}
    pairs = sorted(parts.items(), key=operator.itemgetter(0))
    return sum(k * x for k, (_, x) in enumerate(pairs))


def drawn_under_a_condition_that_draws_decide(a):
    rng = np.random.default_rng(3)
    now = free = 0.0
    for _ in range(23):
        now += rng.random()
        if free <= now:
            free = now + 0.5 * rng.random()
    return free * a


def worked_off(a):
    stack, t, c = [a], 0.0, 0
    while stack and c < 23:
        x = stack.pop()
        t += x
        c += 1
        if x > 0.05:
            stack.append(x * 0.5)
            stack.append(x * 0.4)
    return t + c


def items_written_in_a_loop(a):
    rows = []
    for i in range(9):
        rows.append([a * i, a])
    for r in rows:
        r[1] = 5 * a
    return sum(r[1] for r in rows)


def enumerate_again(a):
    it, s = enumerate(a * np.arange(9)), 0.0
    for k, x in it:
        s += k * x
    return s + 100 * sum(x for k, x in it)


AS_IN_PYTHON = [
    enumerate_again,
    items_written_in_a_loop,
    item_written_after_the_loop,
    one_list_appended_again_and_again,
    name_of_the_last_item,
    changed_after_it_was_appended,
    views_that_turn_round,
    iterators_run_over_once,
    sorted_by_words,
    drawn_under_a_condition_that_draws_decide,
    worked_off,
]


@pytest.mark.parametrize("function", AS_IN_PYTHON, ids=lambda f: f.__name__)
def test_as_in_python(function: Function) -> None:
    value, gradient = ckad.value_and_grad(function, engine="vm")(0.7)
    assert value == pytest.approx(function(0.7), rel=1e-13)
    around = function(0.7 + 1e-6) - function(0.7 - 1e-6)
    assert gradient == pytest.approx(around / 2e-6, rel=1e-7)


def list_chosen_by_a_state(a):
    d = {"u": [], "v": []}
    d["u" if a * a > 3 else "v"].append(a)
    return sum(d["u"]) + 10 * sum(d["v"])


U: list[Any] = []
V: list[Any] = []


def global_list_chosen(a):
    w = U if a > 3 else V
    w.append(a)
    return sum(U) + 10.0 * sum(V)


def map_after_break(a):
    it = map(a.__mul__, range(9))
    s = 0.0
    for x in it:
        s += x
        if s > 3:
            break
    return s + 10 * sum(it)


def item_put_on_one_side_and_written_on_the_other(a):
    p = a * np.arange(3.0)
    xs, q = [p], p
    if a > 1.0:
        xs.append(p)
        p = 2.0 * q
    else:
        p *= 0.5
    return np.sum(p) + np.sum(xs[0])


def the_same_by_a_nested_branch(a):
    p = a * np.arange(3.0)
    xs = [p]
    if a < 2.0:
        if a > 1.0:
            xs.append(p)
            p = p + 1.0
        else:
            p[1] = 7.0
    return np.sum(p) + np.sum(xs[0])


REFUSED: dict[Function, type[CkadError]] = {
    item_put_on_one_side_and_written_on_the_other: AliasError,
    the_same_by_a_nested_branch: AliasError,
    list_chosen_by_a_state: AliasError,
    global_list_chosen: AliasError,
    map_after_break: UnrecordableError,
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_refused_by_name(function: Function) -> None:
    with pytest.raises(REFUSED[function], match=r"test_shared_items\.py:\d+"):
        ckad.value_and_grad(function, engine="vm")(0.7)


LOG: list[Any] = []


def appended_to_a_global(a):
    for k in range(20):
        LOG.append(np.sin(a * k))
    return sum(LOG)


def test_lists_from_outside_are_left_as_they_were() -> None:
    gradient = ckad.value_and_grad(appended_to_a_global, engine="vm")
    first = gradient(0.7)
    assert not LOG
    assert gradient(0.7) == first
