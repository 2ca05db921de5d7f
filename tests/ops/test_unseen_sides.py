"""Derivatives through choices whose other side has an infinite or undefined derivative.

Each program is a function of single elements with its derivative, at points where one side or the
other is singular.
"""

from __future__ import annotations

import numpy as np
import pytest

import ckad

ENGINES = pytest.mark.parametrize("engine", ["vm", "native"])
X = np.array([0.0, 1.0, -2.0, 0.5, 0.0, 3.0, -0.25, 1.5])


def sinc_by_hand(x):
    return np.where(x == 0, 1.0, np.sin(x) / x)


def sinc_by_masked_assignment(x):
    y = np.sin(x) / x
    y[x == 0] = 1.0
    return y


def sinc_by_divide(x):
    y = np.ones_like(x)
    np.divide(np.sin(x), x, out=y, where=x != 0)
    return y


def sinc_of_rows(x):
    x = x.reshape(2, 4)
    return np.where((x == 0)[:, :], 1.0, np.sin(x) / x).reshape(8)


def sinc_part_by_part(x):
    y = np.sin(x) / x
    z = np.empty_like(x)
    z[:3] = np.where((x == 0)[:3], 1.0, y[:3])
    z[3:] = np.where(x[3:] == 0, 1.0, np.sin(x[3:]) / x[3:])
    return z


def d_sinc(x):
    return [(np.cos(v) - np.sin(v) / v) / v if v else 0.0 for v in x]


def dd_sinc(x):
    return [-np.sin(v) / v - 2 * d_sinc([v])[0] / v if v else 0.0 for v in x]


def logarithm(x):
    return np.where(x > 0, x * np.log(x), 0.0)


def logarithm_taken_back(x):
    y = x.copy()
    m = x > 0
    y[m] = (x * np.log(x))[m]
    return np.where(m, y, 0.0)


def d_logarithm(x):
    return [np.log(v) + 1 if v > 0 else 0.0 for v in x]


def dd_logarithm(x):
    return [1 / v if v > 0 else 0.0 for v in x]


def power(x):
    return np.where(x > 0, x**-0.5, 1.0)


def root(x):
    return np.where(x > 0, 1 / np.sqrt(x), x * 0.0)


def d_power(x):
    return [-0.5 * v**-1.5 if v > 0 else 0.0 for v in x]


def dd_power(x):
    return [0.75 * v**-2.5 if v > 0 else 0.0 for v in x]


def sign_by_hand(x):
    return np.where(x != 0, x * x * x / np.abs(x), 0.0)


def d_sign(x):
    return [2 * abs(v) for v in x]


def dd_sign(x):
    return [2 * np.sign(v) for v in x]


def nested(x):
    return np.where(x >= 0, np.where(x != 0, np.exp(-1 / x), 0.0), np.where(x < -1, 1 / x, x**2))


def selected(x):
    return np.select([x > 0, x < -1, x < 0], [np.exp(-1 / x), 1 / x, x**2], 0.0)


def d_nested(x):
    return [np.exp(-1 / v) / v**2 if v > 0 else -1 / v**2 if v < -1 else 2 * v for v in x]


def dd_nested(x):
    first = [np.exp(-1 / v) * (1 - 2 * v) / v**4 if v > 0 else 2.0 for v in x]
    return [2 / v**3 if v < -1 else a if v else 0.0 for v, a in zip(x, first, strict=True)]


def large(x):
    """The exponential of the side that is not taken overflows."""
    return np.where(x > 0.4, x, np.log1p(np.exp(1e3 * x)) / 1e3)


def d_large(x):
    return [1.0 if v > 0.4 else 1 / (1 + np.exp(-1e3 * v)) for v in x]


def dd_large(x):
    return [1e3 * (g := d_large([v])[0]) * (1 - g) for v in x]


def missing(x):
    """The data have a gap."""
    data = np.array([np.nan, 1.0, 2.0, 3.0, 4.0, np.nan, np.inf, 5.0])
    d = x - data
    return np.where(np.isfinite(data), d * d * d, 0.0)


