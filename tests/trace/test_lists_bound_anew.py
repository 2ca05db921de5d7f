"""Lists and dicts that steps of a loop change, and to which they bind their names anew."""

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError
from ckad.trace.source.control import repetition

from .idioms import check_number


def a_population(x):
    population = [[x, x * 2], [x * 3, x], [0.1 * x, 0.5]]
    for t in range(12):
        population.sort(key=lambda p: p[0] ** 2 + p[1] ** 2)
        population[-1] = [p * 0.5 for p in population[0]]
        population = [[0.9 * p[0] + 0.01 * t, 0.8 * p[1]] for p in population]
    return population[0][0] + 2 * population[1][1]


def a_simplex(x):
    points = [[np.array([x, 1.0]), x], [np.array([2 * x, 0.5]), 3 * x], [np.array([0.1, x]), 1.0]]
    steps = 0
    while 1:
        points.sort(key=lambda p: p[1])
        if steps >= 12:
            return points[0][1] + points[1][0][0]
        steps += 1
        centre = 0.5 * (points[0][0] + points[1][0])
        tried = centre + 0.7 * (centre - points[-1][0])
        value = np.sum((tried - 0.3) ** 2)
        if value < points[-1][1]:
            del points[-1]
            points.append([tried, value])
            continue
        shrunk = []
        for point in points:
            moved = points[0][0] + 0.5 * (point[0] - points[0][0])
            shrunk.append([moved, np.sum((moved - 0.3) ** 2)])
        points = shrunk


def on_one_side_only(x):
    items = [x, 2 * x, 3 * x]
    for t in range(15):
        x = np.sin(x + t)
        if x > 0:
            items = [x * v for v in items]
        else:
            items[0] += x
            items.pop()
            items.append(x)
    return items[0] + 2 * items[1] + 3 * items[2]


class Herd:
    def __init__(self, x):
        self.weights = [x, 2 * x, 3 * x]

    def step(self, x):
        self.weights[1] += x
        self.weights.sort()
        if x > 0:
            self.weights = [0.5 * v for v in self.weights]


def held_by_an_object(x):
    herd = Herd(x)
    for t in range(12):
        x = np.sin(x + t)
        herd.step(x)
    return sum(i * v for i, v in enumerate(herd.weights))


def a_dict(x):
    state = {"a": x, "b": 2 * x}
    for t in range(12):
        x = np.sin(x + t)
        state["a"] += x * state["b"] * 0.1
        if x > 0:
            state = {key: v * 0.9 for key, v in state.items()}
    return state["a"] + state["b"]


def changed_by_a_function(x):
    def change(items, v):
        items[0] = items[0] * 0.5 + v
        items.reverse()

    items = [x, 2 * x]
    for t in range(12):
        x = np.sin(x + t)
        change(items, x)
        if x < 0:
            items = items[::-1]
    return items[0] + 3 * items[1]


def within_an_inner_loop(x):
    items = [x, 2 * x]
    for t in range(4):
        for k in range(5):
            x = np.sin(x + t + k)
            items[0] += x
            if x > 0:
                items = [x, items[0]]
        items[1] *= 0.5
        items = [items[1], items[0]]
    return items[0] + 3 * items[1]


def filled_and_emptied(x):
    rows, total = [], 0.0
    for _t in range(12):
        for k in range(6):
            rows.append(np.array([x + k, total]))
        total = np.sin(total + np.sum(rows[2] * rows[-1]) * 0.01)
        rows = []
    return total + len(rows)


class Collected:
    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)
        return len(self.items)

    def clear(self):
        self.items = []


def emptied_by_a_method(x):
    held, total = Collected(), 0.0
    for t in range(12):
        count = held.add(x * total + 1.0)
        count = held.add(np.cos(x + t)) + count
        total = np.sin(total + count * held.items[0] * held.items[-1])
        held.clear()
    return total


def started_with_an_item(x):
    items, total = [x], 0.0
    for _t in range(12):
        for k in range(6):
            items.append(np.sin(x * k + total))
        total = np.sin(total + items[0] * items[-1])
        items = [x * total]
    return total + items[0]


