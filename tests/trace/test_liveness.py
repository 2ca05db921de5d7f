"""Which names may be read after a statement: what decides whether two names may be one object."""

import ast
import textwrap

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError
from ckad.trace.source.names.liveness import live_after, read_in
from ckad.trace.source.names.reader import define

SOURCES = {
    "bound_before_it_is_read": ("x = f()  # here\nx = 2\nreturn x", set()),
    "bound_on_one_side": ("x = f()  # here\nif c:\n    x = 2\nreturn x", {"x", "c"}),
    "bound_on_both_sides": ("f()  # here\nif c:\n    x = 1\nelse:\n    x = 2\nreturn x", {"c"}),
    "read_by_the_next_step": (
        "while c:\n    g(x)\n    f()  # here\n    y = 1",
        {"c", "g", "x", "f"},
    ),
    "bound_by_the_next_step": (
        "for i in c:\n    x = f()\n    g(x)  # here\nreturn 1",
        {"f", "g"},
    ),
    "may_go_on_from_anywhere": (
        "while c:\n    f()  # here\n    if d:\n        continue\n    y = 1\n    g(y)",
        {"c", "d", "f", "g"},
    ),
    "left_by_break": (
        "for i in c:\n    f()  # here\n    y = 1\n    if d:\n        break\nreturn x, y",
        {"d", "f", "x", "y"},
    ),
    "else_of_a_loop": ("for i in c:  # here\n    f(y)\nelse:\n    g(x)", {"g", "x"}),
    "a_handler": (
        "try:\n    f()  # here\n    x = 1\nexcept E:\n    g(x)",
        {"E", "g", "x"},
    ),
    "finally": ("try:\n    f()  # here\n    return 1\nfinally:\n    g(x)", {"g", "x"}),
    "after_with": ("with c:\n    f()  # here\n    x = 1\nreturn x", {"x"}),
    "a_sum": ("f()  # here\nx += 1", {"x"}),
    "an_item": ("f()  # here\nx[i] = y", {"x", "i", "y"}),
    "an_inner_loop": (
        "while c:\n    for i in d:\n        f()  # here\n        x = 1\n    g(x)",
        {"c", "d", "f", "g"},
    ),
    "cases": (
        "f()  # here\nmatch c:\n    case [x]:\n        g(x)\n    case _:\n        x = y",
        {"c", "g", "x", "y"},
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_names_that_may_be_read_after_a_statement(name):
    body, expected = SOURCES[name]
    text = "def program():\n" + textwrap.indent(body, "    ")
    line = 1 + next(k for k, x in enumerate(text.splitlines()) if x.endswith("# here"))
    node = ast.parse(text).body[0]
    found = {names for (at, _), names in live_after(define(node, "")).items() if at == line}
    assert found == {frozenset(expected)}


def test_what_a_statement_reads_beside_a_call():
    statement = ast.parse("z = r.pop() + p[k]").body[0]
    assert read_in(statement, statement.value.left) == {"p", "k"}
    lazy = ast.parse("z = sum(f(x) for x in p)").body[0]
    assert read_in(lazy, lazy.value) == {"f", "x", "p"}


# --- programs -----------------------------------------------------------------------------------


def bound_anew_before_it_is_read(x):
    points = [[x, 3 * x], [2 * x, x]]
    for _ in range(6):
        if points[0][1] < 5.0:
            points = [[p[0], 1.1 * p[1]] for p in points]
        else:
            shrunk = []
            for p in points:
                shrunk.append([0.9 * p[0], 0.8 * p[1]])
            points = shrunk
        points = points[::-1]
        points[0] = [points[0][0] + 1.0, points[1][1]]
    return points[0][0] * points[1][1]


def bound_anew_after_the_branch(x):
    one, other = [x, 2 * x], [3 * x, 5 * x]
    found = one if x > 0 else other
    found.append(x)
    one = [x * x]
    other = [x**3]
    return sum(found) + one[0] + other[0]


def bound_anew_by_each_step(x):
    total = 0.0
    for k in range(5):
        one, other = [x, k * x], [3 * x, 5 * x]
        found = one if x * k > 1.0 else other
        found[0] = found[1] * x
        total += sum(found)
    return total


@pytest.mark.parametrize(
    "program",
    [bound_anew_before_it_is_read, bound_anew_after_the_branch, bound_anew_by_each_step],
)
def test_a_name_that_is_bound_before_it_is_read_shows_nothing(program):
    value, slope = ckad.value_and_grad(program)(0.7)
    np.testing.assert_allclose(value, program(0.7), rtol=1e-13)
    expected = (program(0.7 + 1e-6) - program(0.7 - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, expected, rtol=1e-6)


def read_by_the_rest_of_the_statement(x):
    one, other = [1.0 * x, 2.0 * x], [3.0 * x, 5 * x]
    found = one if x > 0 else other
    return found.pop() + one[-1]


def read_by_what_a_test_decides(x):
    one, other = [1.0 * x, 2.0 * x], [3.0 * x, 5 * x]
    found = one if x > 0 else other
    if found.pop() > 0:
        z = one[-1]
    else:
        z = 0.0
    return z


def read_on_the_same_line(x):
    one, other = [1.0 * x, 2.0 * x], [3.0 * x, 5 * x]
    found = one if x > 0 else other
    found.append(x); return sum(one)  # fmt: skip # noqa: E702


def read_by_a_later_item(x):
    one, other = [1.0 * x, 2.0 * x], [3.0 * x, 5 * x]
    found = one if x > 0 else other
    both = [found.pop(), one[-1]]
    return both[1]


@pytest.mark.parametrize(
    "program",
    [
        read_by_the_rest_of_the_statement,
        read_by_what_a_test_decides,
        read_on_the_same_line,
        read_by_a_later_item,
    ],
)
def test_a_change_that_another_name_would_show_is_refused(program):
    with pytest.raises(AliasError, match="may be the one which 'one' shows"):
        ckad.value_and_grad(program)(0.7)
