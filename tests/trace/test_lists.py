"""Lists that loops append to."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, UnrecordableError
from ckad.trace.source.control.loops import StagedLoop

pytestmark = pytest.mark.usefixtures("engine")
PROGRAMS = []


def a(n):
    return np.random.default_rng(n).random(n) + 0.5


def prog(x):
    def register(function):
        PROGRAMS.append((function, x))
        return function

    return register


@prog(a(5))
def hist(x):
    h = [x]
    for _i in range(20):
        x = np.sin(x) * 1.1
        h.append(x)
    return np.sum(np.array(h) ** 2) + np.sum(h[3] * h[-1])


@prog(a(5))
def losses(x):
    h = []
    for i in range(20):
        x = x - 0.1 * x**2
        h.append(np.sum(x))
        h.append(i * 1.0)
    return sum(h) + h[7] * h[-2] + len(h)


@prog(a(5))
def nested(x):
    h = []
    for i in range(6):
        for j in range(7):
            x = x * 0.9 + 0.01 * i * j
            h.append(x.copy())
        h.append(x * 2)
    a = np.array(h)
    return np.sum(a * np.arange(len(h))[:, None])


@prog(a(5))
def inplace(x):
    h = []
    u = x.copy()
    for _i in range(9):
        u[1:] = u[:-1] * 0.5
        h.append(u.copy())
    return np.sum(np.stack(h)[:, 2]) + np.sum(h[4] ** 2)


@prog(a(5))
def reads(x):
    h = [x[0]]
    for _i in range(9):
        h.append(h[-1] * 0.5 + x[1])
    return h[-1] * h[3]


@prog(a(5))
def alias(x):
    h = []
    u = x.copy()
    for _i in range(9):
        u[1:] = u[:-1] * 0.5
        h.append(u)
    return np.sum(h[2])


@prog(a(20))
def idx(x):
    h = []
    for i in range(10):
        h.append(2 * i)
    return np.sum(x[h] ** 2)


@prog(a(5))
def dct(x):
    h = {"a": [], "b": []}
    for _i in range(10):
        x = x * 0.9
        h["a"].append(x)
        h["b"].append(np.mean(x))
    return np.sum(np.mean(h["a"], axis=0)) + np.max(h["b"])


@prog(a(5))
def condapp(x):
    h = []
    for i in range(10):
        x = x * 0.9
        if i % 2 == 0:
            h.append(x.sum())
    return sum(h)


@prog(a(5))
def comp(x):
    h = []
    for _i in range(10):
        x = x * 0.9
        h.append(x.sum())
    return sum([v**2 for v in h])


# --- what a list, dict or deque holds goes from step to step --------------------------------------


@prog(a(3))
def two_names(x):
    one = [x[0], x[1]]
    other = one
    for _k in range(9):
        one[0] = one[0] * 0.9 + one[1]
        other[1] = other[1] + 0.1 * one[0]
    return one[0] + other[1] + other[0] * one[1]


@prog(a(3))
def a_list_in_another(x):
    inner = [x[0], x[1]]
    outer = [inner, [x[2], x[2]]]
    for _k in range(9):
        outer[0][0] = outer[0][0] * 0.9 + inner[1]
        inner[1] = inner[1] * 1.01
        outer[1][0] = outer[1][0] + inner[0]
    return outer[0][0] + inner[0] * outer[1][0]


@prog(a(3))
def an_array_in_two_lists(x):
    u = x.copy()
    one, other = [u, x * 2], [u]
    for _k in range(9):
        one[0] = one[0] * 0.9
        other[0][1:] += 0.1 * one[0][:-1]
        one[1] = one[1] + u
    return np.sum(one[0]) + np.sum(one[1]) + np.sum(u * other[0])


@prog(a(4))
def an_item_shown_by_a_name(x):
    h = [x.copy(), x * 2]
    top = h[0]
    for _k in range(9):
        h[0] += 0.1 * h[1]
        h[1] = h[1] * 0.9
    return np.sum(top * h[1])


@prog(a(4))
def an_item_bound_anew_that_a_name_shows(x):
    h = [x.copy(), x * 2]
    top = h[0]
    for _k in range(9):
        h[0] = h[0] + 0.1 * h[1]
        h[1] = h[1] * 0.9 + top
    return np.sum(top * h[1])


@prog(a(4))
def one_array_moves_between_lists(x):
    one, other = [x.copy()], [x * 2]
    for _k in range(9):
        one[0] = other[0]
        other[0] = other[0] * 0.9
        one[0][0] = 1.5
    return np.sum(one[0] * other[0])


@prog(a(3))
def items_that_swap(x):
    q = [x.copy(), x * 0]
    v = q[0]
    for _k in range(8):
        q[1][1:] = q[0][1:] * 0.9 + q[0][:-1] * 0.1
        q[0], q[1] = q[1], q[0]
    return np.sum(q[0]) + 2 * np.sum(v)


@prog(a(3))
def window(x):
    w = deque(x, maxlen=3)
    s = 0.0
    for _k in range(20):
        w.append(w[0] * 0.5 + w[-1] * 0.4)
        s = s + sum(w)
    return s


@prog(a(4))
def window_whose_arrays_are_written(x):
    h = [x.copy(), x * 0.9]
    for _k in range(20):
        n = h[-1] * 0.9 - 0.1 * h[-2]
        h.append(n)
        o = h.pop(0)
        h[0][1] += o[0]
        n[0] = o[1]
    return np.sum(h[0] * h[1])


@prog(a(4))
def window_in_a_function(x):
    def push(h, v):
        h.append(v)
        del h[0]

    h = [x[0], x[1], x[2]]
    for _k in range(12):
        push(h, sum(h) * 0.3)
    return h[0] * h[2]


@prog(a(4))
def state_in_a_dict(x):
    s = {"u": x.copy(), "t": 0, "n": 0}
    for _k in range(20):
        s["u"] = s["u"] * 0.9
        s["t"] += 0.1
        s["n"] += 1
        if s["u"][0] < 0.3:
            s["u"][1] += 0.01
            s["n"] -= 1
    return np.sum(s["u"]) + s["t"] * s["n"]


@prog(a(4))
def got_from_a_dict(x):
    s = {"u": [x[0]]}
    for _k in range(20):
        s.get("u")[0] = s.get("u")[0] * 0.9
    return s["u"][0]


@prog(a(4))
def a_key_that_the_first_step_makes(x):
    s = defaultdict(float)
    for k in range(20):
        s["u"] += x[0] * k
    return s["u"]


@prog(a(4))
def changed_under_conditions(x):
    h = [x[0], x[1], x[2]]
    for _k in range(12):
        if h[0] > h[1]:
            h[0], h[1] = h[1], h[0] * 0.9
        elif h[1] > 1:
            h.reverse()
        else:
            h[2] = h[2] * 1.1
    return h[0] * h[2] + h[1]


@prog(a(4))
def as_long_on_both_sides(x):
    h = [x[0]]
    if x[0] > 0.1:
        h.append(x[1])
    else:
        h.append(x[2] ** 2)
    return h[0] * h[1]


@prog(a(4))
def until(x):
    h = [x[0], x[1]]
    while h[0] > 0.1:
        h[0] = h[0] * 0.9
        h[1] = h[1] + h[0]
        if h[1] > 50.0:
            break
    return h[1]


@prog(a(4))
def bound_anew_and_changed(x):
    h = [x[0], x[1]]
    g = h
    for _k in range(9):
        h = [*h[1:], h[0] * 0.9 + g[0]]
        g[0] = g[0] + 0.01
    return h[0] * h[1] + g[0]


@prog(a(4))
def rows_that_rotate(x):
    m = [[x[0], x[1]], [x[2], x[3]]]
    for _k in range(9):
        m.append(m.pop(0))
        m[0][0] = m[0][0] * 0.9
    return m[0][0] * m[1][1] + m[1][0]


@dataclass
class State:
    x: float
    v: float


class Node:
    def __init__(self, y):
        self.y, self.next, self.last = y, [], [0.0, 0.0]


@prog(a(4))
def neighbours(x):
    nodes = [Node(v) for v in x]
    for one, other in pairwise(nodes):
        one.next.append(other)
    for _k in range(9):
        for node in nodes:
            for other in node.next:
                other.y = other.y + 0.1 * node.y
            node.last[1], node.last[0] = node.last[0], node.y
    return nodes[-1].y * nodes[1].last[1]


@prog(a(4))
def appended_and_never_read(x):
    h, y, t = [], x[0], 0.0
    while t < 2 and y > 0.1:
        y = y * 0.9
        t += 0.1
        if y < 0.4:
            h.append(y)
    return y + t


@pytest.mark.parametrize(("program", "x"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_it_is_what_python_gives(program, x):
    expected = program(x.copy())
    np.testing.assert_allclose(ckad.jit(program)(x), expected, rtol=1e-12)
    ckad.testing.check_grads(program, (x,), order=1)


def _times(x):
    times, y = [], x[0]
    for k in range(30):
        y = y * 0.9
        if y < 0.3:
            times.append(k)
            y = y + 1
    return y + len(times)


def _left(x):
    h = []
    for _k in range(30):
        x = x * 0.9
        h.append(x[0])
        if x[0] < 0.2:
            break
    return h[-1]


@pytest.mark.parametrize("program", [_times, _left])
def test_a_list_of_a_length_that_is_only_known_when_it_runs(program):
    x = a(4)
    np.testing.assert_allclose(ckad.jit(program)(x), program(x), rtol=1e-12)
    ckad.testing.check_grads(program, (x,))


def _read_by_another_list(x):
    one, other = [x.copy()], [x * 2]
    for _k in range(9):
        one[0] = other[0] = one[0] + other[0] * 0.1
    one[0][0] = 3.0
    return np.sum(other[0])


def test_one_array_in_two_lists_after_a_loop_is_no_guess():
    with pytest.raises(AliasError, match="what this array holds is not known here"):
        ckad.grad(_read_by_another_list)(a(4))


def _windowed(x):
    xs = [x[0], x[1], x[2]]
    for _k in range(3000):
        old = xs.pop(0)
        xs.append(0.5 * (old + xs[-1]))
    return xs[-1]


def test_a_window_is_one_loop():
    assert len(ckad.trace(_windowed)(a(3)).rows) < 20


def _nodes(x):
    nodes = [State(x[0], x[1]), State(x[2], x[3])]
    for _k in range(9):
        for node in nodes:
            node.x = node.x + 0.1 * node.v
    node.x = node.x * 2  # the very object of the list
    return nodes[0].x * nodes[1].x


def _objects_of_none(x):
    z = np.array([[None] * 2]).T  # in place of numbers, until there are some
    assert z.shape == (2, 1)
    return np.sum(x)


@pytest.mark.parametrize("program", [_nodes, _objects_of_none])
def test_objects_are_the_very_objects(program):
    x = a(4)
    assert ckad.jit(program)(x) == pytest.approx(program(x), rel=1e-12)
    ckad.testing.check_grads(program, (x,), order=1)


COUNTS = {"steps": [0, 0]}


def _counting(x):
    for _k in range(8):
        COUNTS["steps"][0] += 1
        x = x * 0.9
    return np.sum(x) * COUNTS["steps"][0]


def test_a_global_that_a_loop_changes_is_as_it_was():
    for _call in range(2):
        np.testing.assert_allclose(ckad.grad(_counting)(a(4)), 8 * 0.9**8)
        assert COUNTS == {"steps": [0, 0]}


class Car:
    def __init__(self, x):
        self.x, self.track = x, []


def many_tracks(x):
    """Each object has a list of its own, and one list is looked into."""
    cars, means = [Car(x * k) for k in range(32)], []
    for k in range(40):
        for one, other in pairwise(cars):
            one.x = one.x + 0.1 * np.sin(other.x)
            one.track.append(one.x)
        means.append(cars[0].x + cars[5].x)
        if k % 20 == 0:
            print(means[-1])
    return means[-1] + sum(sum(c.track) for c in cars)


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_lists_of_many_objects_are_found_at_once(monkeypatch):
    rounds, record = [], StagedLoop._round
    monkeypatch.setattr(
        StagedLoop, "_round", lambda self: rounds.append(self.steps.node) or record(self)
    )
    value, slope = ckad.value_and_grad(many_tracks)(0.3)
    central = (many_tracks(0.3 + 1e-6) - many_tracks(0.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose([value, slope], [many_tracks(0.3), central], rtol=1e-7)
    assert len(rounds) < 16


def lengthened(x):
    h = []
    for i in range(20):
        x = np.sin(x) + 0.1 * i
        h += [x, 2.0 * x]
    return np.sum(np.array(h) ** 2)


def lengthened_by_a_tuple(x):
    h = []
    for i in range(20):
        x = np.sin(x) + 0.1 * i
        h.extend((x, x[::-1]))
    return np.sum(np.array(h) * np.arange(40)[:, None])


def lengthened_in_a_dict(x):
    h = {"x": []}
    for i in range(20):
        x = np.sin(x) + 0.1 * i
        h["x"] += [x]
    return np.sum(np.array(h["x"]) ** 2)


def lengthened_under_a_condition(x):
    h = []
    for i in range(20):
        x = np.sin(x) + 0.1 * i
        if x[0] > 0.5:
            h += [x]
    return np.sum(np.array(h) ** 2)


def lengthened_with_two_names(x):
    h = g = []
    for i in range(20):
        x = np.sin(x) + 0.1 * i
        h += [x]
        g += [2.0 * x]
    return np.sum(np.array(h) ** 2)


@pytest.mark.parametrize(
    "program",
    [
        *(lengthened, lengthened_by_a_tuple, lengthened_in_a_dict, lengthened_under_a_condition),
        lengthened_with_two_names,
    ],
    ids=lambda p: p.__name__,
)
def test_lengthening_by_some_items_is_appending_each(program):
    x = a(3)
    np.testing.assert_allclose(ckad.jit(program)(x), program(x), rtol=1e-12)
    ckad.testing.check_grads(program, (x,), order=1)
    assert "recorded once" in str(ckad.explain(program, x))


def test_a_list_that_is_lengthened_by_itself_is_written_out():
    def program(x):
        h = [x]
        for _ in range(6):
            h.extend(h)
        return np.sum(np.array(h) ** 2)

    x = a(3)
    np.testing.assert_allclose(ckad.jit(program)(x), 64 * np.sum(x**2), rtol=1e-12)


def in_two_parts(x):
    seen = []

    def is_large(v):
        seen.append(2 * v)
        return v > 0.9

    for k in range(10):
        if is_large(x[k % 4]) and is_large(x[(k + 1) % 4]):
            x[0] += 0.1
    return x[0] * len(seen) + sum(seen)


def in_a_branch_too(x):
    seen = []

    def is_large(v):
        seen.append(v)
        return v > 0.9

    for k in range(10):
        if is_large(x[k % 4]):  # noqa: SIM102
            if is_large(x[(k + 1) % 4]):
                x[0] += 0.1
    return x[0] * len(seen) + sum(seen)


def in_a_chain(x):
    seen = [0.5]

    def number(v):
        seen.append(v)
        return v

    for k in range(10):
        x[1] += number(x[k % 4]) < number(x[(k + 1) % 4]) < number(x[(k + 2) % 4])
    return x[1] * len(seen) + sum(seen)


def by_any(x):
    seen = []

    def is_large(v):
        seen.append(v)
        return v > 0.9

    total = 0.0
    for _ in range(10):
        total += any(is_large(v) for v in x)
    return total * len(seen) + sum(seen)


@pytest.mark.parametrize("program", [in_two_parts, in_a_branch_too, in_a_chain, by_any])
def test_helpers_append_always_and_under_conditions(program):
    x = a(4)
    value, gradient = ckad.value_and_grad(program)(x.copy())
    assert value == pytest.approx(program(x.copy()), rel=1e-14)
    slope = [(program(x + d) - program(x - d)) / 2e-6 for d in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(gradient, slope, rtol=1e-7)


def test_a_list_that_operands_of_a_chain_make_longer_is_refused_by_name():
    def program(x):
        seen = []

        def is_large(v):
            seen.append(v)
            return v > 0.9

        return len(seen) * x[0] if is_large(x[0]) or is_large(x[1]) or is_large(x[2]) else x[1]

    with pytest.raises(UnrecordableError, match="whose length or keys"):
        ckad.grad(program)(a(4))