def a_dict_that_is_emptied(x):
    state, total = {}, 0.0
    for t in range(12):
        state["a"], state["b"] = x * total, x + 0.1 * t
        total = 0.5 * np.sin(total + state["a"] * state["b"] + 0.1)
        state = {}
    return total + len(state)


def a_dict_by_steps_that_is_emptied(x):
    state, total = {}, 0.0
    for _t in range(12):
        for k in range(6):
            state[k] = np.sin(x * k + total)
        total = np.sin(total + state[3] * state[5])
        state = {}
    return total


ONCE = [
    filled_and_emptied,
    emptied_by_a_method,
    started_with_an_item,
    a_dict_that_is_emptied,
    a_dict_by_steps_that_is_emptied,
    a_population,
    a_simplex,
    on_one_side_only,
    held_by_an_object,
    a_dict,
    changed_by_a_function,
]


@pytest.mark.parametrize("program", ONCE, ids=lambda f: f.__name__)
def test_what_steps_change_and_bind_anew_is_recorded_once(program, monkeypatch):
    monkeypatch.setattr(repetition, "SHORT", 0)
    ckad.clear_caches()
    loops = ckad.explain(program, 0.7).loops
    assert not any("written out" in str(loop) for loop in loops)
    for x in (0.7, -0.4):
        check_number(program, x, rel=1e-12, abs=1e-9)
    ckad.clear_caches()


# --- other names that show them ------------------------------------------------------------------


class Held:
    def __init__(self, items):
        self.items = items


def by_an_object(x):
    items = [x, 2 * x]
    held = Held(items)
    for t in range(9):
        x = np.sin(x + t)
        items[0] += x
        if x > 0:
            items = [x, items[0]]
    return items[0] + 3 * held.items[0]


def by_a_default(x):
    items = [x, 2 * x]
    look = lambda found=items: found[0]  # noqa: E731
    total = 0.0
    for t in range(9):
        x = np.sin(x + t)
        items[0] += x
        total += look()
        if x > 0:
            items = [x, items[0]]
    return items[0] + 3 * total


def by_a_place_that_moves(x):
    rows = [[x, 1.0], [2 * x, 2.0]]
    first = rows[0]
    for t in range(9):
        x = np.sin(x + t)
        rows[0][0] += x
        rows = rows[::-1]
    return rows[0][0] + 3 * first[0]


def by_a_dict(x):
    held = {"a": [x, 2.0]}
    items = held["a"]
    for t in range(9):
        x = np.sin(x + t)
        held["a"][0] += x
        if x > 0:
            held = {"a": [x, items[0]]}
    return held["a"][0] + 3 * items[0]


def by_what_a_step_binds_to_it(x):
    items, other = [x, 2 * x], [x, 3 * x]
    for t in range(9):
        x = np.sin(x + t)
        items[0] += x
        if x > 0:
            items = other
    return items[0] + 10 * other[0]


def by_a_name_of_the_step_before(x):
    items, before = [x, 2 * x], None
    for t in range(9):
        x = np.sin(x + t)
        items[0] += x
        if before is not None:
            x = x + 0.1 * before[0]
        before = items
        items = [x, items[1]]
    return items[0] + 3 * before[0]


def by_the_caller(x):
    def run(items, x):
        for t in range(12):
            x = np.sin(x + t)
            items[0] += x
            if x > 0:
                items = [x, items[0]]
        return items

    items = [x, 2 * x]
    found = run(items, x)
    return items[0] + 3 * found[0]


def by_another_that_takes_turns(x):
    one, other = [x, 1.0], [2 * x, 3.0]
    for _ in range(9):
        one[0] += 0.1 * x
        one, other = other, one
        other = [other[0] * 0.9, other[1]]
    return one[0] + 2 * other[0]


def by_a_branch_of_the_step_before(x):
    one, other, z, s = [x, 2 * x], [0.3 * x, 0.2], [x, 0.7], 0.0
    for _ in range(11):
        if s > 2.0:
            one = other
        other = z
        s = s + abs(x)
    one[1] = 5.0 * x
    return s + z[1]


def by_a_swap_on_one_side(x):
    one, other, held, s = [x, 2 * x], [0.3 * x, 0.2], {"z": [x, 0.7]}, 0.0
    for _ in range(11):
        if s > 2.0:
            one, other = other, one
        other = held["z"]
        s = s + abs(x)
    held["z"][1] = 5.0 * x
    return s + one[1]


