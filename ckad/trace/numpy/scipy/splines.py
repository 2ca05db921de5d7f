"""SciPy's piecewise polynomials and tables on grids; loaded when needed.

Splines through values at known nodes depend on these values linearly: SciPy itself gives the
coefficients of unit vectors, and those of traced values are their sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import scipy.interpolate
from scipy.interpolate import BSpline, PPoly

from ckad.place import at_place
from ckad.trace.arrays import Array, OfTraced, is_traced, known, taken, traced, wrapped
from ckad.trace.dispatch import implements, put, reject
from ckad.trace.numpy.table import searchsorted


class Pieces(OfTraced):
    """SciPy's ``PPoly``: known nodes float64[m + 1], coefficients [k, m, ...], highest first."""

    def __init__(self, nodes: np.ndarray, c: Any, extrapolate: Any = True) -> None:
        self.x, self.c = nodes, traced(c)
        self.extrapolate = True if extrapolate is None else extrapolate

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Array:
        if nu:
            return self.derivative(nu)(x, 0, extrapolate)
        how = self.extrapolate if extrapolate is None else extrapolate
        points, first, last = traced(x) * 1.0, self.x[0], self.x[-1]
        if how == "periodic":
            points = first + np.mod(points - first, last - first)
        bin = np.clip(searchsorted(self.x, points, "right") - 1, 0, len(self.x) - 2)
        trailing = (1,) * (self.c.ndim - 2)
        past = (points - taken(self.x, bin, 0)).reshape((*points.shape, *trailing))
        total = taken(self.c[0], bin, 0)
        for c in (self.c[k] for k in range(1, self.c.shape[0])):
            total = total * past + taken(c, bin, 0)
        if how:
            return total
        outside = np.logical_or(points < first, points > last)
        return np.where(outside.reshape((*points.shape, *trailing)), np.nan, total)

    def _named(self) -> str:
        return "a spline through traced values"

    def derivative(self, nu: int = 1) -> Pieces:
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            c = self._powers(c[:-1]) * c[:-1] if c.shape[0] > 1 else 0.0 * c
        return Pieces(self.x, c, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> Pieces:
        found = self
        for _ in range(nu):
            found = found._integral()
        return found

    def _integral(self) -> Pieces:
        risen = self.c / self._powers(self.c)
        width = np.diff(self.x).reshape((-1, *(1,) * (self.c.ndim - 2)))
        over = sum(risen[-k] * width**k for k in range(1, risen.shape[0] + 1))
        before = np.concatenate([0.0 * over[:1], np.cumsum(over, axis=0)[:-1]])
        how = False if self.extrapolate == "periodic" else self.extrapolate
        return Pieces(self.x, np.concatenate([risen, before[np.newaxis]]), how)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Array:
        reject(self.extrapolate == "periodic", "the integral of a periodic spline")
        primitive = self.antiderivative()
        return primitive(b, 0, extrapolate) - primitive(a, 0, extrapolate)

    @staticmethod
    def _powers(c: Any) -> np.ndarray:
        """By what the derivative of each power is multiplied, up to the first power."""
        return np.arange(c.shape[0], 0, -1.0).reshape((-1, *(1,) * (c.ndim - 1)))


def _known(x: Any, what: str) -> np.ndarray:
    numbers = known(traced(x))
    reject(numbers is None, what)
    return np.asarray(numbers)


def _of_unit_vectors(
    nodes: Any, values: Any, axis: int, make: Callable[[np.ndarray], PPoly], periodic: bool = False
) -> Pieces:
    numbers, y = _known(nodes, "a spline with traced nodes"), np.moveaxis(traced(values), axis, 0)
    reject(axis != 0 and y.ndim > 1, "a spline along another axis than the first")
    n = y.shape[0]
    if np.shape(numbers) != (n,):
        raise ValueError(at_place(f"x {np.shape(numbers)} and y {y.shape} must be equally long"))
    units = np.eye(n)
    if periodic:  # the last value is the first one
        units, y = np.vstack([np.eye(n - 1), np.eye(n - 1)[:1]]), y[:-1]
    pieces = make(units)
    longer = np.diff(pieces.x) > 0.0  # knots may be repeated
    c = pieces.c[:, longer]
    flat = c.reshape(-1, c.shape[-1]) @ y.reshape((y.shape[0], -1))
    ends = np.append(pieces.x[:-1][longer], pieces.x[-1])
    return Pieces(ends, flat.reshape((*c.shape[:2], *y.shape[1:])), pieces.extrapolate)


@implements(scipy.interpolate.CubicSpline)
def cubic_spline(
    x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
) -> Pieces:
    reject(
        not isinstance(bc_type, str), "scipy.interpolate.CubicSpline with derivatives in bc_type"
    )

    def make(units: np.ndarray) -> PPoly:
        return scipy.interpolate.CubicSpline(x, units, 0, bc_type, extrapolate)

    return _of_unit_vectors(x, y, axis, make, bc_type == "periodic")


# --- from values and slopes --------------------------------------------------------------------


def _nodes_of(x: Any, y: Any, axis: int) -> tuple[np.ndarray, Array, np.ndarray]:
    """The nodes, the values along the first axis, and the widths of the pieces beside them."""
    nodes, values = _known(x, "a spline with traced nodes") * 1.0, np.moveaxis(traced(y), axis, 0)
    reject(axis != 0 and values.ndim > 1, "a spline along another axis than the first")
    if nodes.shape != values.shape[:1] or len(nodes) < 2 or np.any(np.diff(nodes) <= 0):
        raise ValueError(at_place(f"{nodes.shape} increasing nodes for values {values.shape}"))
    return nodes, values, np.diff(nodes).reshape((-1, *(1,) * (values.ndim - 1)))


def _hermite(nodes: np.ndarray, y: Array, d: Array, h: np.ndarray, extrapolate: Any) -> Pieces:
    """Cubic pieces of the values ``y`` and the slopes ``d`` at their ends."""
    slope = np.diff(y, axis=0) / h
    bend = (d[:-1] + d[1:] - 2.0 * slope) / h
    return Pieces(
        nodes, np.stack([bend / h, (slope - d[:-1]) / h - bend, d[:-1], y[:-1]]), extrapolate
    )


@implements(scipy.interpolate.CubicHermiteSpline)
def hermite(x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> Pieces:
    nodes, values, h = _nodes_of(x, y, axis)
    return _hermite(nodes, values, traced(dydx), h, extrapolate)


@implements(scipy.interpolate.PchipInterpolator)
def pchip(x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> Pieces:
    """Slopes are weighted harmonic means, and 0 at extrema (Fritsch and Butland, 1984)."""
    nodes, values, h = _nodes_of(x, y, axis)
    m = np.diff(values * 1.0, axis=0) / h
    if len(nodes) == 2:
        return _hermite(nodes, values, np.concatenate([m, m]), h, extrapolate)
    turns = np.logical_or(np.sign(m[:-1]) != np.sign(m[1:]), m[1:] == 0.0)
    one, other = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    before, after = np.where(turns, 1.0, m[:-1]), np.where(turns, 1.0, m[1:])
    inner = np.where(turns, 0.0, (one + other) / (one / before + other / after))
    first, last = _end(h[0], h[1], m[0], m[1]), _end(h[-1], h[-2], m[-1], m[-2])
    return _hermite(nodes, values, np.concatenate([first, inner, last]), h, extrapolate)


def _end(near: Any, far: Any, m: Any, beside: Any) -> Array:
    """The slope at an end, which keeps the shape of the first two pieces."""
    d = ((2.0 * near + far) * m - near * beside) / (near + far)
    steep = np.logical_and(np.sign(m) != np.sign(beside), np.abs(d) > 3.0 * np.abs(m))
    return np.where(np.sign(d) != np.sign(m), 0.0, np.where(steep, 3.0 * m, d))[np.newaxis]


@implements(scipy.interpolate.Akima1DInterpolator)
def akima(
    x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None
) -> Pieces:
    reject(method != "akima", f"scipy.interpolate.Akima1DInterpolator with method={method!r}")
    nodes, values, h = _nodes_of(x, y, axis)
    extrapolate = False if extrapolate is None else extrapolate
    m = np.diff(values * 1.0, axis=0) / h
    if len(nodes) == 2:
        return _hermite(nodes, values, np.concatenate([m, m]), h, extrapolate)
    for _ in range(2):  # two pieces more at each end, as a parabola goes on
        ends = 2.0 * m[:1] - m[1:2], 2.0 * m[-1:] - m[-2:-1]
        m = np.concatenate([ends[0], m, ends[1]])
    turn = np.abs(np.diff(m, axis=0))
    right, left = turn[2:], turn[:-2]
    both = right + left
    bends = both > 1e-9 * np.max(both)
    share = left / np.where(bends, both, 1.0)
    d = np.where(bends, m[1:-2] + share * (m[2:-1] - m[1:-2]), 0.5 * (m[3:] + m[:-3]))
    return _hermite(nodes, values, d, h, extrapolate)


@implements(scipy.interpolate.pchip_interpolate)
def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Array:
    reject(np.ndim(der) != 0, "scipy.interpolate.pchip_interpolate with several derivatives")
    return pchip(xi, yi, axis)(x, int(der))


# --- from values alone -------------------------------------------------------------------------


@implements(scipy.interpolate.make_interp_spline)
def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0,
    check_finite: bool = True,
) -> Pieces:  # fmt: skip
    reject(
        not (bc_type is None or isinstance(bc_type, str)) or bc_type == "periodic",
        f"scipy.interpolate.make_interp_spline with bc_type {bc_type!r}",
    )

    def make(units: np.ndarray) -> PPoly:
        return _of_knots(scipy.interpolate.make_interp_spline(x, units, k, t, bc_type))

    return _of_unit_vectors(x, y, axis, make)


@implements(scipy.interpolate.InterpolatedUnivariateSpline)
def interpolated(
    x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
    check_finite: bool = False,
) -> Pieces:  # fmt: skip
    reject(
        w is not None or tuple(bbox) != (None, None) or ext not in (0, "extrapolate"),
        "scipy.interpolate.InterpolatedUnivariateSpline with w=, bbox= or ext=",
    )

    def make(units: np.ndarray) -> PPoly:
        fits = [scipy.interpolate.InterpolatedUnivariateSpline(x, unit, k=k) for unit in units.T]
        knots, _, order = fits[0]._eval_args
        c = np.stack([fit._eval_args[1] for fit in fits], axis=-1)
        return _of_knots(BSpline(knots, c, order))

    return _of_unit_vectors(x, y, 0, make)


def _of_knots(spline: BSpline) -> PPoly:
    """``PPoly.from_spline``, of coefficients with more axes than one."""
    if spline.c.ndim == 1:
        return PPoly.from_spline(spline)
    flat = spline.c.reshape(len(spline.c), -1)
    each = [PPoly.from_spline((spline.t, column, spline.k)) for column in flat.T]
    c = np.stack([pieces.c for pieces in each], axis=-1)
    return PPoly(c.reshape((*c.shape[:2], *spline.c.shape[1:])), each[0].x, spline.extrapolate)


# --- made by SciPy, called at traced places ----------------------------------------------------


def _of_scipy(pieces: Any) -> Pieces:
    longer = np.diff(pieces.x) > 0.0
    ends = np.append(pieces.x[:-1][longer], pieces.x[-1])
    return Pieces(ends, pieces.c[:, longer], pieces.extrapolate)


@implements(PPoly.__call__)
def _called(pieces: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Array:
    reject(pieces.axis != 0, "a spline along another axis than the first")
    return _of_scipy(pieces)(x, nu, extrapolate)


@implements(BSpline.__call__)
def _spline_called(spline: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Array:
    reject(spline.axis != 0, "a spline along another axis than the first")
    return pieces_of(spline)(x, nu, extrapolate)


def pieces_of(spline: BSpline) -> Pieces:
    return _of_scipy(_of_knots(spline))


def _of_coefficients(knots: np.ndarray, c: Any, k: int) -> Pieces:
    """Of coefficients that may be traced, of which FITPACK has some more than are meant."""
    n = len(knots) - k - 1
    units = _of_scipy(_of_knots(BSpline(knots, np.eye(n), k)))
    flat = units.c.reshape((-1, n)) @ traced(c)[:n]
    return Pieces(units.x, flat.reshape(units.c.shape[:2]))


@implements(scipy.interpolate.splev)
def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Array:
    reject(ext not in (0, 1, 3), f"scipy.interpolate.splev with ext={ext}")
    reject(isinstance(tck, BSpline), "scipy.interpolate.splev of a BSpline, which can be called")
    knots, c, k = tck
    reject(is_traced(knots), "scipy.interpolate.splev of traced knots")
    reject(np.ndim(c) != 1, "scipy.interpolate.splev of curves")
    pieces = _of_coefficients(np.asarray(knots), c, k)
    points, (first, last) = traced(x) * 1.0, (knots[k], knots[-k - 1])
    if ext == 3:
        return pieces(np.clip(points, first, last), der)
    found = pieces(points, der)
    outside = np.logical_or(points < first, points > last)
    return np.where(outside, 0.0, found) if ext else found


@implements(scipy.interpolate.UnivariateSpline.__call__)
def _fitted_called(spline: Any, x: Any, nu: int = 0, ext: Any = None) -> Array:
    reject((spline.ext if ext is None else ext) not in (0, "extrapolate"), "a spline with ext=")
    return _of_scipy(PPoly.from_spline(spline._eval_args))(x, nu)


# --- tables on grids ---------------------------------------------------------------------------


class Grid:
    """``RegularGridInterpolator`` of traced values, or at traced places: linear, nearest."""

    def __init__(
        self, axes: Sequence[Any], values: Any, method: str, bounds_error: bool, fill: Any
    ) -> None:
        self.values, self.method = traced(values), method
        self.bounds_error, self.fill = bounds_error, fill
        self.grid = [_known(x, "RegularGridInterpolator with traced points") for x in axes]

    def __call__(self, xi: Any, method: Any = None, *, nu: Any = None) -> Array:
        method = self.method if method is None else method
        reject(
            method not in ("linear", "nearest") or nu is not None,
            f"scipy.interpolate.RegularGridInterpolator of method {method!r}",
        )
        apart = isinstance(xi, tuple)
        if apart:
            xi = np.stack(np.broadcast_arrays(*(traced(x) * 1.0 for x in xi)), axis=-1)
        points = traced(xi) * 1.0
        if points.ndim == 1 and not apart:
            points = points.reshape((-1, len(self.grid)))
        if points.shape[-1] != len(self.grid):
            raise ValueError(at_place(f"points {points.shape} on a grid of {len(self.grid)} axes"))
        each = [points[..., k] for k in range(len(self.grid))]
        outside: Any = False
        for x, nodes in zip(each, self.grid, strict=True):
            outside = np.logical_or(outside, (x < nodes[0]) | (x > nodes[-1]))
        if self.bounds_error:  # it is an index that is out of range
            each[0] = each[0] + wrapped(np.where(outside, 1, 0), 1)
        found = self._between(each, method)
        if self.bounds_error or self.fill is None:
            return found
        return np.where(outside.reshape((*outside.shape, *self._trailing)), self.fill, found)

    @property
    def _trailing(self) -> tuple[int, ...]:
        more: int = self.values.ndim - len(self.grid)
        return (1,) * more

    def _between(self, points: Sequence[Array], method: str) -> Array:
        places, weights = [], []
        for x, nodes in zip(points, self.grid, strict=True):
            bin = np.clip(searchsorted(nodes, x, "right") - 1, 0, len(nodes) - 2)
            low, high = taken(nodes, bin, 0), taken(nodes, bin + 1, 0)
            part = (x - low) / (high - low)
            places.append((bin, bin + 1))
            weights.append((1.0 - part, part))
        if method == "nearest":
            return self.values[
                tuple(np.where(w[1] <= 0.5, *p) for w, p in zip(weights, places, strict=True))
            ]
        total: Any = 0.0
        for corner in product((0, 1), repeat=len(points)):
            weight: Any = 1.0
            for k, side in enumerate(corner):
                weight = weight * weights[k][side]
            at = tuple(p[side] for p, side in zip(places, corner, strict=True))
            total = total + weight.reshape((*weight.shape, *self._trailing)) * self.values[at]
        return total


@implements(scipy.interpolate.RegularGridInterpolator)
def regular_grid(
    points: Any, values: Any, method: str = "linear", bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Grid:  # fmt: skip
    return Grid(points, values, method, bounds_error, fill_value)


def _grid_called(table: Any, xi: Any, method: Any = None, *, nu: Any = None) -> Array:
    own = Grid(table.grid, table.values, table.method, table.bounds_error, table.fill_value)
    return own(xi, method, nu=nu)


put(scipy.interpolate.RegularGridInterpolator.__call__, _grid_called)
