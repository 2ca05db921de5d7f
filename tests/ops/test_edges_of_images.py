"""Smoothed and derived images, their morphology, and measurements of their regions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage as nd

import ckad
from ckad import trees
from ckad.errors import UnsupportedFunctionError

RNG = np.random.default_rng(1)
#: Numbers that lie apart, so that differences take the same of a window.
X = RNG.permutation(42).reshape(6, 7) / 8.0
LABELS = RNG.integers(0, 4, (6, 7))
CROSS = np.array([[0, 1, 0, 0], [1, 1, 1, 0]], bool)
HILL = np.array([[0.0, 0.03], [0.011, 0.0], [-0.023, 0.04]])


def every_way(function):
    return lambda x: [
        function(x, 3),
        function(x, size=(2, 3), mode="nearest", origin=(0, 1)),
        function(x, footprint=CROSS, mode="wrap"),
        function(x, structure=HILL, mode="constant", cval=0.4),
    ]


def named(function):
    return lambda x: [
        function(x),
        function(x, LABELS),
        function(x, LABELS, 2),
        function(x, LABELS, [3, 1]),
    ]


FUNCTIONS = {
    "sobel": lambda x: [nd.sobel(x), nd.sobel(x, 0, mode=("wrap", "mirror"))],
    "prewitt": lambda x: nd.prewitt(x, 0, mode="constant", cval=0.3),
    "gaussian_filter1d": lambda x: [
        nd.gaussian_filter1d(x, 1.1, 0),
        nd.gaussian_filter1d(x, 0.8, order=1, mode="nearest"),
        nd.gaussian_filter1d(x, 0.8, order=3, truncate=2.0),
        nd.gaussian_filter1d(x, 0.8, radius=2),
    ],
    "gaussian_filter": lambda x: [
        nd.gaussian_filter(x, 0.7, order=(1, 0)),
        nd.gaussian_filter(x, (0.7, 1.0), radius=(1, 2), mode=("wrap", "mirror")),
        nd.gaussian_filter(x, 0.7, axes=1),
    ],
    "gaussian_laplace": lambda x: nd.gaussian_laplace(x, (0.7, 1.2), mode="mirror"),
    "gradients": lambda x: [
        nd.gaussian_gradient_magnitude(x, 0.8, truncate=3.0),
        nd.generic_gradient_magnitude(x, nd.sobel),
        nd.generic_laplace(x, nd.prewitt, mode="wrap", axes=(0,)),
    ],
    "laplace": lambda x: nd.laplace(x, mode=("wrap", "mirror")),
    "means": lambda x: [
        nd.uniform_filter1d(x, 4, 0, origin=1),
        nd.uniform_filter(x, (3, 2), mode="wrap", axes=(1, 0)),
    ],
    "extrema on an axis": lambda x: [
        nd.minimum_filter1d(x, 3, 0, mode="mirror"),
        nd.maximum_filter1d(x, 4, origin=-1),
    ],
    "erosion": every_way(nd.grey_erosion),
    "dilation": every_way(nd.grey_dilation),
    "opening": every_way(nd.grey_opening),
    "closing": every_way(nd.grey_closing),
    "tophats": lambda x: [nd.white_tophat(x, 3), nd.black_tophat(x, (2, 2))],
    "morphological": lambda x: [nd.morphological_gradient(x, 3), nd.morphological_laplace(x, 2)],
    "sums": named(nd.sum_labels),
    "means of regions": named(nd.mean),
    "variances": named(nd.variance),
    "deviations": named(nd.standard_deviation),
    "extrema": lambda x: [*named(nd.minimum)(x), *named(nd.maximum)(x), *named(nd.median)(x)],
    "centers": lambda x: [*named(nd.center_of_mass)(x * x + 1.0)],
    "regions that are empty": lambda x: nd.sum_labels(x, LABELS, [9, 1]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_derivative(name):
    function = FUNCTIONS[name]
    engines = ("vm", "native") if name in ("gaussian_filter", "erosion", "centers") else ("vm",)
    theirs = trees.flatten(function(X))[0]
    for engine in engines:
        mine = trees.flatten(ckad.jit(function, engine=engine)(X))[0]
        for found, wanted in zip(mine, theirs, strict=True):
            assert np.shape(found) == np.shape(wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    ckad.testing.check_grads(lambda x: function(x), (X,), order=1)


def test_second_derivatives_and_by_a_width():
    def blurred(x, width):
        return nd.gaussian_gradient_magnitude(nd.gaussian_filter(x, width, radius=3), 0.8)

    ckad.testing.check_grads(blurred, (X, np.float64(0.9)), order=2)
    level = ckad.grad(lambda x: np.sum(nd.generic_gradient_magnitude(x, nd.sobel)))(np.ones((4, 4)))
    np.testing.assert_array_equal(level, 0.0)


def test_types():
    single = X.astype(np.float32)
    for function in (
        nd.sobel,
        lambda x: nd.grey_dilation(x, 3),
        lambda x: nd.gaussian_laplace(x, 1),
    ):
        mine, theirs = ckad.jit(lambda x, f=function: f(x))(single), function(single)
        assert mine.dtype == theirs.dtype == np.float32
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5)


def test_what_a_traced_number_cannot_say():
    with pytest.raises(UnsupportedFunctionError, match="without radius="):
        ckad.jit(lambda s: nd.gaussian_filter(X, s))(1.0)
    with pytest.raises(UnsupportedFunctionError, match="traced labels"):
        ckad.jit(lambda x: nd.mean(x, x > 0))(X)
    with pytest.raises(UnsupportedFunctionError, match="traced footprint or structure"):
        ckad.jit(lambda x: nd.grey_erosion(X, structure=x))(X)
    with pytest.raises(ValueError, match="must be specified"):
        ckad.jit(lambda x: nd.grey_erosion(x))(X)
