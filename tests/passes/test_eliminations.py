"""Loops that eliminate become calls of a routine, however they are written; others stay."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

N = 18
RNG = np.random.default_rng(0)
A = RNG.normal(size=(N, N)) + N * np.eye(N)
B = RNG.normal(size=N)
W = RNG.normal(size=(N, N + 2))


def by_dots(a):
    a = a.copy()
    for i in range(N):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, N):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return np.sum(np.sin(a) * W[:, :N])


def by_elements(a):
    a = a.copy()
    for k in range(N - 1):
        for i in range(k + 1, N):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, N):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return np.sum(np.sin(a) * W[:, :N])


def by_outer_products(a):
    a = a.copy()
    for k in range(N):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(np.sin(a) * W[:, :N])


def two_factors(a):
    lower, upper = np.eye(N), np.zeros((N, N))
    for i in range(N):
        for j in range(i, N):
            upper[i, j] = a[i, j] - lower[i, :i] @ upper[:i, j]
        for j in range(i + 1, N):
            lower[j, i] = (a[j, i] - lower[j, :i] @ upper[:i, i]) / upper[i, i]
    return np.sum(np.sin(lower) * W[:, :N]) + np.sum(np.cos(upper) * W[:, :N])


def ones_above(a):
    """Crout's factors: the pivots are those of L."""
    lower, upper = np.zeros((N, N)), np.eye(N)
    for j in range(N):
        lower[j:, j] = a[j:, j] - lower[j:, :j] @ upper[:j, j]
        upper[j, j + 1 :] = (a[j, j + 1 :] - lower[j, :j] @ upper[:j, j + 1 :]) / lower[j, j]
    return np.sum(np.sin(lower) * W[:, :N]) + np.sum(np.cos(upper) * W[:, :N])


def with_side(a, b):
    a, b = a.copy(), b.copy()
    for k in range(N - 1):
        for i in range(k + 1, N):
            factor = a[i, k] / a[k, k]
            a[i, k:] -= factor * a[k, k:]
            b[i] -= factor * b[k]
    return np.sum(np.sin(a) * W[:, :N]) + np.sum(np.sin(b))


def left_as_they_are(a, b):
    """What is eliminated is not written."""
    a, b = a.copy(), b.copy()
    for k in range(N - 1):
        for i in range(k + 1, N):
            factor = a[i, k] / a[k, k]
            a[i, k + 1 :] -= factor * a[k, k + 1 :]
            b[i] -= factor * b[k]
    return np.sum(np.sin(a / N) * W[:, :N]) + np.sum(np.sin(b))


def augmented(a, b):
    m = np.hstack([a, b[:, None], a[:, :1]])
    for k in range(N - 1):
        for i in range(k + 1, N):
            m[i] -= m[i, k] / m[k, k] * m[k]
    return np.sum(np.sin(m) * W)


def in_steps(a, b):
    """Within a loop, of a matrix that changes."""
    for _ in range(3):
        m = a + 0.1 * np.outer(b, b)
        for k in range(N - 1):
            m[k + 1 :, k] /= m[k, k]
            m[k + 1 :, k + 1 :] -= np.outer(m[k + 1 :, k], m[k, k + 1 :])
        b = 0.5 * b + 0.1 * np.sin(m) @ b
    return np.sum(b * b)


ONE = [by_dots, by_elements, by_outer_products, two_factors, ones_above]
TWO = [with_side, left_as_they_are, augmented, in_steps]


def given(program):
    return (A,) if program in ONE else (A, B)


def calls(program, *args):
    return "eliminated" in str(ckad.trace(program)(*args))


@pytest.mark.parametrize("program", [*ONE, *TWO])
def test_value_and_derivatives(program):
    args = given(program)
    assert calls(program, *args)
    every = tuple(range(len(args)))
    found = [ckad.value_and_grad(program, every, engine=e)(*args) for e in ("vm", "native")]
    for value, _ in found:
        assert value == pytest.approx(program(*args), rel=1e-12)
    for x, y in zip(*(g for _, g in found), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-13)
    ckad.testing.check_grads(program, args, engine="vm")


@pytest.mark.parametrize("program", [by_dots, in_steps])
def test_second_derivatives(program):
    ckad.testing.check_grads(program, given(program), order=2, engine="vm", rtol=1e-5)


