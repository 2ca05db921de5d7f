"""Habits of programs as they are found: lists where NumPy takes arrays, memory asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import ckad
from ckad.errors import UnsupportedFunctionError

X = np.array([0.7, 1.3, 0.4])
PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_like_numpy_and_its_gradient(engine, function):
    np.testing.assert_allclose(ckad.jit(function)(X), function(X.copy()), rtol=1e-12)
    ckad.testing.check_grads(function, (X,))


TABLE = np.array([[0.3, -1.2, 0.5], [2.0, 0.4, -0.7], [1.1, 0.2, 0.9]])
LEVELS, SIDES = np.array([0.5, 1.0, 1.5]), np.array([2, 0, 1])


@program
def methods_of_arrays_from_outside(x):
    """NumPy's own methods know nothing of traced values among their arguments."""
    total = TABLE.dot(x) @ TABLE.T.dot(TABLE.dot(x)) + LEVELS.clip(x, max=2 * x).sum()
    total += (LEVELS.take(np.argsort(x)) * x).sum() + SIDES.choose([x, 2 * x, 3 * x]) @ x
    total += np.sum(LEVELS.searchsorted(x) * x) + LEVELS.sum(where=x > 0.5) * x[0]
    for k in range(8):
        total += np.sum((TABLE.dot(x) - LEVELS[k % 3]) ** 2) if x[0] > 0.16 * k else x[1]
    return total + LEVELS[0].clip(x[2], x[1]) ** 2


@program
def lists_as_operands(x):
    both, pair = [x[0], 2 * x[1]], x[:2]
    total = np.sum(np.square(both)) + np.sum(np.add(both, [1.0, x[2]]) ** 2)
    total += np.sum((pair * both) ** 2) + np.sum((both - np.ones(2)) ** 2)
    total += np.sum(np.sin([[x[0], 1.0], [x[1], 2.0]])) + np.sum(np.exp((x[0], x[1])))
    total += (
        np.matmul([[x[0], 1.0], [2.0, x[1]]], both).sum() + ([[1.0, 2.0], [3.0, 4.0]] @ pair)[1]
    )
    return total + np.sum(np.abs([x[0] + 1j * x[1], 1.0])) + np.sum(np.hypot([x, 2 * x], [x, x]))


@program
def lists_in_methods_of_ufuncs(x):
    total = np.add.reduce([x[0] * x[1], 2 * x[2]]) + np.maximum.reduce([x, 2 * x[::-1]]).sum()
    total += np.sum(np.multiply.outer([x[0], 1.0], [x[1], 2.0]) ** 2)
    floors, rests = np.divmod.outer(x, [1.0, 0.9])
    total += np.sum(floors * x[1] + rests**2)
    return total + np.add.accumulate([x[0], x[1] ** 2])[1]


@program
def written_through_flat_and_real(x):
    a, b, counts = np.zeros((2, 3)), x * x, np.ones(3, int)
    a.flat = x[:2]
    b.real = x[::-1] * b
    np.add.at(counts, [0, 0, 1], -x)
    np.subtract.at(b, [0, 0, 1], x > 0.5)
    return np.sum(a * b) + np.sum(counts * x) + np.sum(np.real([x[0], x[1]]) ** 2)


@program
def lists_written(x):
    a, o = np.zeros((2, 2)), np.zeros(2)
    a[:, 0] = [x[0], x[1] * 3]
    a[1] += [x[0], 1.0]
    a *= [x[2], x[1]]
    np.multiply([x[0], 3.0], [x[1], x[2]], out=o)
    return np.sum(a**2) + np.sum(o**2)


@program
def lists_in_functions(x):
    both, rows = [x[0], x[1]], [[x[0], 1.0], [2.0, x[1]]]
    total = np.sum(np.clip(both, 0.8, 2)) + np.fix(both) @ both + np.trapezoid(both, [x[2], 2.0])
    total += np.sum(np.where([x[0] > 1, x[1] > 1], both, [x[1], x[1] ** 2]))
    total += np.sum(np.append(both, rows) ** 2) + np.sum(np.vstack([both, rows]) ** 2)
    total += np.nansum(both) + np.ptp(both) + np.nanmean(rows, 0) @ both
    total += np.sum(np.dstack([both, both]) ** 3) + np.hstack([both, x[2]])[2] ** 2
    total += np.sum(np.isposinf(both)) + np.sum(np.imag(both)) + np.searchsorted(both, 1.0) * x[0]
    return total + np.sum(np.histogram(both, 3, (0, 2), weights=both)[0] ** 2)