def d_missing(x):
    found = [3 * (v - w) ** 2 for v, w in zip(x, (0, 1, 2, 3, 4, 0, 0, 5), strict=True)]
    return [d if k not in (0, 5, 6) else 0.0 for k, d in enumerate(found)]


def dd_missing(x):
    found = [6 * (v - w) for v, w in zip(x, (0, 1, 2, 3, 4, 0, 0, 5), strict=True)]
    return [d if k not in (0, 5, 6) else 0.0 for k, d in enumerate(found)]


def constant_divisors(x):
    c = np.array([0.0, 1.0, 0.0, 2.0, 4.0, 0.0, 0.5, 1.0])
    return np.where(c == 0, 1.0, np.sin(x) / c)


def d_constant_divisors(x):
    c = [0.0, 1.0, 0.0, 2.0, 4.0, 0.0, 0.5, 1.0]
    return [np.cos(v) / w if w else 0.0 for v, w in zip(x, c, strict=True)]


def dd_constant_divisors(x):
    c = [0.0, 1.0, 0.0, 2.0, 4.0, 0.0, 0.5, 1.0]
    return [-np.sin(v) / w if w else 0.0 for v, w in zip(x, c, strict=True)]


def in_a_loop(x):
    """A hundred steps, all of which divide by zero where x is zero."""
    y = np.zeros_like(x)
    for _ in range(100):
        y = y + 0.01 * np.where(x == 0, 1.0, np.sin(x) / x)
    return y


def in_a_branch(x):
    y = x
    for _ in range(4):
        if y[1] > 0:
            y = np.where(x == 0, 1.0, np.sin(x) / x)
        else:
            y = np.where(x == 0, 1.0, np.cos(x) / x)
    return y


SINC = d_sinc, dd_sinc
CASES = {
    sinc_by_hand: SINC,
    sinc_by_masked_assignment: SINC,
    sinc_by_divide: SINC,
    sinc_of_rows: SINC,
    sinc_part_by_part: SINC,
    in_a_loop: SINC,
    in_a_branch: SINC,
    logarithm: (d_logarithm, dd_logarithm),
    logarithm_taken_back: (d_logarithm, dd_logarithm),
    power: (d_power, dd_power),
    root: (d_power, dd_power),
    sign_by_hand: (d_sign, dd_sign),
    nested: (d_nested, dd_nested),
    selected: (d_nested, dd_nested),
    large: (d_large, dd_large),
    missing: (d_missing, dd_missing),
    constant_divisors: (d_constant_divisors, dd_constant_divisors),
}
every_case = pytest.mark.parametrize("program", CASES, ids=lambda f: f.__name__)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def weighted(program):
    weights = np.linspace(1.0, 2.0, len(X))

    def total(x):
        return np.sum(weights.astype(x.dtype) * program(x))

    return total, weights


@ENGINES
@every_case
def test_first_derivatives_both_ways(program, engine):
    total, weights = weighted(program)
    expected = weights * CASES[program][0](X)
    value, gradient = ckad.value_and_grad(total, engine=engine)(X)
    np.testing.assert_allclose(value, total(X), rtol=1e-13)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-13)
    move = np.cos(np.arange(8.0))
    _, moved = ckad.jvp(program, (X,), (move,), engine=engine)
    np.testing.assert_allclose(moved, expected / weights * move, rtol=1e-12, atol=1e-13)


@ENGINES
@every_case
def test_second_derivatives(program, engine):
    total, weights = weighted(program)
    expected = weights * CASES[program][1](X)
    move = np.cos(np.arange(8.0))
    product = ckad.hvp(total, (X,), (move,), engine=engine)
    np.testing.assert_allclose(product, expected * move, rtol=1e-11, atol=1e-12)
    matrix = ckad.hessian(total, engine=engine)(X)
    np.testing.assert_allclose(matrix, np.diag(expected), rtol=1e-11, atol=1e-12)


@every_case
def test_gradients_of_gradients(program):
    total, weights = weighted(program)

    def again(x):
        return np.sum(ckad.grad(total)(x) ** 2)

    first, second = (f(X) * weights for f in CASES[program])
    np.testing.assert_allclose(ckad.grad(again)(X), 2 * first * second, rtol=1e-11, atol=1e-11)