def test_members_of_a_batch():
    stack = np.stack([A, A.T, A @ A])
    values = ckad.vmap(by_dots)(stack)
    np.testing.assert_allclose(values, [by_dots(a) for a in stack], rtol=1e-10)
    found = ckad.vmap(ckad.grad(by_dots))(stack)
    np.testing.assert_allclose(found, [ckad.grad(by_dots)(a) for a in stack], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [16, 17, 24, 40, 70])
def test_sizes(n):
    a = RNG.normal(size=(n, n)) + n * np.eye(n)
    weights = RNG.normal(size=(n, n))

    def program(a):
        a = a.copy()
        for k in range(n):
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        return np.sum(a * weights)

    assert calls(program, a)
    value, gradient = ckad.value_and_grad(program)(a)
    assert value == pytest.approx(program(a), rel=1e-12)
    step = 1e-6 * (along := RNG.normal(size=(n, n)))
    slope = (program(a + step) - program(a - step)) / 2e-6
    assert np.sum(gradient * along) == pytest.approx(slope, rel=1e-6)


def regularised(a):
    a = a.copy()
    for k in range(N):
        a[k + 1 :, k] /= a[k, k] + 1e-14
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(np.sin(a))


def one_element_less(a):
    a = a.copy()
    for k in range(N):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        if k == 7:
            a[12, 9] += a[k, k]
    return np.sum(np.sin(a))


def another_pivot(a):
    a = a.copy()
    for k in range(N - 1):
        for i in range(k + 1, N):
            a[i, k] /= a[k, k] if i < N - 1 else a[0, 0]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return np.sum(np.sin(a))


def guarded(a):
    a = a.copy()
    for k in range(N):
        pivot = a[k, k] if abs(a[k, k]) > 1e-3 else 1.0
        a[k + 1 :, k] /= pivot
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(np.sin(a))


def absolute_pivot(a):
    a = a.copy()
    for k in range(N):
        a[k + 1 :, k] /= np.abs(a[k, k])
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(np.sin(a))


def few_steps(a):
    a = a.copy()
    for k in range(N - 2):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(np.sin(a))


@pytest.mark.parametrize(
    "program", [regularised, one_element_less, another_pivot, guarded, absolute_pivot, few_steps]
)
def test_what_only_looks_like_it_stays_a_loop(program):
    assert not calls(program, A)
    value, gradient = ckad.value_and_grad(program)(A)
    assert value == pytest.approx(program(A), rel=1e-12)
    along = RNG.normal(size=(N, N))
    slope = (program(A + 1e-6 * along) - program(A - 1e-6 * along)) / 2e-6
    assert np.sum(gradient * along) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_pivot_that_is_zero_raises_nothing(engine):
    with np.errstate(all="ignore"):
        expected = by_outer_products(zero := A - np.diag(np.diag(A)) * np.eye(N)[0])
    assert not np.isfinite(expected)
    assert not np.isfinite(ckad.jit(by_outer_products, engine=engine)(zero))
    assert not np.isfinite(ckad.jvp(by_outer_products, (zero,), (A,), engine=engine)[1])


def test_a_loop_that_stops_is_no_elimination():
    """An index beyond the matrix is the program's error, at its line."""

    def beyond(a):
        a = a.copy()
        for k in range(N):
            a[k + 1 :, k] /= a[k, k + 1]
        return np.sum(a)

    with pytest.raises(IndexError):
        ckad.grad(beyond)(A)


def test_what_is_said_of_such_loops():
    assert "eliminate: computed as whole arrays or by a routine" in str(ckad.explain(by_dots, A))


def by_truth(a):
    a = a.copy()
    for k in range(N - 1):
        if a[k, k]:
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(np.sin(a))


def or_one(a):
    a = a.copy()
    for k in range(N - 1):
        a[k + 1 :, k] /= a[k, k] or 1.0
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(np.sin(a))


@pytest.mark.parametrize("program", [by_truth, or_one])
def test_a_truth_value_of_a_pivot_is_a_choice(program):
    assert not calls(program, A)
    zero_first = A - A[0, 0] * np.outer(np.eye(N)[0], np.eye(N)[0])
    assert ckad.jit(program, engine="vm")(zero_first) == pytest.approx(program(zero_first))


def determinant(a):
    a = a.copy()
    for k in range(N - 1):
        for i in range(k + 1, N):
            a[i, k:] -= a[i, k] / a[k, k] * a[k, k:]
    return np.prod(np.diag(a))


