"""Programs that once were recorded wrongly: each as NumPy runs it, or its named error."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, RaisedError

pytestmark = pytest.mark.usefixtures("engine")
X = np.linspace(0.3, 1.4, 8)
Pair = namedtuple("Pair", "a b")


class Box:
    """An object with attributes."""

    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)


def right(function: Any, x: np.ndarray = X) -> None:
    """The value of NumPy, and the gradient that differences give."""
    np.testing.assert_allclose(ckad.jit(function)(x), function(x.copy()), rtol=1e-12)
    ckad.testing.check_grads(function, (x,), order=1)


def table(programs: list[Any]) -> Any:
    return pytest.mark.parametrize("program", programs, ids=lambda f: f.__name__)


# --- memory with two names: right, or an error ----------------------------------------------------


def seen_by_a_closure(x):
    u = x.copy()
    w = u

    def first():
        return w[1]

    for _ in range(10):
        u[1] = u[0] * 3.0
        u = u * 0.5
    return first() + u.sum()


def seen_by_the_rest_of_the_statement(x):
    def shrink(v):
        for _ in range(10):
            v[0] += 1.0
            v = v * 0.9
        return v.sum()

    return [x, shrink(x)][0] * 2.0


def seen_by_an_attribute(x):
    u = x.copy()
    box = Box(w=u)
    for _ in range(10):
        u[1] = u[0] * 3.0
        u = u * 0.5
    return box.w * u


def seen_by_a_named_tuple(x):
    u = x.copy()
    pair = Pair(u, 1.0)
    for _ in range(10):
        u[1] = u[0] * 3.0
        u = u * 0.5
    return pair.a * u


def seen_by_a_partial(x):
    u = x.copy()
    add = functools.partial(np.add, u)
    for _ in range(10):
        u[1] = u[0] * 3.0
        u = u * 0.5
    return add(1.0) * u


def seen_by_a_default(x):
    u = x.copy()

    def scaled(k, w=u):
        return w * k

    for _ in range(10):
        u[1] = u[0] * 3.0
        u = u * 0.5
    return scaled(2.0) * u


def the_array_before_is_the_array_itself(x):
    u, before, s = x.copy(), np.zeros(8), 0.0
    for _ in range(9):
        s += before[0] * 2
        u[0] += 0.1
        s += before[0]
        before = u
    return s * u


def bound_in_a_loop_written_after_it(x):
    u, before, s = x.copy(), np.zeros(8), 0.0
    for k in range(8):
        s += u[k]
        before = u
    u[0] = 5.0
    return before * s


def a_view_bound_in_a_loop(x):
    u = x.copy()
    for _ in range(9):
        u[1:] *= 0.9
        v = u[2:5]
    u[3] = 5.0
    return v * 2.0


def two_names_for_what_a_step_makes(x):
    u, w = x.copy(), x * 2.0
    for _ in range(9):
        t = u * 0.9 + w * 0.1
        u = t
        w = t
    u[0] = 9.0
    return u + w


def two_names_and_a_later_step_writes(x):
    u, w = x.copy(), x * 2.0
    for _ in range(9):
        u[0] += 1.0 + w[0]
        t = u * 0.9
        u = t
        w = t
    return u + w


def a_loop_without_steps(x):
    u = x.copy()
    w = u
    while u[0] > 100.0:
        u = u * 0.5
    u[0] = 7.0
    return w + u


def buffers_in_turn_and_a_name_for_one(x):
    u, un, s = x.copy(), np.zeros(8), 0.0
    w = u
    for _ in range(9):
        un[1:-1] = 0.4 * (u[:-2] + u[2:])
        s += w[3]
        u, un = un, u
    return u * s


def buffers_in_turn_and_an_attribute(x):
    u, un, s = x.copy(), np.zeros(8), 0.0
    box = Box(w=u)
    for _ in range(9):
        un[1:-1] = 0.4 * (u[:-2] + u[2:])
        s += box.w[3]
        u, un = un, u
    return u * s


def an_inner_loop_writes(x):
    u, s = x.copy(), 0.0
    box = Box(w=u)
    for _ in range(6):
        for i in range(7):
            u[1] = u[0] * 0.3 + i
            u = u * 0.5
        s += box.w[1]
    return u + s


def one_of_two_by_a_branch(x):
    a, b = x.copy(), x * 2
    box = Box(a=a)
    c = a if x[0] > 0.2 else b
    c[1] = 9.0
    return box.a * 1.0 + c


def one_of_two_by_a_branch_then_a_loop(x):
    a, b = x.copy(), x * 2
    box = Box(a=a)
    c = a if x[0] > 0.2 else b
    for _ in range(9):
        c[1] += 0.5
        c = c * 0.9
    return box.a * 1.0 + c


def two_names_for_what_a_branch_makes(x):
    if x[0] > 0.2:
        t = x * 2
        a = t
        b = t
    else:
        a = x * 3
        b = x * 4
    a[0] = 9.0
    return b * 1.0


def a_tuple_whose_array_is_written(x):
    u = x.copy()
    w = u
    state = (u, 0.0)
    for _ in range(9):
        state[0][1] += 1.0
        state = (state[0] * 0.9, state[1] + 1.0)
    return w * 1.0 + state[0] * state[1]


def appended_then_written(x):
    u, history = x.copy(), []
    for _ in range(9):
        u[0] += 1.0
        u = u * 0.9
        history.append(u)
    return np.stack(history)


MEMORY = [
    seen_by_a_closure,
    seen_by_the_rest_of_the_statement,
    seen_by_an_attribute,
    seen_by_a_named_tuple,
    seen_by_a_partial,
    seen_by_a_default,
    the_array_before_is_the_array_itself,
    bound_in_a_loop_written_after_it,
    a_view_bound_in_a_loop,
    two_names_for_what_a_step_makes,
    two_names_and_a_later_step_writes,
    a_loop_without_steps,
    buffers_in_turn_and_a_name_for_one,
    buffers_in_turn_and_an_attribute,
    an_inner_loop_writes,
    one_of_two_by_a_branch,
    one_of_two_by_a_branch_then_a_loop,
    two_names_for_what_a_branch_makes,
    a_tuple_whose_array_is_written,
    appended_then_written,
]


#: Of these it is not known which of two arrays a name shows.
ONE_OF_TWO = [
    two_names_for_what_a_step_makes,
    a_loop_without_steps,
    one_of_two_by_a_branch,
    one_of_two_by_a_branch_then_a_loop,
    two_names_for_what_a_branch_makes,
]


@table(MEMORY)
def test_memory_with_two_names(program):
    if program in ONE_OF_TWO:
        with pytest.raises(AliasError, match="may be the memory"):
            right(program)
    else:
        right(program)


#: Of these every step but the first can be recorded once.
PEELED = [
    seen_by_a_closure,
    seen_by_the_rest_of_the_statement,
    seen_by_an_attribute,
    seen_by_a_default,
    the_array_before_is_the_array_itself,
    buffers_in_turn_and_a_name_for_one,
    appended_then_written,
]


@table(PEELED)
def test_memory_with_two_names_that_is_understood(program):
    right(program)


def buffers_chosen_by_a_branch(x):
    u, un = x.copy(), np.zeros(8)
    for k in range(9):
        un[1:-1] = 0.4 * u[:-2] + 0.4 * u[2:]
        un[0] = x[0]
        if k % 2 == 0 or un[3] > 0.1:
            u, un = un, u
    return u + un


def test_names_that_a_branch_exchanges_are_never_one_array():
    right(buffers_chosen_by_a_branch)


def test_the_error_says_where_the_other_name_was_written():
    with pytest.raises(AliasError, match=r"written into at .*test_source_attack\.py:\d+.*copy\(\)"):
        ckad.jit(one_of_two_by_a_branch)(X)


# --- the names of loops ---------------------------------------------------------------------------


def an_index_that_the_body_changes(x):
    s = 0.0
    for i in range(5):
        i = i * 2
        s += x[i % 8]
    return s + i


def an_item_that_the_body_changes(x):
    s = 0.0
    for i, v in enumerate(x):
        if v > 0.95:
            i = i + 10
            v = v * 2
        s += v
    return s + i * v


def a_row_after_its_loop(x):
    m = np.outer(x, x)
    for row in m:
        row *= 0.5
    row[0] = 77.0
    return m


def a_target_that_is_an_element(x):
    a, s = np.zeros(3), 0.0
    for a[1] in x:
        s += a[1]
        a[1] *= 3.0
    return a + s


def a_name_that_a_closure_reads_later(x):
    t = 0.0

    def last():
        return t

    for i in range(8):
        t = x[i] * 2.0
    return last() ** 2


NAMES = [
    an_index_that_the_body_changes,
    an_item_that_the_body_changes,
    a_row_after_its_loop,
    a_target_that_is_an_element,
    a_name_that_a_closure_reads_later,
]


@table(NAMES)
def test_names_after_a_loop(program):
    right(program)


# --- iterators ------------------------------------------------------------------------------------


def growing(u, n):
    for i in range(n):
        yield u[0] * (i + 1)


def a_generator_reads_what_the_body_writes(x):
    u = x.copy()
    for v in growing(u, 6):
        u[0] += 0.1 * v
    return u


def a_loop_over_a_generator_ends_early(x):
    for v in growing(x, 6):
        if v > 0.5:
            return v
    return x[0]


def a_generator_expression_is_evaluated_late(x):
    u, s = x.copy(), 0.0
    doubled = (u[i] * 2 for i in range(3))
    u[0] = 5.0
    for v in doubled:
        s += v
        u[2] = s
    return s


def an_iterator_is_used_up_once(x):
    pairs, s = zip([1.0, 2.0], [x[0], x[1]], strict=True), 0.0
    for _ in range(10):
        for a, b in pairs:
            s += a * b
        s = s * 0.9 + x[2]
    return s


def a_list_grows_while_it_is_read(x):
    found = [x[0]]
    for v in found:
        if len(found) < 6:
            found.append(v * 1.5)
    return sum(found)


def builtins_of_generators(x):
    s = 0.0
    for k in range(6):
        if any(v > 0.21 * k for v in x):
            s += 1.0 + x[0]
        if all(v > 0.21 * k for v in x[2:5]):
            s += 10.0 * x[1]
        s += max(v * k for v in x) + min(x[j] for j in range(3)) + sum(v * v for v in x)
    return s


ITERATORS = [
    a_generator_reads_what_the_body_writes,
    a_loop_over_a_generator_ends_early,
    a_generator_expression_is_evaluated_late,
    an_iterator_is_used_up_once,
    a_list_grows_while_it_is_read,
    builtins_of_generators,
]


@table(ITERATORS)
def test_iterators(program):
    right(program)


# --- objects --------------------------------------------------------------------------------------


class Total:
    """An object whose methods Python calls by itself."""

    def __init__(self) -> None:
        self.total, self.calls = 0.0, 0

    def __iadd__(self, v):
        self.total = self.total + v
        return self

    def __setitem__(self, i, v):
        self.total += i * v

    def __getitem__(self, i):
        self.calls += 1
        return self.total * i

    def __lt__(self, other):
        self.calls += 1
        return self.total < other

    def __bool__(self):
        self.calls += 1
        return True

    def __iter__(self):
        self.calls += 1
        return iter([self.total, 1.0])

    def __enter__(self):
        self.total += 1.0
        return self

    def __exit__(self, *error):
        self.total *= 0.5

    @property
    def twice(self):
        return self.total * 2

    @twice.setter
    def twice(self, v):
        self.total += v


def an_object_that_adds(x):
    t = Total()
    for k in range(9):
        t += x[k % 8]
    return t.total


def an_object_with_elements(x):
    t, s = Total(), 0.0
    for k in range(9):
        t[k] = x[k % 8]
        t[1] += 0.1 * x[0]
        s += t[2]
    return s * t.calls


def an_object_with_a_property(x):
    t = Total()
    for k in range(9):
        t.twice = x[k % 8]
        t.twice += 0.1
    return t.twice


def an_object_that_is_compared_and_tested(x):
    t, s = Total(), 0.0
    for k in range(9):
        if t and t < 0.95 * x[k % 8]:
            s += x[k % 8]
        t.total = 0.1 * k * x[2]
    return s * t.calls


def an_object_that_is_iterated_over(x):
    t, s = Total(), 0.0
    t.total = x[0]
    for k in range(9):
        for v in t:
            s += v * x[k % 8]
    return s * t.calls


def an_object_that_is_entered(x):
    t = Total()
    for k in range(9):
        with t as entered:
            entered.total += x[k % 8]
    return t.total


class Relaxation:
    """A solver as users write it: arrays made by its constructor."""

    def __init__(self, n):
        self.n = n
        self.u = np.zeros(n)
        self.f = np.ones(n) * 0.1
        for i in range(n):
            self.f[i] = i * 0.1

    def relax(self, x):
        for i in range(1, self.n - 1):
            self.u[i] = 0.5 * (self.u[i - 1] + self.u[i + 1] + x[i] * self.f[i])


class Damped(Relaxation):
    """The same with its parent's constructor and method."""

    def __init__(self, n, k):
        super().__init__(n)
        self.k = k

    def relax(self, x):
        super().relax(x)
        self.u *= self.k