# --- memory ------------------------------------------------------------------------------------


@program
def shapes_are_set(x):
    a = np.outer(x, x)[:2] * 2
    b = a
    a.shape = (3, 2)
    rows = a.T
    a.shape = -1
    a[0] = x[1] ** 3
    return np.sum(b * np.arange(6.0)) + np.sum(rows[1] * x)


@program
def strides_of_arrays(x):
    a = np.outer(x, x)
    windows = as_strided(a, shape=(2, 2, 2, 2), strides=a.strides * 2)
    a[1, 1] = x[0]
    total = np.sum(windows[:, :, 0, 1] * windows[:, :, 1, 0]) + np.sum(windows.mean((2, 3)) ** 2)
    diagonal = as_strided(a, (3,), (sum(a.strides),))
    diagonal *= 2
    diagonal[1:] = x[:2]
    part = a[1:, ::2]
    part_again = as_strided(part, (2, 2), part.strides)
    part_again += 1
    return total + np.sum(a**2) + np.sum(as_strided(a.T, (2, 2), a.T.strides) ** 3)


@program
def strides_in_a_loop(x):
    a = np.asfortranarray(np.outer(x, x))
    for _ in range(6):
        windows = as_strided(a, (2, 2, 2, 2), a.strides * 2)
        a[:2, 1:] = 0.3 * np.sum(windows, axis=(2, 3)) + windows[:, 0, 1, :]
    return np.sum(a**2)


@program
def flags(x):
    a = np.outer(x, x)
    said = a.flags["C_CONTIGUOUS"] + 2 * a.T.flags.f_contiguous + 4 * a[:, ::2].flags.c_contiguous
    said += (
        8 * a.flags.owndata
        + 16 * a[1:].flags.owndata
        + 32 * np.broadcast_to(x, (2, 3)).flags.writeable
    )
    a.flags.writeable = False
    return np.sum(x) * (said + a.T.strides[1] + a[:, 1:].strides[0])


@program
def column_by_column(x):
    a = np.zeros((2, 3), order="F")
    a.flat[:] = np.hstack([x, x**2])
    b, c, d = np.array(a, order="F"), np.asfortranarray(a), a.copy("F")
    e, f, g = a.astype(float, order="F"), np.asarray(a, order="F"), np.zeros_like(a, order="F")
    h, i, j = a.ravel("K"), a.flatten("F"), np.ravel(a, "A")
    k, m, n = np.reshape(a, (3, 2), order="A"), np.full((2, 3), x, order="F"), np.copy(a, "F")
    p = np.asfortranarray(np.outer(x, x)[:2])
    c[1, 1], f[0, 0], g[0] = 5.0, x[1] ** 3, a[1]
    flat = p.reshape(-1, order="F")
    flat[1:] *= 2.0
    arrays = (a, b, c, d, e, f, g, h, i, j, k, m, n, p)
    return sum(np.sum(v * np.arange(v.size).reshape(v.shape)) for v in arrays)


def test_a_shape_that_needs_a_copy_is_no_shape_to_set():
    def turned(x):
        a = np.outer(x, x).T
        a.shape = (9,)
        return np.sum(a)

    with pytest.raises(AttributeError, match="incompatible shape"):
        ckad.jit(turned)(X)


def test_strides_beyond_the_memory_are_refused():
    with pytest.raises(ValueError, match="outside of the array's memory"):
        ckad.jit(lambda x: np.sum(as_strided(x, (4,), x.strides)))(X)


def test_writes_through_strides_that_overlap_are_refused():
    def overlapping(x):
        windows = as_strided(x, (2, 2), x.strides * 2)
        windows += 1.0
        return np.sum(x)

    with pytest.raises(UnsupportedFunctionError, match="show an element several times"):
        ckad.jit(overlapping)(X)


# --- where a condition is true -----------------------------------------------------------------


@program
def indices_of_a_condition(x):
    fired = np.where(x > 0.5)[0]
    x[fired] = x[fired] ** 2
    x[fired] += 1.0
    u = np.outer(x, x)
    u[np.where(u > 1)] *= 0.5
    rows, columns = np.nonzero(u < 1.2)
    u[rows, columns] = u[rows, columns] ** 2 + 2
    u.ravel()[np.flatnonzero(u > 4)] *= x[0]
    u[:, fired] += 1
    u[fired, 0] = x[fired]
    total = np.sum(u[:, fired].sum(axis=1) * x) + np.sum(np.argwhere(u > 4)) * x[1]
    return total + np.sum(u**2) + len(fired) * fired.size * np.mean(x[fired]) + len(rows) * x[2]