@ENGINES
@every_case
def test_single_precision(program, engine):
    total, weights = weighted(program)
    x = X.astype(np.float32)
    gradient = ckad.grad(total, engine=engine)(x)
    assert gradient.dtype == np.float32
    expected = weights * CASES[program][0](X)
    np.testing.assert_allclose(gradient, expected, rtol=3e-5, atol=1e-5)


@ENGINES
def test_two_arguments_and_a_mask_of_another_shape(engine):
    """Gradients by what divides and by what is divided, and by scalars that meet every element."""

    def total(v, c, k):
        q = v[:, None] / (v[:, None] * c + k)
        r = np.where((v == 0)[:, None], 1.0, q)
        return np.sum(np.where(c > 0, r, 0.0) ** 2)

    v, c, k = np.array([0.0, 1.0, 2.0]), np.array([3.0, -1.0, 0.0, 0.5]), 0.0
    for_v, for_c, for_k = np.zeros(3), np.zeros(4), 0.0
    for i in (1, 2):
        for j in (0, 3):
            low = v[i] * c[j]
            q, by_low = v[i] / low, -v[i] / low**2
            for_v[i] += 2 * q * (1 / low + by_low * c[j])
            for_c[j] += 2 * q * by_low * v[i]
            for_k += 2 * q * by_low
    found = ckad.grad(total, (0, 1, 2), engine=engine)(v, c, k)
    for got, expected in zip(found, (for_v, for_c, for_k), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


def lengths_and_cosines(x, m):
    r = np.sqrt(x)
    y = np.where(m, np.hypot(r, 2.0) + np.cos(r) + np.cos(np.hypot(x, x)), 1.0)
    return np.sum(y + np.where(m, np.sqrt(x * x) ** 2, 0.0))


def softplus_and_norm(x, m):
    smooth = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return np.sum(np.where(m, smooth, 0.0) + np.where(m, np.linalg.norm(x[:2]) ** 2, 0.0))


@ENGINES
@pytest.mark.parametrize("program", [lengths_and_cosines, softplus_and_norm])
def test_squares_of_roots_are_still_found_where_the_root_is_zero(program, engine):
    """As without a mask, of which all elements are true here, of one that nobody knows."""
    x, tangent = np.array([0.0, 0.0, 2.0]), np.array([1.0, -0.5, 0.25])
    every, known = np.ones(3), lambda x: program(x, True)

    def masked(x):
        return program(x, every + 0.0 * x > 0)

    for found, expected in (
        (ckad.grad(masked, engine=engine)(x), ckad.grad(known, engine=engine)(x)),
        (ckad.jvp(masked, (x,), (tangent,))[1], ckad.jvp(known, (x,), (tangent,))[1]),
        (ckad.hvp(masked, (x,), (tangent,)), ckad.hvp(known, (x,), (tangent,))),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert np.all(np.isfinite(ckad.grad(masked, engine=engine)(x)))


@ENGINES
def test_members_of_a_batch(engine):
    total, weights = weighted(sinc_by_hand)
    both = np.stack([X, X[::-1]])
    found = ckad.vmap(ckad.grad(total, engine=engine))(both)
    expected = [weights * d_sinc(x) for x in both]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_what_others_read_too_keeps_its_derivative():
    """The quotient is a result by itself: its derivative is what it is."""

    def total(x):
        r = np.sin(x) / x
        return np.sum(np.where(x == 0, 1.0, r)) + r[1]

    gradient = ckad.grad(total)(X)
    assert np.isnan(gradient[0])
    np.testing.assert_allclose(gradient[1], 2 * d_sinc(X)[1], rtol=1e-12)


@ENGINES
def test_nothing_that_is_not_seen_sets_off_the_watch(engine):
    total, weights = weighted(sinc_by_hand)
    gradient = ckad.grad(total, engine=engine, check_finite=True)(X)
    np.testing.assert_allclose(gradient, weights * d_sinc(X), rtol=1e-12, atol=1e-13)