def a_constructor_that_makes_arrays(x):
    solver = Relaxation(8)
    for _ in range(6):
        solver.relax(x)
    return solver.u * 1.0


def a_method_of_the_parent(x):
    solver = Damped(8, x[0])
    for _ in range(6):
        solver.relax(x)
    return solver.u * 1.0


OBJECTS = [
    an_object_that_adds,
    an_object_with_elements,
    an_object_with_a_property,
    an_object_that_is_compared_and_tested,
    an_object_that_is_iterated_over,
    an_object_that_is_entered,
    a_constructor_that_makes_arrays,
    a_method_of_the_parent,
]


@table(OBJECTS)
def test_objects(program):
    right(program)


# --- others ---------------------------------------------------------------------------------------


def test_linspace_of_a_traced_bound_keeps_its_fractions():
    right(lambda x: np.linspace(-x[0], x[1], 5, dtype=np.float64))
    found = ckad.jit(lambda x: np.linspace(0.0, x[7] * 5, 5, dtype=int))(X)
    np.testing.assert_array_equal(found, np.linspace(0.0, X[7] * 5, 5, dtype=int))


def factorials(x):
    s, f = 1.0, 1
    for i in range(1, 26):
        f *= i
        s += x[0] ** i / f
    return s


def powers_of_two(x):
    s = 0.0
    for i in range(70):
        s += x[i % 8] / 2**i
    return s


def a_hash(x):
    h, s = 5381, 0.0
    for i in range(30):
        h = h * 33 + i
        s += x[i % 8] * (h % 97)
    return s


@table([factorials, powers_of_two, a_hash])
def test_integers_of_python_beyond_64_bits_are_an_error(program):
    with pytest.raises(RaisedError, match="leaves the 64 bits"):
        ckad.jit(program)(X)


def rows_exchanged_by_a_list(x):
    m = np.outer(x, x) + np.diag(x)
    for k in range(7):
        p = k
        for i in range(k + 1, 8):
            if abs(m[i, k]) > abs(m[p, k]):
                p = i
        m[[k, p]] = m[[p, k]]
        m[k] *= 1.1
    return m


def test_a_list_of_traced_indices():
    right(rows_exchanged_by_a_list)
