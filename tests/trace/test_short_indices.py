"""int16 and int32: dtypes and numbers as NumPy's, as counters, tables, indices and lengths."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import ckad
from ckad.errors import RaisedError, UnsupportedFunctionError

U = np.array([0.13, 0.61, 0.957, -0.43])
TABLE = np.array([3, 1, 2, 0], np.int32)
LARGE = np.array([2**31 - 1, -5, 7, 2**30], np.int32)
WORDS = np.array([30_000, -30_000, 5, 2], np.int16)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():  # NumPy's, where its scalars wrap around
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def wrapping(u):
    a = (u > 0).astype(np.int32) * 2_000_000_000
    b = (u > 0).astype("int16") * 30_000
    return a + a, (a + a) * u, LARGE + LARGE, WORDS * 2, b + b, b + np.int8(1), b * 1.5, b / 2, -b


def declared(u):
    a = np.zeros(4, dtype=np.int32)
    a[1], b = 3, np.full(4, 7, np.int16)
    a[2] -= 1
    a += TABLE
    b[u > 0.5] *= 9000
    return a, b, a * u, np.int32(u[0] * 10), np.arange(3, dtype=np.int32), np.int16(7) * u[0]


def reduced(u):
    a = (u * 100).astype(np.int32).reshape(2, 2)
    whole = a.sum(), a.prod(), a.sum(0, dtype=np.int32), np.add.reduce(a), np.cumsum(a), sum(a[0])
    return *whole, a.max(1), a.mean(), np.median(a), np.trace(a), np.argsort(a), max(a[0, 0], 5)


def composed(u):
    a = (u * 100).astype(np.int32)
    one = np.diff(a), np.append(a, a), np.ptp(a), np.einsum("i,i", a, a), np.clip(a, 0, 20), a @ a
    two = np.where(a > 9, a, TABLE), np.pad(a, 1), np.convolve(a, a), np.linalg.norm(a)
    return *one, *two, np.interp(a, [0, 90], [0.0, 1.0]), np.outer(a, TABLE), np.floor(a), a // 7


def counted(u):
    n, bins, k = np.int32(0), np.zeros(3, np.int32), 0
    for i in range(40):
        bins[int(abs(u[i % 4]) * 2.9)] += 1
        np.add.at(bins, TABLE % 3, 1)
        if u[i % 4] > 0:
            n += 1
            k = TABLE[i % 4]
    return n, n * u, bins * u[:3], bins, k + n


def carried(u):
    a, n = np.arange(4, dtype=np.int32), np.int16(1)
    for i in range(30):
        a = a * 77 + i
        n = n * np.int16(3)
        a[i % 4] -= TABLE[3 - i % 4]
    return a, n, a * u


def indexed(u):
    start, column = np.array([0, 2, 3, 5], np.int32), np.array([0, 3, 1, 2, 0], np.int32)
    y = np.zeros(3)
    for i in range(3):
        near = column[start[i] : start[i + 1]]
        y[i] = np.sum(u[near]) + len(near) + near.sum() * 0.1 + np.mean(u[near + 0])
        for j in near:
            y[i] += u[j] * j
        for k in range(start[i], start[i + 1]):
            y[i] += u[column[k]] * k
    return y, u[TABLE], u[TABLE + 1 - 1], u[: TABLE[0]]


def chosen(u):
    n = np.int32(3) if u[0] > 0.05 else 4
    best, where = -1.0, -1
    for i in range(4):
        if u[i] > best:
            best, where = u[i], TABLE[i]
    return n * u, u[where] * where


PROGRAMS = [wrapping, declared, reduced, composed, counted, carried, indexed, chosen]


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_numbers_and_dtypes_are_those_of_numpy(program, engine):
    got = ckad.jit(program, engine=engine)(U.copy())
    for k, (x, y) in enumerate(zip(got, program(U.copy()), strict=True)):
        is_float = np.asarray(y).dtype.kind == "f"
        np.testing.assert_allclose(x, y, rtol=1e-14 * is_float, err_msg=str(k), strict=True)


@pytest.mark.parametrize("program", [wrapping, declared, counted, carried, indexed, chosen])
def test_derivatives(program):
    def total(u):
        floats = [x for x in program(u) if np.asarray(x).dtype.kind == "f"]
        return sum(np.sum(x * (k + 1.0)) for k, x in enumerate(floats))

    slope = ckad.grad(total)(U.copy())
    for k, direction in enumerate(1e-6 * np.eye(4)):
        difference = (total(U + direction) - total(U - direction)) / 2e-6
        assert slope[k] == pytest.approx(difference, rel=1e-6, abs=1e-6)


def test_arguments_and_cotangents():
    def doubled(u, ids):
        return u * (ids + ids), ids * 2

    out, ids = ckad.jit(doubled)(U, LARGE)
    np.testing.assert_array_equal(ids, LARGE * 2, strict=True)
    np.testing.assert_array_equal(out, U * (LARGE + LARGE))
    pullback = ckad.vjp(lambda u: doubled(u, LARGE), U)[1]
    (slope,) = pullback((np.ones(4), np.zeros(4)))
    np.testing.assert_array_equal(slope, (LARGE + LARGE).astype(float))
    tangents = np.ones(4), np.zeros(4)
    _, (slope, _) = ckad.jvp(doubled, (U, LARGE), tangents)
    np.testing.assert_array_equal(slope, (LARGE + LARGE).astype(float))


def test_a_python_int_out_of_range_stops_the_program():
    def program(u):
        n = 1
        for i in range(20):
            n = n * 2 if u[i % 4] > -1 else n
        return (u > 0).astype(np.int16) + n

    with pytest.raises(OverflowError):
        program(U)
    with pytest.raises(RaisedError, match=r"test_short_indices.py:\d+: a Python integer is out"):
        ckad.jit(program)(U)


SMALL = sparse.csr_array(np.array([[2**30, 2**30], [1, 3]], dtype=np.int32))


@pytest.mark.parametrize(
    "product",
    [
        *(lambda v: SMALL @ v, lambda v: v @ SMALL, lambda v: SMALL.dot(v)),
        *(lambda v: SMALL.T @ v, lambda v: SMALL @ (v > 0)),
    ],
)
def test_matrices_of_short_integers_refuse_products_that_would_wrap_around(product):
    def program(u):
        return product((u > 0.0).astype(np.int32)) * u

    with pytest.raises(UnsupportedFunctionError, match=r"a sparse matrix of int32"):
        ckad.jit(program)(np.ones(2))


def test_matrices_of_short_integers_by_longer_numbers():
    u = np.array([0.5, 1.5])
    assert np.array_equal(ckad.jit(lambda u: SMALL @ u)(u), SMALL @ u)
    whole = lambda u: (SMALL @ np.floor(u).astype(np.int64)) * u  # noqa: E731
    assert np.array_equal(ckad.jit(whole)(u), whole(u))
