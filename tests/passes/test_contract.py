"""Loops over parts of rows as products of matrices that are read between known bounds."""

import numpy as np
import pytest

import ckad
from ckad import testing
from ckad.passes.contract.bounds import between
from ckad.rules.routines import bounded
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of

N, M = 60, 70
RNG = np.random.default_rng(3)
A, B, C = RNG.normal(size=(N, N)), RNG.normal(size=(N, M)), RNG.normal(size=(N, N))
FIRST = RNG.integers(0, N, N)
LAST = np.minimum(FIRST + RNG.integers(0, 30, N), N)


def below_by_matrix(a, b, c):
    y = np.zeros_like(b)
    for k in range(1, len(a)):
        y[k] = a[k, :k] @ b[:k]
    return y


def above_by_matrix(a, b, c):
    y = b.copy()
    for k in range(len(a)):
        y[k] -= 2.0 * b[k:].T @ a[k, k:]
    return y


def outer_products(a, b, c):
    y = np.zeros_like(b)
    for k in range(len(a)):
        y[k:] += np.outer(a[k:, k], b[k])
    return y


def outer_products_by_columns(a, b, c):
    y = np.zeros_like(c)
    for k in range(len(a)):
        y[:, : k + 1] -= np.outer(c[k], a[k, : k + 1])
    return y


def two_ranks(a, b, c):
    """PolyBench's syr2k."""
    c = c.copy()
    for i in range(len(a)):
        c[i, : i + 1] *= 1.2
        for k in range(b.shape[1]):
            c[i, : i + 1] += b[: i + 1, k] * 1.5 * b[i, k] - b[: i + 1, k] ** 2 * b[i, k]
    return c


def columns_of_a_triangle(a, b, c):
    c = c.copy()
    for i in range(len(a)):
        for k in range(b.shape[1]):
            c[i:, i] += b[i, k] * b[i:, k]
    return c


def runs(a, b, c):
    y = np.zeros_like(b)
    for k in range(len(a)):
        y[k] = a[k, FIRST[k] : LAST[k]] @ b[FIRST[k] : LAST[k]]
    return y


def by_a_symmetric_matrix(a, b, c):
    """PolyBench's symm: sums over parts, and a row of its own in each step."""
    y, row = 1.2 * b, np.zeros(b.shape[1])
    for i in range(len(a)):
        for j in range(b.shape[1]):
            y[:i, j] += 1.5 * b[i, j] * a[i, :i]
            row[j] = b[:i, j] @ a[i, :i]
        y[i] -= 1.5 * b[i] * a[i, i] - row
    return y


def covariance(a, b, c):
    """PolyBench's: a row of one triangle, and its mirror."""
    b = b - b.mean(axis=0)
    y = np.zeros((M, M))
    for i in range(M):
        y[i, i:] = y[i:, i] = b[:, i] @ b[:, i:] / (N - 1)
    return y


def correlation(a, b, c):
    """The same by columns, without the diagonal, which is given."""
    b = (b - b.mean(axis=0)) / (np.sqrt(N) * b.std(axis=0))
    y = np.eye(M)
    for i in range(M - 1):
        y[i + 1 :, i] = np.dot(b[:, i + 1 :].T, b[:, i])
        y[i, i + 1 :] = y[i + 1 :, i]
    return y


def two_parts_of_products(a, b, c):
    """What is written second goes beside what is written first, and from there it differs."""
    y = c.copy()
    for i in range(N):
        y[i, : i + 1] = a[i] @ a[: i + 1].T
        y[:i, i] = -2.0 * np.sin(b[:i] @ b[i])
    return y


PROGRAMS = [
    covariance, correlation, two_parts_of_products, by_a_symmetric_matrix,
    below_by_matrix, above_by_matrix, outer_products, outer_products_by_columns, two_ranks,
    columns_of_a_triangle, runs,
]  # fmt: skip
ROUTINES = {bounded.dot, bounded.sampled}


def called(tape):
    return {routine_of(row) for row in tape.rows if row.op is Op.CALL}