@program
def places_beside_those_of_a_condition(x):
    i = np.where(x[:-1] > 0.5)[0]
    x[i + 1] -= 0.1 * x[i]
    u = np.outer(x, x)
    rows, columns = np.where(u[1:, 1:] > 0.2)
    u[rows, columns] += u[rows + 1, columns + 1]
    u[-rows - 1, columns] = 0.1 * x[0]
    order = np.array([1, 2, 0])
    x[order[i]] += x[i]
    return np.sum(x**3) + np.sum(u**2) + np.sum(x[order[i]]) + np.sum(x[i + 1] * x[i])


@program
def some_of_the_indices(x):
    i = np.where(x > 0.5)[0]
    total = x[i[0]] ** 2 + 3 * x[i[-1]] + i[0] + np.max(i) + np.extract(x > 0.5, x**2).sum()
    none = np.where(x > 100)[0]
    x[none] = 7.0
    x[none + 1] = 3.0
    if len(none) == 0:
        x = x * 2
    first = np.argwhere(x > 1.5)[0]
    return total + np.sum(x**2) + x[first[0]] + np.sum(x[i[1:]])


@program
def indices_in_a_loop(x):
    v, counts = 0.93 * x, []
    for _ in range(8):
        fired = np.where(v > 1.0)[0]
        v[fired] = 0.5 * x[fired]
        counts.append(len(fired))
        v = v + 0.3 * x
    return np.sum(v) * sum(counts)


def test_a_condition_that_is_true_nowhere_has_no_first_index():
    with pytest.raises(IndexError):
        ckad.jit(lambda x: x[np.where(x > 100)[0][0]])(X)


@pytest.mark.parametrize("function", [max, min])
def test_extremum_of_a_row_is_the_one_that_python_keeps(function):
    """The first of equals; a NaN is never better than a number, nor a number better than a NaN."""
    for values in itertools.product([1.0, 2.0, np.nan, -np.inf, 0.0, -0.0], repeat=3):
        x = np.array(values)
        k = function(range(3), key=values.__getitem__)
        value, gradient = ckad.value_and_grad(lambda x: function(x * 1.0), engine="vm")(x)
        np.testing.assert_array_equal([value, np.signbit(value)], [x[k], np.signbit(x[k])])
        np.testing.assert_array_equal(gradient, np.arange(3) == k)


@pytest.mark.parametrize("function", [max, min, any, all])
def test_a_row_is_not_taken_apart(function):
    rows = [
        len(str(ckad.trace(lambda x: function(x * x))(np.arange(1.0, n))).splitlines())
        for n in (9, 900)
    ]
    assert rows[0] == rows[1]
    for x in (np.zeros(3), np.array([0.0, 1.0]), np.array([True, True]), np.arange(4)):
        assert ckad.jit(lambda x: function(x))(x) == function(x)


GRID = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "fun",
    [
        lambda a: a.ravel("A"),
        lambda a: a.reshape(6, order="A"),
        lambda a: (2.0 * a).flatten("A"),
        lambda a: np.array(a, order="A").ravel("K"),
    ],
)
def test_order_as_it_lies_is_that_of_numpy_or_refused(fun):
    rows = GRID.copy()
    np.testing.assert_array_equal(ckad.jit(fun)(rows), fun(rows))
    for other in (np.asfortranarray(GRID), GRID.T):
        with pytest.raises(UnsupportedFunctionError, match="an array whose layout is not known"):
            ckad.jit(fun)(other)
    line = np.arange(6.0)[::2]
    np.testing.assert_array_equal(ckad.jit(lambda a: a.ravel("A"))(line), line)


def test_shapes_that_are_arrays_in_loops():
    def program(x):
        total = 0.0
        for k in range(40):
            size = np.array([3, 2])
            block = (
                np.zeros(size[::-1]) + np.full(size, k * x[0]).T + np.broadcast_to(x, size[::-1])
            )
            halves = np.split(x, np.array([1, 2]))
            total += np.sum((k * x).reshape(np.array([3, 1])) @ np.reshape(x, np.array([1, -1])))
            total += np.sum(block**2) * halves[1][0] + np.pad(k * x, np.array([1, 2]))[2]
        return total

    x = np.array([0.1, 0.2, 0.3])
    assert np.isclose(ckad.jit(program, engine="vm")(x), program(x), rtol=1e-13)
