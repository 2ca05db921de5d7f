"""What names show after a branch that changes containers and binds names to them or to others."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, CarryError, TraceError

from .idioms import check_number


@dataclass
class State:
    a: float
    b: list


def a_new_list_or_the_old_one_changed(x):
    f = [0.0, 0.0]
    g = f
    if x[0] > 1.0:
        f = [x[0], x[1]]
    else:
        f[0] = x[1] * 3
        f[1] = x[0] ** 2
    return f[0] + 2 * f[1] + g[0]


def a_new_dataclass_or_the_old_one_changed(x):
    f = State(0.0, [1.0, 2.0])
    if x[0] > 1.0:
        f = State(x[0], [x[1], 3.0])
    else:
        f.a = x[1] * 3
        f.b[1] = x[0] ** 2
    return f.a + 2 * f.b[1]


def a_dict_of_which_a_list_has_another_name(x):
    f = {"a": 1.0, "b": [2.0]}
    h = f["b"]
    if x[0] > 1.0:
        f = {"a": x[0], "b": [3.0]}
    else:
        f["a"] = x[1] * 3
        h[0] = x[0] ** 2
    return f["a"] + 2 * f["b"][0] + h[0]


def a_list_in_a_tuple(x):
    a = [1.0, 2.0]
    f = (a, 1.0)
    if x[0] > 1.0:
        f = ([x[0], 2.0], 3.0)
    else:
        a[0] = x[1] * 3
        f = (a, x[1])
    return f[0][0] + 2 * f[1]


def one_of_two_lists_which_is_changed(x):
    a, b = [1.0, 2.0], [3.0, x[0]]
    if x[0] > 1.0:
        a[0] = x[0]
        f = a
    else:
        b[0] = x[1]
        b[1] = 7.0
        f = b
    return f[0] + 2 * f[1] + a[0] * 3 + b[0] * 5 + b[1]


def an_item_that_is_bound_anew_or_changed(x):
    outer = {"u": [1.0, 2.0]}
    inner = outer["u"]
    if x[0] > 1.0:
        outer["u"] = [x[0], x[1]]
    else:
        inner[1] = x[1]
    return outer["u"][0] + 2 * outer["u"][1] + inner[1] * 7


def an_expression_whose_call_changes_a_list(x):
    f = [1.0, 2.0]

    def changed():
        f[0] = x[1]
        return f

    g = [x[0], 3.0] if x[0] > 1.0 else changed()
    return g[0] + 2 * g[1] + f[0]


def a_new_list_or_items_appended(x):
    f = []
    if x[0] > 1.0:
        f = [x[0], x[1]]
    else:
        f.append(x[1])
        f.append(x[0] * 3)
    f.append(x[0] * x[1])
    return f[0] + 2 * f[1] + sum(f) + len(f)


def a_list_returned_early_or_appended_to(x):
    def listed(a, b):
        f = []
        if a > 1.0:
            return [a, b]
        f.append(b)
        f.append(a * a)
        return f

    s = np.array([0.41, 1.0])
    for _ in range(20):
        s = s + 0.1 * np.array(listed(s[0] * x[0], x[1])) - 0.05 * s
    return s[0] + 2 * s[1]


@pytest.mark.parametrize(
    "program",
    [
        a_new_list_or_the_old_one_changed,
        a_new_dataclass_or_the_old_one_changed,
        a_dict_of_which_a_list_has_another_name,
        a_list_in_a_tuple,
        one_of_two_lists_which_is_changed,
        an_item_that_is_bound_anew_or_changed,
        an_expression_whose_call_changes_a_list,
        a_new_list_or_items_appended,
        a_list_returned_early_or_appended_to,
    ],
)
@pytest.mark.parametrize("first", [2.0, 0.2])
def test_what_a_side_leaves_is_what_names_show(program, first):
    x = np.array([first, 1.5])
    value, gradient = ckad.value_and_grad(program, engine="vm")(x)
    np.testing.assert_allclose(value, program(x), rtol=1e-13)
    for k, h in enumerate(np.eye(2) * 1e-6):
        slope = (program(x + h) - program(x - h)) / 2e-6
        np.testing.assert_allclose(gradient[k], slope, rtol=1e-6, atol=1e-6)


def test_a_set_that_a_side_changes_is_not_the_one_of_before():
    def program(x):
        f = {1.0}
        if x[0] > 1.0:
            f = {1.0}
        else:
            f.add(2.0)
        return x[0] * sum(f)

    with pytest.raises(CarryError, match="'f'"):
        ckad.grad(program)(np.array([0.2, 1.0]))


def rows_of_other_lengths(x):
    rows = [[x[0]], [x[1], 2.0]]
    if x[0] > 1.0:
        rows[0], rows[1] = rows[1], rows[0]
    rows[0].append(0.5)
    return rows[0][0]


def a_row_more(x):
    rows = [[x[0]], [x[1], 2.0]]
    if x[0] > 1.0:
        rows.append([x[0]])
    return rows[-1][0] * len(rows)


@pytest.mark.parametrize("program", [rows_of_other_lengths, a_row_more])
def test_lists_of_lists_that_differ_are_refused(program):
    with pytest.raises(TraceError, match=r"on one side of a branch|on a traced condition"):
        ckad.grad(program)(np.array([1.5, 2.0]))


def a_list_that_is_named_in_a_branch(x):
    rows = [[1.0], [2.0]]
    if x > 0.1:
        for row in rows:
            row.append(x)
    rows[1].append(7 * x)
    return sum(row) + 2 * sum(rows[0])


def a_list_of_which_one_side_has_a_name(x):
    rows = [[1.0], [2.0]]
    if x > 0.1:
        row = rows[0]
        row[0] = x
    else:
        rows[0][0] = 5 * x
    row[0] += 1
    return sum(rows[0]) * row[0]


def rows_of_a_log_after_an_early_end(x):
    log, t, n = {"n": [], "t": []}, 0.0, 0
    while t < 4.0 and n < 30:
        if x * n > 1e3:
            break
        t, n = t + 1.0 / (x + 1.0), n + 1
        now = {"n": n, "t": t}
        for name, values in log.items():
            values.append(now[name])
    return t + 0.1 * log["n"][-1] + sum(log["t"])


@pytest.mark.parametrize(
    "program",
    [
        *(a_list_that_is_named_in_a_branch, a_list_of_which_one_side_has_a_name),
        rows_of_a_log_after_an_early_end,
    ],
)
def test_a_list_from_before_keeps_the_name_that_a_branch_gives_it(program):
    check_number(program, 0.3)


def test_a_list_that_some_steps_name_is_refused_or_the_very_list():
    def program(x):
        rows, at = [[1.0], [2.0]], x
        for _ in range(6):
            at = at * 1.1
            if at > 0.35:
                row = rows[1]
                row.append(at)
        row.append(1.0)
        return sum(rows[0]) * row[-2] + sum(rows[1])

    with pytest.raises(AliasError):
        ckad.jit(program)(0.3)


def other_keys_on_each_side(x):
    found = {}
    if x > 1:
        found["a"] = x
    else:
        found["b"] = 2 * x
    return sum(found.values())


def counts_of_what_happens(x):
    counts = defaultdict(int)
    for k in range(6):
        if x * k > 1:
            counts["open"] += 1
        else:
            counts["closed"] += 1
    return x * counts["open"]


def a_key_on_one_side(x):
    counts = {"all": 0}
    for k in range(6):
        counts["all"] += 1
        if x * k > 1:
            counts["late"] = k
    return x * counts["all"]


@pytest.mark.parametrize(
    "program", [other_keys_on_each_side, counts_of_what_happens, a_key_on_one_side]
)
def test_keys_that_a_traced_condition_decides_are_refused_with_what_to_write(program):
    with pytest.raises(TraceError, match=r"Make it with all .*keys before: .*'\w+': 0"):
        ckad.jit(program)(0.4)