def test_the_last_pivot_may_be_zero():
    """It divides nothing: derivatives are those of the loop, forwards and twice as well."""
    lower = np.tril(RNG.integers(-1, 2, (N, N)), -1) + np.eye(N)
    upper = np.triu(RNG.integers(-1, 2, (N, N)), 1) + np.diag([1.0] * (N - 1) + [0.0])
    singular, along, then = lower @ upper, *RNG.normal(size=(2, N, N))
    assert calls(determinant, singular)
    assert determinant(singular) == 0.0
    slope = np.sum(ckad.grad(determinant, engine="vm")(singular) * along)
    assert slope == pytest.approx(np.linalg.solve(lower, along @ _null(upper))[-1], rel=1e-9)
    assert ckad.jvp(determinant, (singular,), (along,), engine="vm")[1] == pytest.approx(slope)
    found = ckad.hvp(determinant, (singular,), (along,), engine="vm")
    step = 1e-5 * along
    gradients = [ckad.grad(determinant, engine="vm")(singular + s) for s in (step, -step)]
    expected = np.sum((gradients[0] - gradients[1]) * then) / 2e-5
    assert np.sum(found * then) == pytest.approx(expected, rel=1e-5)


def _null(upper):
    """What ``upper``, whose pivots are ones and then a zero, makes nothing of."""
    return np.append(np.linalg.solve(upper[:-1, :-1], -upper[:-1, -1]), 1.0)


def over_pivots(a):
    a = a.copy()
    for k in range(N):
        a[k] /= a[k, k]
        for i in range(k + 1, N):
            a[i] -= a[i, k] * a[k]
    return a


def with_ones_written(a):
    u = np.eye(N)
    lower = a.copy()
    for k in range(N):
        u[k, k + 1 :] = lower[k, k + 1 :] / lower[k, k]
        lower[k + 1 :, k + 1 :] -= np.outer(lower[k + 1 :, k], u[k, k + 1 :])
    return u


@pytest.mark.parametrize("program", [over_pivots, with_ones_written])
def test_ones_that_are_computed_are_nan_where_a_pivot_is_zero(program):
    assert calls(program, A)
    zero_last = np.diag([*range(1, N), 0.0])
    with np.errstate(all="ignore"):
        expected = program(zero_last)
    found = ckad.jit(program, engine="vm")(zero_last)
    np.testing.assert_array_equal(np.isnan(np.diag(found)), np.isnan(np.diag(expected)))
    np.testing.assert_allclose(found[:-1], expected[:-1])


def what_is_left(a):
    a = a.copy()
    for k in range(N - 1):
        for i in range(k + 1, N):
            a[i, k:] -= a[i, k] / a[k, k] * a[k, k:]
    return a


def rooted(a):
    lower = np.zeros((N, N))
    for j in range(N):
        lower[j, j] = np.sqrt(a[j, j] - lower[j, :j] @ lower[j, :j])
        for i in range(j + 1, N):
            lower[i, j] = (a[i, j] - lower[i, :j] @ lower[j, :j]) / lower[j, j]
    return lower


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("program", [what_is_left, rooted])
def test_pivots_of_which_the_reciprocal_overflows(program, engine):
    tiny = (A + A.T) * 1e-310
    assert "rooted" in str(ckad.trace(program)(tiny)) or calls(program, tiny)
    found = ckad.jit(program, engine=engine)(tiny)
    np.testing.assert_allclose(found, program(tiny), rtol=1e-9, atol=1e-320)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_their_derivatives(engine):
    gradient = ckad.grad(lambda a: np.sum(np.sin(what_is_left(a * 1e-310) * 1e300)), engine=engine)
    # factors below have no scale, rows from the diagonal on that of the matrix
    step = 1e-4 * RNG.normal(size=(N, N))
    total = lambda a: np.sum(np.sin(what_is_left(a) * 1e-10))  # noqa: E731
    slope = (total(A + step) - total(A - step)) / 2
    assert np.sum(gradient(A) * step) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_what_stands_below_an_infinite_pivot(engine):
    infinite = A.copy()
    infinite[0, 0] = np.inf
    with np.errstate(invalid="ignore"):
        expected = what_is_left(infinite)
    np.testing.assert_allclose(
        ckad.jit(what_is_left, engine=engine)(infinite), expected, atol=1e-12
    )
