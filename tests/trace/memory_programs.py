"""Programs whose loops and branches bind names to other views of memory.

`RIGHT` ones have to be understood. `EITHER` ones depend on which of several views a name shows when
only the run tells: they are right, or refused by an error that names the line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import ckad

Program = Callable[..., Any]
RIGHT: list[Program] = []
EITHER: list[Program] = []


def right(program: Program) -> Program:
    RIGHT.append(program)
    return program


def either(program: Program) -> Program:
    EITHER.append(program)
    return program


def weighed(*arrays: Any) -> Any:
    """A sum that tells every element of every array from all others."""
    total = 0.0
    for k, a in enumerate(arrays):
        weights = np.arange(1.0, a.size + 1.0).reshape(a.shape) ** 2
        total = total + (k + 1) * np.sum(a * weights)
    return total


# --- two views of one array, exchanged -----------------------------------------------------------


@right
def reversed_views(x, n, flags):
    u = x.copy()
    v = u[::-1]
    q = 0.0
    for _ in range(n):
        q = q + x[0]
        u, v = v, u
    v[2] += 0.5
    return weighed(u, v) + q


@right
def reversed_views_by_a_third_name(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s = 0.0
    for _ in range(n):
        s += x[1] * u[0]
        t = u
        u = v
        v = t
    u[0] *= 3.0
    return s + weighed(u, v)


@right
def a_matrix_and_its_transpose(x, n, flags):
    b = np.outer(x, x + 1.0)
    c = b.T
    s = 0.0
    for _ in range(n):
        s += np.sum(b[0])
        b, c = c, b
    b[0, 1] = 5.0 * x[0]
    return s + weighed(b, c)


@right
def overlapping_slices(x, n, flags):
    u = x.copy()
    a, b = u[:4], u[2:]
    s = 0.0
    for _ in range(n):
        s += x[0] * a[1]
        a, b = b, a
    b[3] = 9.0 * x[1]
    return s + weighed(a, b, u)


@right
def every_other_element(x, n, flags):
    u = x.copy()
    a, b = u[::2], u[1::2]
    s = 0.0
    for _ in range(n):
        s += a[0] * b[1]
        a, b = b, a
    a *= 2.0
    return s + weighed(a, b, u)


@right
def columns(x, n, flags):
    m = np.outer(x, x)
    a, b = m[:, 0], m[:, 3]
    s = 0.0
    for _ in range(n):
        s += np.sum(a)
        a, b = b, a
    np.add(a, 1.0, out=a)
    return s + weighed(m)


@right
def a_row_and_a_column(x, n, flags):
    m = np.outer(x, x + 0.5)
    a, b = m[1], m[:, 1]
    s = 0.0
    for _ in range(n):
        s += a[0]
        a, b = b, a
    a[2] = 0.0
    b[3] = x[0]
    return s + weighed(m, a)


@right
def strides_as_of_diagonals(x, n, flags):
    m = np.outer(x, x + 0.5)
    flat = m.reshape(-1)
    a, b = flat[::7], flat[5:35:5]
    s = 0.0
    for _ in range(n):
        s += np.sum(a)
        a, b = b, a
    a[1] += x[0]
    return s + weighed(m, b)


@right
def a_reshape_and_its_transpose(x, n, flags):
    u = np.concatenate([x, x**2])
    a = u.reshape(3, 4)
    b = u.reshape(4, 3).T
    s = 0.0
    for _ in range(n):
        s += a[0, 1]
        a, b = b, a
    a[0, 1] = 7.0
    return s + weighed(u, a, b)


@right
def a_ravel_and_a_slice(x, n, flags):
    m = np.outer(x, x + 0.5)
    a, b = m.ravel()[:6], m[0]
    s = 0.0
    for _ in range(n):
        s += a[3]
        a, b = b, a
    a[3] *= 2.0
    return s + weighed(m, a, b)


@right
def views_of_views(x, n, flags):
    m = np.outer(x, x + 0.5)
    a = m[1:, ::2][::-1]
    b = m.T[::2, 1:].T
    s = 0.0
    for _ in range(n):
        s += a[0, 0]
        a, b = b, a
    a[0, 1] = 4.0 * x[2]
    return s + weighed(m, a, b)


@right
def views_of_the_argument(x, n, flags):
    a, b = x[1:], x[:-1]
    s = 0.0
    for _ in range(n):
        s += a[0]
        a, b = b, a
    a[0] = 2.0
    return s + weighed(x, b)


@right
def the_argument_and_its_view(x, n, flags):
    v = x[::-1]
    s = 0.0
    for _ in range(n):
        s += x[0]
        x, v = v, x
    x[1] = 3.0
    return s + weighed(x, v)


@right
def one_array_by_two_names(x, n, flags):
    u = x.copy()
    v = u
    s = 0.0
    for _ in range(n):
        s += u[0] * x[0]
        u, v = v, u
    u[0] = 4.0
    return s + weighed(u, v)


@right
def complex_views(x, n, flags):
    u = x + 2j * x
    v = u[::-1]
    s = 0.0
    for _ in range(n):
        s += u[0].real
        u, v = v, u
    v[1] += 1 - 2j
    return s + weighed(u.real, v.imag)


@right
def parts_of_a_complex_array(x, n, flags):
    z = x + 2j * x
    a, b = z.real, z.imag
    s = 0.0
    for _ in range(n):
        s += a[0]
        a, b = b, a
    a[0] = 5.0
    return s + weighed(z.real, z.imag, b)


# --- three views, and more -----------------------------------------------------------------------


@right
def three_views_in_turn(x, n, flags):
    u = x.copy()
    a, b, c = u[:3], u[1:4], u[5:2:-1]
    s = 0.0
    for _ in range(n):
        s += a[0] * c[1]
        a, b, c = b, c, a
    a[1] = 2.0
    c *= 0.5
    return s + weighed(a, b, c, u)


@right
def two_of_three(x, n, flags):
    u = x.copy()
    a, b, c = u[::-1], u, 2.0 * x
    s = 0.0
    for _ in range(n):
        s += a[0] + c[0]
        a, c = c, a
    a[2] += 1.0
    b[0] = x[1]
    return s + weighed(a, b, c)


@right
def a_copy_takes_turns_with_views(x, n, flags):
    u = x.copy()
    a, b, c = u, u[::-1], x * 3.0
    s = 0.0
    for _ in range(n):
        s += a[1]
        a, b, c = c, a, b
    b[0] = -1.0
    return s + weighed(a, b, c, u)


@right
def two_pairs(x, n, flags):
    u, w = x.copy(), 2.0 * x
    a, b, c, d = u, u[::-1], w[::-1], w
    s = 0.0
    for _ in range(n):
        s += a[0] * c[0]
        a, b, c, d = b, a, d, c
    a[0], c[1] = 1.0, 2.0
    return s + weighed(a, b, c, d)


@right
def a_name_for_what_a_step_found(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s, w = 0.0, u
    for _ in range(n):
        w = u
        s += w[0]
        u, v = v, u
    w[0] = 6.0
    return s + weighed(u, v)


@right
def a_view_of_what_a_step_found(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s, w = 0.0, u[1:]
    for _ in range(n):
        w = u[1:]
        s += w[0]
        u, v = v, u
    w[0] = 6.0
    return s + weighed(u, v)


@right
def bound_to_the_same_view_again_and_again(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s = 0.0
    w = u
    for _ in range(n):
        s += w[0]
        w = v[...]
    w[0] = 9.0
    return s + weighed(u)


@right
def bound_to_a_reshape_of_the_same_shape(x, n, flags):
    m = np.outer(x, x + 1.0)
    u, v = m, m.T
    s = 0.0
    for _ in range(n):
        s += u[0, 1]
        u = v.reshape(6, 6)
    u[0, 1] = 9.0
    return s + weighed(m)


# --- with writes in the loop ---------------------------------------------------------------------


@right
def exchanged_and_then_written(x, n, flags):
    u = x.copy()
    v = u[::-1]
    for i in range(n):
        u, v = v, u
        u[0] += x[1] * i
    v[2] += 0.5
    return weighed(u, v)


@right
def written_and_then_exchanged(x, n, flags):
    u = x.copy()
    a, b = u[:4], u[2:]
    s = 0.0
    for i in range(n):
        a[i % 3] *= 1.1
        s += b[0]
        a, b = b, a
    return s + weighed(a, u)


@right
def written_by_a_third_name(x, n, flags):
    u = x.copy()
    w, v = u, u[::-1]
    s = 0.0
    for _ in range(n):
        s += u[0]
        w[0] += 1.0
        u, v = v, u
    return s + weighed(u)


@right
def written_by_a_function(x, n, flags):
    def raise_first(a):
        a[0] += 0.25

    u = x.copy()
    v = u[::-1]
    for _ in range(n):
        raise_first(u)
        u, v = v, u
    raise_first(v)
    return weighed(u, v)


@right
def separate_buffers_by_parts(x, n, flags):
    m, w = np.outer(x, x), np.zeros((6, 6))
    u, v = m[1:-1], w[1:-1]
    for _ in range(n):
        v[:] = 0.5 * u + x[0]
        u, v = v, u
    u[0, 0] = 3.0
    return weighed(m, w)


@right
def a_row_that_starts_a_history(x, n, flags):
    history = np.zeros((8, 6))
    history[0] = x
    u = history[0]
    for i in range(n):
        u = np.sin(u) + x
        history[i + 1] = u
    return weighed(history, u)


# --- attributes, lists, helpers, zip -------------------------------------------------------------


class Pair:
    def __init__(self, u, v):
        self.u, self.v = u, v

    def exchange(self):
        self.u, self.v = self.v, self.u


@right
def attributes(x, n, flags):
    u = x.copy()
    pair = Pair(u, u[::-1])
    s = 0.0
    for _ in range(n):
        s += pair.u[0]
        pair.u, pair.v = pair.v, pair.u
    pair.v[2] += 0.5
    return s + weighed(pair.u)


@right
def attributes_by_a_method(x, n, flags):
    m = np.outer(x, x + 1.0)
    pair = Pair(m, m.T)
    s = 0.0
    for _ in range(n):
        s += pair.u[0, 1]
        pair.exchange()
    pair.u[0, 1] = 2.0
    return s + weighed(pair.v, m)


@right
def a_name_and_an_attribute(x, n, flags):
    u = x.copy()
    pair = Pair(u[::-1], 0.0)
    s = 0.0
    for _ in range(n):
        s += u[0]
        u, pair.u = pair.u, u
    u[0] = 7.0
    return s + weighed(pair.u)


@right
def by_a_function_that_returns_them(x, n, flags):
    def turned(a, b):
        return b, a

    u = x.copy()
    v = u[::-1]
    s = 0.0
    for _ in range(n):
        s += u[0]
        u, v = turned(u, v)
    v[2] += 0.5
    return s + weighed(u)


@right
def by_a_closure(x, n, flags):
    u = x.copy()
    v = u[::-1]

    def exchange():
        nonlocal u, v
        u, v = v, u

    s = 0.0
    for _ in range(n):
        s += u[0]
        exchange()
    v[2] += 0.5
    return s + weighed(u)


@right
def items_of_a_list(x, n, flags):
    u = x.copy()
    both = [u, u[::-1]]
    s = 0.0
    for _ in range(n):
        s += both[0][0]
        both[0], both[1] = both[1], both[0]
    both[1][2] += 0.5
    return s + weighed(both[0])


@right
def a_list_made_anew(x, n, flags):
    u = x.copy()
    both = [u, u[::-1]]
    s = 0.0
    for _ in range(n):
        s += both[0][0]
        both = [both[1], both[0]]
    both[1][2] += 0.5
    return s + weighed(both[0], u)


@right
def a_tuple_made_anew(x, n, flags):
    u = x.copy()
    both = (u, u[::-1])
    s = 0.0
    for _ in range(n):
        s += both[0][0]
        both = both[::-1]
    both[1][2] += 0.5
    return s + weighed(both[0])


@right
def entries_of_a_dict_made_anew(x, n, flags):
    u = x.copy()
    both = {"a": u, "b": u[::-1]}
    s = 0.0
    for _ in range(n):
        s += both["a"][0]
        both = {"a": both["b"], "b": both["a"]}
    both["b"][2] += 0.5
    return s + weighed(both["a"])


@right
def lists_exchanged(x, n, flags):
    p, q = [x.copy()], [2.0 * x]
    keep = p
    s = 0.0
    for _ in range(n):
        s += p[0][0]
        p, q = q, p
    p[0] = 3.0 * x
    q.append(x)
    return s + weighed(*keep, *q)


@dataclass
class Buffer:
    data: Any


@right
def dataclasses_exchanged(x, n, flags):
    p, q = Buffer(x.copy()), Buffer(2.0 * x)
    keep = p
    s = 0.0
    for _ in range(n):
        s += p.data[0]
        p, q = q, p
    q.data = 7.0 * x
    return s + weighed(keep.data, p.data)


@right
def while_zip_runs(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s = 0.0
    for w, z in zip([u] * 7, [v] * 7, strict=True):
        s += w[0] * z[1]
        u, v = v, u
    v[2] += 0.5
    return s + weighed(u)


@right
def while_rows_are_read(x, n, flags):
    rows = np.outer(x, x)
    u = x.copy()
    v = u[::-1]
    s = 0.0
    for k, row in enumerate(rows):
        s += row[0] * u[0] * k
        u, v = v, u
    v[2] += 0.5
    return s + weighed(u)


# --- loops in loops, several loops ---------------------------------------------------------------


@right
def exchanged_in_an_inner_loop(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s = 0.0
    for _ in range(n):
        for _ in range(3):
            s += u[0]
            u, v = v, u
    v[2] += 0.5
    return s + weighed(u)


@right
def exchanged_in_both_loops(x, n, flags):
    u = x.copy()
    a, b, c = u, u[::-1], 2.0 * x
    s = 0.0
    for _ in range(n):
        for _ in range(6):
            s += a[0] * x[0]
            a, b = b, a
        a, b, c = b, c, a
    c[1] = 4.0
    return s + weighed(a, b, c)


@right
def two_loops_one_after_the_other(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s = 0.0
    for _ in range(n):
        s += u[0]
        u, v = v, u
    u[1] = 3.0
    for _ in range(n + 1):
        s += u[0]
        u, v = v, u
    v[2] += 0.5
    return s + weighed(u)


@right
def read_by_a_later_loop(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s = 0.0
    for _ in range(n):
        s += u[0]
        u, v = v, u
    for i in range(6):
        u[i] = x[i] ** 2
        s += v[i]
    return s


# --- while, break, counts that only the run tells ------------------------------------------------


@right
def exchanged_and_only_read(x, n, flags):
    u = x.copy()
    v = u[::-1]
    i, s = 0, 0.0
    while i < n and s < 1e6:
        s += u[0] * i
        u, v = v, u
        i += 1
    return s + weighed(u, v)


@either
def in_a_while(x, n, flags):
    u = x.copy()
    v = u[::-1]
    i = 0
    s = 0.0
    while i < n:
        s += u[0]
        u, v = v, u
        i += 1
    v[2] += 0.5
    return s + weighed(u)


@either
def left_by_break(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s = 0.0
    for i in range(6):
        s += u[0]
        u, v = v, u
        if flags[i] > 0:
            break
    v[2] += 0.5
    return s + weighed(u)


@either
def continued(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s = 0.0
    for i in range(6):
        s += u[0]
        if flags[i] > 0:
            continue
        u, v = v, u
    v[2] += 0.5
    return s + weighed(u)


@either
def returned_from_within(x, n, flags):
    u = x.copy()
    v = u[::-1]
    for i in range(6):
        u, v = v, u
        if flags[i] > 0:
            v[2] += 0.5
            return weighed(u) * x[0]
    v[0] += 0.5
    return weighed(u)


@either
def exchanged_under_a_condition(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s = 0.0
    for i in range(6):
        s += u[0]
        if flags[i] > 0:
            u, v = v, u
    v[2] += 0.5
    return s + weighed(u)


@either
def separate_arrays_exchanged_under_a_condition(x, n, flags):
    u, v = x.copy(), 2.0 * x
    w = v
    s = 0.0
    for i in range(6):
        s += u[0]
        if flags[i] > 0:
            u, v = v, u
    u[0] = 9.0
    return s + weighed(w)


@either
def written_before_a_conditional_exchange(x, n, flags):
    u, v = x.copy(), 2.0 * x
    w = v
    for i in range(6):
        u[i] += 1.0
        if flags[i] > 0:
            u, v = v, u
    return weighed(w)


@either
def bound_to_its_own_reverse(x, n, flags):
    u = x.copy()
    w = u
    s = 0.0
    for _ in range(n):
        s += u[0]
        u = u[::-1]
    u[0] = 8.0
    return s + weighed(w)


@either
def one_of_two_by_a_branch(x, n, flags):
    u = x.copy()
    w = u[::-1] if flags[0] > 0 else u[::1]
    w[0] = 9.0
    return weighed(u, w)


@either
def one_list_of_two_by_a_branch(x, n, flags):
    p, q = [x.copy()], [2.0 * x]
    keep = p
    if flags[0] > 0:
        p, q = q, p
    q[0] = 3.0 * x
    return weighed(keep[0], p[0])


@either
def a_name_that_may_not_be_bound(x, n, flags):
    u = x.copy()
    if flags[1] > 0:
        w = u
    w[0] = 5.0
    return weighed(u, w)


@right
def a_new_array_that_may_not_be_bound(x, n, flags):
    if flags[1] > 0:
        w = 2.0 * x
    w[0] = 5.0
    return weighed(w)


# --- lists that loops append to ------------------------------------------------------------------


@right
def appended_before_it_is_bound_anew(x, n, flags):
    u = x.copy()
    history = []
    for _ in range(n):
        history.append(u)
        u = 0.5 * u
    u[0] = 9.0
    return weighed(u, *history)


@either
def appended_and_written_afterwards(x, n, flags):
    u = x.copy()
    history = [x]
    for _ in range(n):
        u = 0.5 * u
        history.append(u)
    u[0] = 9.0
    return weighed(*history)


@either
def an_item_written_afterwards(x, n, flags):
    u = x.copy()
    history = [u]
    for _ in range(n):
        u = 0.5 * u
        history.append(u)
    history[-1][0] = 9.0
    return weighed(u)


@either
def appended_in_loops_in_loops(x, n, flags):
    u = x.copy()
    history = [x]
    for _ in range(n):
        for _ in range(5):
            u = 0.9 * u
            history.append(u)
    u[0] = 9.0
    return weighed(*history)


@either
def one_array_appended_at_several_steps(x, n, flags):
    u, v = x.copy(), 2.0 * x
    history = [u]
    for _ in range(n):
        history.append(u)
        u, v = v, u
    history[0][0] = 9.0
    return weighed(u, v, *history)


# --- how arrays lie in memory, and their dtypes ---------------------------------------------------


@either
def a_flat_view_of_what_a_branch_chose(x, n, flags):
    m = np.outer(x, x + 1.0)
    c = m.T if flags[1] > 0 else 2.0 * m
    flat = c.reshape(-1)
    flat[1] = 9.0
    return c[0, 1] * x[0]


@either
def a_flat_view_of_what_a_step_starts_with(x, n, flags):
    m = np.outer(x, x + 1.0)
    c = m.T
    s = 0.0
    for _ in range(n):
        flat = c.reshape(-1)
        flat[1] += 9.0
        s += c[0, 1] * x[0]
        c = 0.5 * c
    return s


@either
def a_flat_copy_of_a_column(x, n, flags):
    m, w = np.outer(x, x + 1.0), np.outer(x, x)
    a, b = m[:, 0], w[:, 0]
    s = 0.0
    for _ in range(n):
        flat = a.ravel()
        flat[0] = 7.0
        s += a[0] * x[0]
        a, b = b, a
    return s


@right
def a_flat_copy_of_a_part(x, n, flags):
    z = x + 1j * x
    flat = z.real.ravel()
    flat[0] = 9.0
    return weighed(z.real)


@right
def integers_and_floats_exchanged(x, n, flags):
    u, v = np.array([1, 2, 3, 4, 5, 6]), x.copy()
    s = 0.0
    for _ in range(n):
        s += x[0] * v[1]
        u, v = v, u
    s = s + weighed(u, v)
    v[0] = 2.7
    return s + 1.0 * v[0]


@right
def flags_that_become_floats(x, n, flags):
    u = np.array([True, False, True, True, False, True])
    s = 0.0
    for _ in range(n):
        s += np.sum(u + u) * x[0]
        u = u * 0.5
    return s


# --- scans ---------------------------------------------------------------------------------------


@right
def a_scan_around_a_loop(x, n, flags):
    def step(carry, k):
        u = carry + k
        v = u[::-1]
        s = 0.0
        for _ in range(n):
            s += u[0]
            u, v = v, u
        v[2] += 0.5
        return u, s + np.sum(u[:3])

    u, sums = ckad.scan(step, x, np.arange(3.0))
    return weighed(u, sums)


@right
def views_read_by_a_scan(x, n, flags):
    u = x.copy()
    v = u[::-1]
    s = 0.0
    for _ in range(n):
        s += u[0]
        u, v = v, u
    v[2] += 0.5
    total, _ = ckad.scan(lambda c, a: (c + a * u[0], None), 0.0 * x[0], v)
    return s + total
