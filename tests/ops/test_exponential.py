"""The exponential of matrices: every degree and scale, triangles, what is far from normal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as sl

import ckad

R = np.random.default_rng(0)
SHAPES = {"full": np.array, "upper": np.triu, "lower": np.tril, "diagonal": lambda a: a * np.eye(5)}
#: Norms for each of the four degrees, and for one and several squarings.
SCALES = (0.0, 1e-4, 0.02, 0.1, 0.6, 2.0, 30.0)


def matrix(shape, scale, is_complex):
    a = R.standard_normal((5, 5)) + (1j * R.standard_normal((5, 5)) if is_complex else 0)
    return SHAPES[shape](a * scale)


def exponential(a):
    return sl.expm(a)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_derivatives_are_scipys(shape, scale, is_complex):
    a = matrix(shape, scale, is_complex)
    along = matrix("full", 1.0, is_complex)
    value, tangent = ckad.jvp(exponential, (a,), (along,))
    expected, changed = sl.expm_frechet(a, along)
    for found, wanted in ((value, expected), (tangent, changed)):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11 * np.abs(wanted).max())
    _, pullback = ckad.vjp(exponential, a)
    w = matrix("full", 1.0, is_complex)
    turned = sl.expm_frechet(a.T, w, compute_expm=False)
    (found,) = pullback(w)
    np.testing.assert_allclose(found, turned, rtol=1e-9, atol=1e-11 * np.abs(turned).max())


@pytest.mark.parametrize("factor", [1e-8, 1.0, 1e8])
def test_derivatives_do_not_depend_on_the_size_of_the_direction(factor):
    a, along = matrix("full", 0.5, False), matrix("full", 1.0, False)
    _, tangent = ckad.jvp(exponential, (a,), (factor * along,))
    expected = sl.expm_frechet(a, along, compute_expm=False)
    np.testing.assert_allclose(tangent / factor, expected, rtol=1e-12, atol=1e-13)


def test_what_is_far_from_normal_is_not_scaled_too_far():
    """exp([[1, 1e6], [0, -1]]) in closed form, and its derivatives by the diagonal."""
    a = np.array([[1.0, 1e6], [0.0, -1.0]])
    c, s = np.cosh(1.0), np.sinh(1.0)
    np.testing.assert_allclose(ckad.jit(exponential)(a), [[c + s, 1e6 * s], [0, c - s]], rtol=1e-15)
    _, tangent = ckad.jvp(exponential, (a,), (np.diag([1.0, 0.0]),))
    # d/dp (e^p - e^q) / (p - q) at p = 1, q = -1
    np.testing.assert_allclose(tangent[0, 1], 1e6 * (np.e - s) / 2, rtol=1e-14)
    cyclic = np.array([[1, 1e6, 0], [1e-6, -1, 1e4], [0, 0, 0.5]])
    scale = np.diag([1e6, 1.0, 1e-4])  # the same in other units, where it is near normal
    expected = scale @ sl.expm(np.linalg.inv(scale) @ cyclic @ scale) @ np.linalg.inv(scale)
    np.testing.assert_allclose(ckad.jit(exponential)(cyclic), expected, rtol=1e-10, atol=1e-15)


def test_numbers_that_are_not_finite_are_as_scipys():
    for a in (np.array([[np.nan, 1.0], [1.0, 2.0]]), np.diag([-np.inf, 1.0]), np.zeros((0, 0))):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(ckad.jit(exponential)(a), sl.expm(a))


def rotated(a, x):
    """A stack of exponentials in every step, of what the step before gave."""
    for _ in range(300):
        both = sl.expm(np.stack([0.1 * a, np.outer(x, x)]))
        x = both[0] @ x / np.sqrt(np.trace(both[1]))
    return np.sum(x**3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["vm", "native"])
def test_budgets_do_not_change_bits(engine):
    a, x = matrix("full", 1.0, False), np.ones(5)
    value, gradients = ckad.value_and_grad(rotated, (0, 1), engine=engine)(a, x)
    assert value == pytest.approx(rotated(a, x), rel=1e-9)
    again = ckad.value_and_grad(rotated, (0, 1), engine=engine, memory="150 KB")(a, x)
    assert again[0] == value
    for g, other in zip(gradients, again[1], strict=True):
        np.testing.assert_array_equal(g, other)
    d, h = R.standard_normal((5, 5)), 1e-6
    slope = (rotated(a + h * d, x) - rotated(a - h * d, x)) / (2 * h)
    assert np.sum(gradients[0] * d) == pytest.approx(slope, rel=1e-5)