def by_one_that_has_the_first_list(x):
    items = []
    first, total = items, 0.0
    for t in range(12):
        items.append(np.sin(x + total))
        items.append(np.cos(x + t))
        total = np.sin(total + items[0] * items[-1])
        items = []
    return total + 3 * sum(first)


def by_one_that_has_the_first_dict(x):
    items = {}
    first, total = items, 0.0
    for _t in range(12):
        items["a"] = np.sin(x + total)
        total = np.sin(total + items["a"])
        items = {}
    return total + 3 * sum(first.values())


def by_one_from_inside_of_another(x):
    items, kept, total = [], [], 0.0
    for _t in range(12):
        items.append(np.sin(x + total))
        total = np.sin(total + items[-1])
        kept.append(items)
        items = []
    return total + sum(one[0] for one in kept)


def by_a_loop_of_no_steps(x):
    items, n = [], 0
    total = np.sin(x)
    while total < -2.0:
        items.append(x)
        total, n = total + items[0], n + 1
        items = []
    items.append(x)
    return total + sum(items) + n


REFUSED = [
    *(by_an_object, by_a_default, by_a_dict, by_what_a_step_binds_to_it, by_the_caller),
    *(by_a_branch_of_the_step_before, by_a_swap_on_one_side),
]
RIGHT = [
    by_a_place_that_moves,
    by_a_name_of_the_step_before,
    by_another_that_takes_turns,
    within_an_inner_loop,
    by_one_that_has_the_first_list,
    by_one_that_has_the_first_dict,
    by_one_from_inside_of_another,
    by_a_loop_of_no_steps,
]


@pytest.mark.parametrize("program", REFUSED, ids=lambda f: f.__name__)
def test_another_name_of_what_steps_change_is_refused(program, monkeypatch):
    monkeypatch.setattr(repetition, "SHORT", 0)
    ckad.clear_caches()
    with pytest.raises(AliasError, match="may be the one which"):
        ckad.grad(program)(0.7)


@pytest.mark.parametrize("program", RIGHT, ids=lambda f: f.__name__)
def test_what_another_name_shows_is_as_in_python(program, monkeypatch):
    monkeypatch.setattr(repetition, "SHORT", 0)
    ckad.clear_caches()
    for x in (0.7, -0.4):
        check_number(program, x, rel=1e-12, abs=1e-9)


def a_copy_in_place_of_a_list_in_a_dict(x):
    items = [x, 2 * x]
    kept = {"first": items}
    for k in range(6):
        items[0] = items[1] + x * k
        items = list(items)
    return sum(kept["first"]) * 3 + sum(items)


def a_copy_in_place_of_a_dict(x):
    state = {"a": x}
    kept = [state]
    for k in range(6):
        state["a"] += k * x
        state = dict(state)
    return kept[0]["a"] * 3 + state["a"]


def a_copy_that_a_function_has_changed(x):
    def put(items, new):
        items[0] = items[0] * 0.5 + new

    items, k = [x, 2 * x], 0
    kept = items
    while k < 6:
        put(items, 0.5)
        items = items + []
        k += 1
    return sum(kept) * 3 + sum(items)


def equal_numbers_every_time(x):
    items = [1.0, 2.0]
    kept = items
    for _ in range(6):
        x = x * 0.5 * items[0] + items[1]
        items = [1.0, 2.0]
    items[0] = 7.0
    return sum(kept) * x + sum(items)


def equal_texts_every_time(x):
    about, kept = {"kind": "a", "n": 0.3}, []
    while x < 5:
        x = 1.5 * x + about["n"]
        about = {"kind": "a", "n": 0.3}
    return x * about["n"] if about["kind"] == "a" else 0.0 * len(kept)


@pytest.mark.parametrize(
    "program",
    [
        *(a_copy_in_place_of_a_list_in_a_dict, a_copy_in_place_of_a_dict),
        *(a_copy_that_a_function_has_changed, equal_numbers_every_time, equal_texts_every_time),
    ],
)
def test_an_equal_container_is_another_one(program):
    check_number(program, 1.3)
