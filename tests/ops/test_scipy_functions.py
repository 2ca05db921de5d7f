"""SciPy's filters and solves, and Python functions on elements, inside of a recorded function."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.signal

import ckad
from ckad import trees

X = np.random.default_rng(0).random((5, 6))
K = np.random.default_rng(1).random((3, 3))
OUTSIDE = ("reflect", "mirror", "nearest", "wrap", "constant")
WAYS = [(m, b) for m in ("full", "same", "valid") for b in ("fill", "wrap", "symm")]


def square_or_minus(t):
    if t > 0.5:
        return t * t
    return -t


def sum_of_large(row):
    s = 0.0
    for v in row:
        if v > 0.5:
            s += v
    return s


def square(x):
    return x[:, :5] + 5 * np.eye(5)


FUNCTIONS = {
    "convolve": lambda x: [scipy.ndimage.convolve(x, K, mode=m) for m in OUTSIDE],
    "correlate": lambda x: [scipy.ndimage.correlate(x, K[:2], mode=m, cval=0.3) for m in OUTSIDE],
    "even kernel": lambda x: scipy.ndimage.convolve(x, K[:2, :2]),
    "convolve1d": lambda x: scipy.ndimage.convolve1d(x, [1.0, 2.0, 3.0, 4.0], axis=0),
    "correlate1d": lambda x: scipy.ndimage.correlate1d(x, [1.0, 2.0, 3.0], origin=1),
    "origin": lambda x: scipy.ndimage.convolve1d(x, [1.0, 2.0, 0.5], mode="wrap", origin=-1),
    "laplace": lambda x: scipy.ndimage.laplace(x, mode="nearest") ** 2,
    "gaussian_filter": lambda x: scipy.ndimage.gaussian_filter(x, (1.2, 0.7)),
    "uniform_filter": lambda x: scipy.ndimage.uniform_filter(x, 4, mode="nearest"),
    "convolve2d": lambda x: [scipy.signal.convolve2d(x, K, m, b) for m, b in WAYS],
    "traced kernel": lambda x: scipy.signal.convolve2d(x, x[:2, :2], "same"),
    "larger kernel": lambda x: scipy.signal.convolve2d(K, x),
    "signal.convolve": lambda x: scipy.signal.convolve(x[0], x[1, :4], "same"),
    "fftconvolve": lambda x: scipy.signal.fftconvolve(x, x[::2]),
    "trapezoid": lambda x: scipy.integrate.trapezoid(x, dx=0.1),
    "cumulative": lambda x: scipy.integrate.cumulative_trapezoid(x, x.cumsum(1), initial=0),
    "solve": lambda x: scipy.linalg.solve(square(x), x[:, 0], check_finite=False),
    "solve_triangular": lambda x: scipy.linalg.solve_triangular(square(x), x, lower=True),
    "transposed": lambda x: scipy.linalg.solve_triangular(square(x), x[:, 0], trans="T"),
    "cholesky": lambda x: scipy.linalg.cholesky(x @ x.T + np.eye(5)),
    "lower cholesky": lambda x: scipy.linalg.cholesky(x @ x.T + np.eye(5), lower=True),
    "inv and det": lambda x: scipy.linalg.inv(square(x)) * scipy.linalg.det(square(x)),
    "vectorize": lambda x: np.vectorize(square_or_minus)(x),
    "apply_along_axis": lambda x: np.apply_along_axis(sum_of_large, 1, x),
    "piecewise": lambda x: np.piecewise(x, [x > 0.5], [lambda t: np.sqrt(t - 0.5), 0.0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_derivative(name):
    function = FUNCTIONS[name]
    for mine, theirs in zip(
        trees.flatten(ckad.jit(function)(X))[0], trees.flatten(function(X))[0], strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    ckad.testing.check_grads(lambda x: function(x), (X,), order=1)
