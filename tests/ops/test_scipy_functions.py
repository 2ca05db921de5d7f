"""SciPy's filters and solves, and Python functions on elements, inside of a recorded function."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
from scipy import linalg as sl
from scipy.integrate import simpson
from scipy.interpolate import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    InterpolatedUnivariateSpline,
    PchipInterpolator,
    RegularGridInterpolator,
    make_interp_spline,
    pchip_interpolate,
)
from scipy.ndimage import map_coordinates
from scipy.spatial.distance import cdist, pdist, squareform

import ckad
from ckad import trees
from ckad.errors import UnsupportedFunctionError

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


def cube(x):
    return np.reshape(x[0, :, None] * x[1] + 5 * np.eye(6), (6, 2, 3))


NODES = np.array([0.0, 0.3, 0.5, 1.1, 1.2, 2.0])
BETWEEN = np.linspace(-0.1, 2.1, 12)
MODES = ("constant", "nearest", "wrap", "grid-wrap", "mirror", "reflect")
METRICS = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine")
PIXELS = np.random.default_rng(2).uniform(-8.0, 14.0, (2, 20))
OUTSIDE_MADE = CubicSpline(NODES, np.cos(NODES)), make_interp_spline(NODES, np.cos(NODES), 5)


def by_slopes(x):
    """Through values that rise, turn and stay."""
    rising, turning = np.cumsum(x, 1), x * np.array([1.0, -1.0, 2.0, 3.0, 0.0, 0.0])
    made = [
        kind(NODES, values.T)(BETWEEN[1:-1])
        for kind in (PchipInterpolator, Akima1DInterpolator)
        for values in (rising, turning)
    ]
    two = [kind(NODES[:2], x[0, :2])(0.2) for kind in (PchipInterpolator, Akima1DInterpolator)]
    given = CubicHermiteSpline(NODES, x[0], x[1])
    steep = pchip_interpolate(NODES[:3], np.stack([x[0, 0], x[0, 0] + 0.1, x[0, 1] - 9.0]), 0.1)
    return made, two, given(BETWEEN), given(x[2], 1), steep


def by_parabolas(x):
    places = np.cumsum(x + 0.1, 1)
    of_rows = [simpson(x[:, :n], x=places[:, :n]) for n in (1, 2, 3, 5, 6)]
    down = simpson(x, x=np.cumsum(x, 0), axis=0), simpson(x.T, x=places[0], axis=0)
    sums = scipy.integrate.cumulative_simpson(x, x=NODES), scipy.integrate.romb(x[:, :5], x[0, 0])
    return of_rows, down, sums, scipy.integrate.cumulative_simpson(x, axis=0, dx=0.2, initial=2.0)


def splines(x):
    ends = [CubicSpline(NODES, x[0], bc_type=b)(BETWEEN) for b in ("natural", "clamped")]
    around = CubicSpline(NODES, np.append(x[0, :5], x[0, 0]), bc_type="periodic")
    fitted = InterpolatedUnivariateSpline(NODES, x[1], k=2)(x[2])
    known = [spline(2.0 * x[3]) for spline in OUTSIDE_MADE]
    several = CubicSpline(NODES, x.T, extrapolate=False)(BETWEEN[1:-1], 1)
    return ends, around(BETWEEN), fitted, known, several, make_interp_spline(NODES, x[0])(0.7)


def pieces(x):
    spline = CubicSpline(NODES, x[0])
    return (
        spline.derivative()(x[1]),
        spline.integrate(0.1, 1.0 + x[1, 0]),
        spline.antiderivative()(2.5),
    )


def on_grids(x):
    table = RegularGridInterpolator((NODES[:5], NODES), x)
    beyond = RegularGridInterpolator((NODES[:5], NODES), x, "nearest", False, 0.5)
    places = np.stack([0.9 * x[0], 1.5 * x[1]], axis=-1)
    known = RegularGridInterpolator((NODES[:3], NODES[:3]), K, "linear", False, None)
    axes = (NODES[:5], NODES)
    advected = scipy.interpolate.interpn(axes, np.stack([x, x**2], axis=-1), places)
    outside = scipy.interpolate.interpn(axes, x, [3.0, 0.1], "nearest", False, 0.5)
    looked_up = table(places), table((0.2, 0.4)), beyond([[3.0, 0.1], [0.4, 0.4]])
    return *looked_up, known(2.0 * places), advected, outside


def bent(t, row):
    if row[0] > 0.5:
        return row * t, row[1]
    return row + 1.0, t * row[0]


FUNCTIONS = {
    "convolve": lambda x: [scipy.ndimage.convolve(x, K, mode=m) for m in OUTSIDE],
    "correlate": lambda x: [scipy.ndimage.correlate(x, K[:2], mode=m, cval=0.3) for m in OUTSIDE],
    "even kernel": lambda x: scipy.ndimage.convolve(x, K[:2, :2]),
    "convolve1d": lambda x: scipy.ndimage.convolve1d(x, [1.0, 2.0, 3.0, 4.0], axis=0),
    "correlate1d": lambda x: scipy.ndimage.correlate1d(x, [1.0, 2.0, 3.0], origin=1),
    "origin": lambda x: scipy.ndimage.convolve1d(x, [1.0, 2.0, 0.5], mode="wrap", origin=-1),
    "laplace": lambda x: scipy.ndimage.laplace(x, mode="nearest") ** 2,
    "gaussian_filter": lambda x: scipy.ndimage.gaussian_filter(x, (1.2, 0.7)),
    "a mode for each axis": lambda x: scipy.ndimage.gaussian_filter(x, 0.7, mode=OUTSIDE[:2]),
    "uniform_filter": lambda x: scipy.ndimage.uniform_filter(x, 4, mode="nearest"),
    "convolve2d": lambda x: [scipy.signal.convolve2d(x, K, m, b) for m, b in WAYS],
    "traced kernel": lambda x: scipy.signal.convolve2d(x, x[:2, :2], "same"),
    "larger kernel": lambda x: scipy.signal.convolve2d(K, x),
    "signal.convolve": lambda x: scipy.signal.convolve(x[0], x[1, :4], "same"),
    "fftconvolve": lambda x: scipy.signal.fftconvolve(x, x[::2]),
    "trapezoid": lambda x: scipy.integrate.trapezoid(x, dx=0.1),
    "cumulative": lambda x: scipy.integrate.cumulative_trapezoid(x, x.cumsum(1), initial=0),
    "solve": lambda x: scipy.linalg.solve(square(x), x[:, 0], check_finite=False),
    "options by their places": lambda x: [
        sl.solve(square(x), x[:, 0], False, True, True),
        sl.solve(square(x), x[:, 0], False, False, False, True, None, True),
        sl.solveh_banded(np.stack((0.1 * x[0], 3.0 + x[1] ** 2)), x[0] * 2.0, True),
        sl.lu_factor(square(x), True)[0],
        sl.det(square(x), True),
        sl.qr(square(x), False, None, "r")[0] ** 2,
        sl.svd(x, True, False, True),
        sl.block_diag(x, x, x),
    ],
    "solve_triangular": lambda x: scipy.linalg.solve_triangular(square(x), x, lower=True),
    "transposed": lambda x: scipy.linalg.solve_triangular(square(x), x[:, 0], trans="T"),
    "cholesky": lambda x: scipy.linalg.cholesky(x @ x.T + np.eye(5)),
    "lower cholesky": lambda x: scipy.linalg.cholesky(x @ x.T + np.eye(5), lower=True),
    "inv and det": lambda x: scipy.linalg.inv(square(x)) * scipy.linalg.det(square(x)),
    "functions of matrices": lambda x: [
        f(square(x) / 4) for f in (sl.cosm, sl.sinm, sl.tanm, sl.coshm, sl.sinhm, sl.tanhm)
    ],
    "of a complex one": lambda x: [abs(f(square(x) * (0.2 + 0.1j))) for f in (sl.cosm, sl.sinm)],
    "expm_frechet": lambda x: sl.expm_frechet(square(x) / 4, x[:, 1:]),
    "rq": lambda x: [*sl.rq(square(x)), *sl.rq(x, mode="economic"), sl.rq(x.T, mode="r")],
    "pinvh": lambda x: [sl.pinvh(x @ x.T), sl.pinvh(square(x), lower=False)],
    "companion": lambda x: sl.companion(x[0] + 1.0),
    "khatri_rao": lambda x: sl.khatri_rao(x, x[:2]),
    "toeplitz": lambda x: [
        sl.matmul_toeplitz((x[:, 0], x[1]), x.T),
        abs(sl.matmul_toeplitz(x[0] + 1j * x[1], x[2])),
        sl.matmul_toeplitz((x[0], x[1]), x[2]),
    ],
    "solve_circulant": lambda x: [
        sl.solve_circulant(x[0] + 3 * np.eye(6)[0], x.T),
        abs(sl.solve_circulant(x[0] + 3 * np.eye(6)[0], x[1] + 1j * x[2])),
    ],
    "tensors": lambda x: [
        np.linalg.tensorsolve(cube(x), x[0]),
        np.linalg.tensorsolve(np.moveaxis(cube(x), 1, -1), x[0], axes=(1,)),
        np.linalg.tensorinv(cube(x), ind=1),
    ],
    "vectorize": lambda x: np.vectorize(square_or_minus)(x),
    "vectorize of rows": lambda x: np.vectorize(bent, signature="(),(d)->(d),()")(x[0, 0], x),
    "vectorize of lengths": lambda x: np.vectorize(
        lambda a, n: np.outer(a, a)[:, :n], signature="(d)->(d,m)", excluded=[1]
    )(x.reshape(2, 3, -1), 2),
    "vectorize of two": lambda x: np.vectorize(lambda a, b: (a * b, a + b))(x[0], 0.5),
    "simpson": lambda x: [scipy.integrate.simpson(x, x=X[0].cumsum()), simpson(x, axis=0, dx=0.2)],
    "distances": lambda x: [cdist(x, x[:3], m) + 0.1 * pdist(x, m)[7] for m in METRICS],
    "minkowski": lambda x: [
        cdist(x, x[:3] + 1.0, "minkowski", p=p) + pdist(x, metric="minkowski", p=p)[7]
        for p in (1, 2.5, 3)
    ],
    "squareform": lambda x: [squareform(pdist(x)), squareform(squareform(x[0, :3]))],
    "one point": lambda x: squareform(pdist(x[:1])) + x[0, 0],
    "one pixel": lambda x: [map_coordinates(x[:1], PIXELS, order=1, mode=m) for m in MODES],
    "by_slopes": by_slopes,
    "by_parabolas": by_parabolas,
    "splines": splines,
    "pieces": pieces,
    "grid": on_grids,
    "map_coordinates": lambda x: [map_coordinates(x, PIXELS, order=1, mode=m) for m in MODES],
    "pixels": lambda x: [map_coordinates(x, PIXELS, order=0, mode=m) for m in MODES],
    "between": lambda x: map_coordinates(K, [3.0 * x[0], 1.0 + x[1]], order=1, mode="nearest"),
    "apply_along_axis": lambda x: np.apply_along_axis(sum_of_large, 1, x),
    "piecewise": lambda x: np.piecewise(x, [x > 0.5], [lambda t: np.sqrt(t - 0.5), 0.0]),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_derivative(name):
    function = FUNCTIONS[name]
    for mine, theirs in zip(
        trees.flatten(ckad.jit(function)(X))[0], trees.flatten(function(X))[0], strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    ckad.testing.check_grads(lambda x: function(x), (X,), order=1)


def test_places_of_another_length():
    with pytest.raises(ValueError, match="2 places for 6 values"):
        ckad.grad(lambda a: simpson(X[0], x=a * np.arange(2.0)))(1.0)


def test_what_a_filter_and_a_spline_have_no_rule_for():
    for refused in (
        lambda x: scipy.ndimage.median_filter(x, 3, mode=OUTSIDE[:2]),
        lambda x: InterpolatedUnivariateSpline(NODES, x[0, : len(NODES)]).integral(0.0, 1.0),
    ):
        with pytest.raises(UnsupportedFunctionError, match="has no rule for"):
            ckad.jit(refused)(X)


@pytest.mark.filterwarnings("ignore:.*truncated to an integer")
@pytest.mark.parametrize("function", [scipy.special.yn, scipy.special.kn, scipy.special.expn])
def test_orders_that_are_whole_numbers_lose_their_fractions(function):
    def of_orders(n):
        return function(n, 1.5)

    orders = np.array([0.3, 1.9, 2.0])
    np.testing.assert_allclose(ckad.jit(of_orders)(orders), of_orders(orders), rtol=1e-12)


def test_circulant_matrices_of_several_rows_are_a_stack():
    def made(x):
        return sl.circulant(x)

    np.testing.assert_array_equal(ckad.jit(made)(X), made(X))


@pytest.mark.parametrize(
    "made", [sl.toeplitz, lambda x: sl.solve_toeplitz(x, x[0]), lambda x: sl.matmul_toeplitz(x, x)]
)
def test_toeplitz_matrices_of_several_rows_are_named(made):
    with pytest.raises(UnsupportedFunctionError, match="Toeplitz matrices of arrays of several"):
        ckad.jit(lambda x: made(x))(X)


def test_circulant_matrices_without_an_inverse_are_named():
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        ckad.jit(lambda c: sl.solve_circulant(c, X[0]))(np.ones(6))
