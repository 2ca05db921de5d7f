"""Elements under traced masks and at traced indices, against NumPy and against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import TraceError

_rng = np.random.default_rng(3)
A, B = _rng.normal(size=7), _rng.normal(size=7)
PROGRAMS: list[Callable[[Any, Any], Any]] = []


def program(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    PROGRAMS.append(function)
    return function


@program
def assignments(a, b):
    m = a > 0
    a[m] = b[m]
    a[a > 0.5] += 1.0
    a[~m] *= b[~m]
    a[m] = np.log(a[m] ** 2 + 1) * b[m] + np.sqrt(np.abs(b[m])) / 3
    a[a > 1] = 0
    a[np.logical_and(a > -1, b > 0)] -= 0.25
    return np.sum(a**2)


@program
def whole_rows_and_other_columns_of_them(a, b):
    f = np.outer(a, b)[:, :4]
    m = a > 0
    bounced = f[m, :]
    bounced = bounced[:, [2, 3, 0, 1]]
    f[m, :] = 0.5 * bounced
    turned = f.T[:, m][np.array([0, 2])]
    return np.sum(f**2) + np.sum(turned**3)


@program
def a_cylinder_marked_in_loops(a, b):
    """The mask is known, though loops make it: so are the shapes of what it picks."""
    f, inside = np.outer(a, b), np.full((7, 7), False)
    for i in range(7):
        for j in range(7):
            if np.sqrt((i - 3) ** 2 + (j - 3) ** 2) < 2:
                inside[i][j] = True
    for _ in range(5):
        f = np.roll(f, 1, axis=1)
        kept = f[inside]
        f[inside] = kept[::-1] * b[0]
        f[inside] *= 0.9
        f[inside, ...] += kept.reshape(3, 3).sum(0)[1]
    return np.sum(f[:, 2] ** 2) * len(f[inside])


@program
def flags_in_place_of_masks(a, b):
    hole = np.nan * np.ones(7)
    c = a.copy()
    c[False] = (hole * b)[False]
    c[True] += b[True][0]
    c[np.bool_(True)] *= 2.0
    return np.sum(c**2) + a[False].shape[0]


@program
def columns_that_fired(a, b):
    w, v = np.outer(a, b), a[:, np.newaxis] * 1.5
    fired = np.where(v > 0.1)[0]  # a column's places, used as those of a vector
    v[fired] = 0.5 * v[fired]
    kept = np.sum(w[:, fired], axis=1, keepdims=True) + np.max(w[:, b > 0], axis=1, keepdims=True)
    both = np.column_stack((0.5 + 0 * fired, fired))
    return np.sum((v + kept) ** 2) + np.sum(both) * np.sum(a) + np.sum(kept * a)


@program
def matrices(a, b):
    c = np.outer(a, b)
    m = c > 0.2
    c[m] -= np.sqrt(c[m])
    c[c < 0] = c[c < 0] ** 2
    rows = a > 0
    c[rows] = c[rows] * b + 1.0
    c[rows, 1] = 3.0 * a[rows]
    c[rows, :2] *= 1.5
    c[:, rows] += np.sum(c[:, rows] * c[:, rows], axis=1)[3] - np.max(c[:, rows])
    c[2, rows] = a[rows]
    c[:, ~rows] = 0.5 * a[0]
    return np.sum(c**2)


@program
def reductions(a, b):
    s = np.outer(a, b)
    t = s[s > 0.1]
    v = a[a > 0]
    total = t.mean() + t.max() + t.min() * t.std() + t.sum() + np.linalg.norm(t) + t @ t
    total += len(v) * a[0] + v.shape[0] * np.var(v) + v.prod() + np.dot(v, b[a > 0])
    total += np.any(v > 1) * a[1] + np.all(v > 0) * a[2] + np.sum(s[a > 0], axis=0) @ b
    return total + np.sum(s[a > 0], axis=1) @ a[a > 0]


@program
def statistics(a, b):
    m = a > 0
    v, w, rows = a[m], b[m] ** 2 + 0.1, np.outer(a, b)[m]
    total = np.average(v, weights=w) + np.ptp(v) + np.linalg.norm(v, 1) + np.linalg.norm(v, np.inf)
    total += np.linalg.vector_norm(w) + np.nansum(v) + np.nanmax(w) * np.nanprod(v)
    total += np.std(rows, axis=0) @ b + np.sum(np.var(rows, axis=1) * v)
    total += np.sum(np.linalg.norm(rows, axis=1) * v) + np.count_nonzero(v > 0.1) * a[0]
    return total + np.sum((rows - np.sum(rows, axis=0, keepdims=True)) ** 2)


@program
def looked_up_in_tables(a, b):
    m = a > 0
    v = a[m]
    total = np.sum(np.interp(v, [0.0, 0.5, 1.0], b[:3])) + np.sum(np.polyval(b[:3], v))
    total += np.sum(np.digitize(v, [0.2, 0.9]) * v) + np.searchsorted([0.2, 0.9], v) @ b[m]
    total += np.sum(np.sinc(v) + np.real(v)) + np.amax(v) - np.amin(v)
    return total + np.sum(v.flatten() * b[m].ravel()) - np.sum(np.isneginf(v) * v)


@program
def in_loops(a, b):
    s = 0.0
    for k in range(1, len(a)):
        a[a > k * 0.1] -= 0.05 * b[a > k * 0.1]
        v = a[:k]
        v[v < 0] = -v[v < 0]
        a[k:][a[k:] > 0.3] = 0.3
        s += np.sum(a[a > 0])
    return s + np.sum(a * np.arange(len(a)))


@program
def harmless_outside(a, b):
    """Functions without a value, or a derivative, where the mask is false."""
    m = a > 0
    a[m] = np.sqrt(a[m]) + np.log(a[m]) + 1 / a[m] + np.arccosh(1 + a[m]) + a[m] ** b[m]
    return np.sum(a**2)


@program
def indices(a, b):
    i = np.floor(np.abs(b) * 2).astype(int)
    a[i] += b  # a repeated index counts once
    np.add.at(a, i - 3, b * b)
    a[i[0] - 5] *= 2
    a[-i - 1] = b**2  # the last of equal ones wins
    c = np.outer(a, b)
    c[i, :2] += b[:2]
    c[1, i] = b
    c[i, i[::-1]] *= 1.5
    return np.sum(a * np.arange(len(a))) + np.sum(b[i] * a[i - 2]) + np.sum(c**2)


@program
def what_where_gives_beside_a_number(a, b):
    x, v = np.stack([a, b], axis=1), np.ones((len(a), 2))
    for _ in range(3):
        for d in range(2):
            out = np.where(x[:, d] > 0.5)
            x[out, d] *= -0.5
            v[out, d] -= x[out[0], d]
            x[out, 1 - d] = 0.25
    return np.sum(x**2 * v)


@pytest.mark.parametrize("function", PROGRAMS)
def test_program_like_numpy_and_its_gradient(engine, function):
    expected = function(A.copy(), B.copy())
    np.testing.assert_allclose(ckad.jit(function)(A, B), expected, rtol=1e-11)
    ckad.testing.check_grads(function, (A, B))


@pytest.mark.parametrize("function", [assignments, indices])
def test_second_order(engine, function):
    ckad.testing.check_grads(function, (A, B), order=2)


def test_a_read_is_a_copy(engine):
    def copy_stays(a):
        m = a > 0
        v = a[m]
        a[m] = 5.0
        v += 1
        return np.sum(v) + np.sum(a)

    assert ckad.jit(copy_stays)(A) == pytest.approx(copy_stays(A.copy()))


def test_an_index_out_of_range_names_the_line(engine):
    def item(a, k):
        b = np.outer(a, a)
        b[1, k] = 2.0
        return b[k, 1] + b[0, k - 9]

    np.testing.assert_equal(ckad.jit(item)(A, np.array(2)), item(A, 2))
    for k in (-8, 7):
        with pytest.raises(IndexError, match=r"test_masked.py:\d+.*out of range"):
            ckad.jit(item)(A, np.array(k))


def test_the_maximum_under_an_empty_mask_stops_the_program(engine):
    def largest(a):
        return np.max(a[a > 100])

    with pytest.raises(IndexError, match=r"test_masked.py:\d+"):
        ckad.jit(largest)(A)


def _places(a):
    return np.where(a > 0)[0]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (_places, TraceError, "returns an array whose length is computed"),
    ],
)
def test_what_is_not_supported_is_named(function, error, message):
    with pytest.raises(error, match=f"test_masked.py:.*{message}"):
        ckad.jit(function)(A)


def of_one_number(a, b):
    x = np.array([a, b, 1.0])
    one, number = np.atleast_1d(b) * 2.0, np.array(a * b)
    one[np.asarray(a) > 0.1] = 3.0 * a
    number[number > 0.2] = b
    x[np.asarray(a) > 0.4] *= 7.0
    x[np.asarray(a) > 5.0] = 0.0
    kept, left = x[np.asarray(a) > 0.1], x[np.asarray(b) > 5.0]
    return np.sum(one) + number + np.sum(kept * np.arange(3.0)) + np.sum(left) + kept.shape[0] * a


def at_tuples(a, b):
    square, rows = np.arange(16.0).reshape(4, 4) * a, np.array([0, 2])
    square[(1, 3), 1] = b
    return np.sum(square[np.ix_(rows), 1] ** 2) + np.sum(square[(0, 1), (2, 1)])


@pytest.mark.parametrize("function", [of_one_number, at_tuples])
def test_masks_of_one_number_and_tuples_as_indices(function):
    assert ckad.jit(function)(0.45, 0.7) == pytest.approx(function(0.45, 0.7), rel=1e-14)
    ckad.testing.check_grads(function, (0.45, 0.7), order=1)