@pytest.mark.parametrize("program", PROGRAMS)
def test_parts_of_rows_are_a_product(program):
    tape = ckad.jit(program).compiled(A, B, C).tape
    assert called(tape) <= ROUTINES
    ops = {row.op for row in tape.rows}
    assert Op.CALL in ops
    assert Op.LOOP not in ops
    for engine in ("vm", "native"):
        found = ckad.jit(program, engine=engine)(A, B, C)
        np.testing.assert_allclose(found, program(A, B, C), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives_of_such_products(program):
    def squares(*args):
        return np.sum(np.sin(program(*args)))

    testing.check_grads(squares, (A, B, C), order=1)


@pytest.mark.parametrize(
    "program", [below_by_matrix, outer_products, two_ranks, runs, two_parts_of_products]
)
def test_what_lies_outside_of_the_bounds_is_not_looked_at(program):
    broken = [x.copy() for x in (A, B, C)]
    broken[0][0, 1:] = np.nan
    broken[1][-1] = np.inf
    with np.errstate(invalid="ignore"):
        expected = program(*broken)
    assert np.isfinite(expected).any()
    np.testing.assert_allclose(ckad.jit(program)(*broken), expected, rtol=1e-12, atol=1e-12)


def test_what_is_not_written_of_a_product_is_not_computed():
    """An infinity in a row that one triangle alone is computed of spoils what it does in NumPy."""

    def triangle(b):
        y = np.ones((N, N))
        for i in range(N):
            y[i, i:] = y[i:, i] = b[i] @ b[i:].T
        return y

    broken = B.copy()
    broken[5, 3], broken[9, 4] = np.inf, np.nan
    ct = RNG.normal(size=(N, N))
    with np.errstate(invalid="ignore"):
        expected = triangle(broken)
    np.testing.assert_allclose(ckad.jit(triangle)(broken), expected, rtol=1e-12)
    _, pullback = ckad.vjp(triangle, B)
    both = np.triu(ct) + np.triu(ct.T, 1)
    (found,) = pullback(ct)
    np.testing.assert_allclose(found, (both + both.T) @ B, rtol=1e-10, atol=1e-10)


def test_a_zero_that_is_multiplied_is_no_bound():
    def masked(a, b, c):
        y = np.zeros_like(b)
        for k in range(len(a)):
            y[k] = np.where(np.arange(N) < k, a[k], 0.0) @ b
        return y

    broken = B.copy()
    broken[-1, 3] = np.inf
    with np.errstate(invalid="ignore"):
        expected = masked(A, broken, C)
    np.testing.assert_allclose(ckad.jit(masked)(A, broken, C), expected, rtol=1e-12, atol=1e-12)


def test_a_second_derivative():
    small = [x[:40, :40].copy() for x in (A, B, C)]

    def misfit(a, b, c):
        return np.sum(np.tanh(below_by_matrix(a, np.repeat(b, 3, axis=1), c)))

    testing.check_grads(misfit, tuple(small), order=2)


@pytest.mark.parametrize("rows", [1, 5, 16, 50, 150])
@pytest.mark.parametrize("kind", ["runs", "lower", "none", "all"])
def test_routines(rows, kind):
    length, n = 40, 3
    first = RNG.integers(0, length, rows) if kind == "runs" else np.zeros(rows, np.int64)
    last = {
        "runs": np.minimum(first + RNG.integers(0, 20, rows), length),
        "lower": np.minimum(np.arange(rows) // 3 + 1, length),
        "none": first,
        "all": np.full(rows, length),
    }[kind]
    a, x, y = (RNG.normal(size=s) for s in ((rows, length), (length, n), (rows, n)))
    places = np.arange(length)
    mask = (places >= first[:, None]) & (places < last[:, None])
    inside = np.where(mask, a, 0.0)
    close = {"rtol": 1e-12, "atol": 1e-12}
    of_x = bounded.dot.run((0,), np.where(mask, a, np.nan), x, first, last)
    of_y = bounded.dot.run((1,), np.where(mask, a, np.nan), y, first, last)
    np.testing.assert_allclose(of_x, inside @ x, **close)
    np.testing.assert_allclose(of_y, inside.T @ y, **close)
    elements = bounded.sampled.run((), y, x, first, last)
    np.testing.assert_allclose(elements, np.where(mask, y @ x.T, 0.0), **close)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_rows_are_added_to_while_all_are(engine):
    """Each step adds to everything, and to rows that several steps meet, and by another one."""

    def steps(a, b):
        y = b.copy()
        for i in range(6):
            y = np.where(a > i, y + a * b[i], y)
            y[i % 4] += b[i] ** 2
        return y

    def dependent(a, b):
        y = b.copy()
        for i in range(6):
            y = np.where(a > i, y + a * b[i], y)
            y[i % 4] += y[i] ** 2
        return y

    a, b = 6 * RNG.random((6, 5)), RNG.normal(size=(6, 5))
    for program, is_loop in ((steps, False), (dependent, True)):
        compiled = ckad.jit(program, engine=engine).compiled(a, b)
        assert any(row.op is Op.LOOP for row in compiled.tape.rows) == is_loop
        found = ckad.jit(program, engine=engine)(a, b)
        np.testing.assert_allclose(found, program(a, b), rtol=1e-13)


@pytest.mark.parametrize("places_come_first", [True, False])
@pytest.mark.parametrize("name", ["lt", "le", "ge", "gt"])
def test_bounds_are_those_of_the_comparison(name, places_come_first):
    """Each comparison of places, counted from 2, with a number for each row."""
    b, shape, limits = Builder(), (5, 4), np.array([[1], [2], [3], [5], [9]])
    places = b.broadcast_to(b.const(np.arange(2, 6)[None]), shape)
    numbers = b.broadcast_to(b.const(limits), shape)
    operands = (places, numbers) if places_come_first else (numbers, places)
    mask = getattr(b, name)(*operands)
    pair = (np.arange(2, 6)[None], limits)
    compare = {"lt": np.less, "le": np.less_equal, "ge": np.greater_equal, "gt": np.greater}[name]
    true = compare(*(pair if places_come_first else pair[::-1]))
    first, last = between(b, mask)
    found = (np.arange(4) >= first[:, None]) & (np.arange(4) < last[:, None])
    assert np.array_equal(found, true)
