"""SciPy's interpolation in tables; loaded when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.interpolate
from scipy.interpolate import PPoly

from ckad.place import at_place
from ckad.trace.arrays import Array, known, taken, traced, wrapped
from ckad.trace.dispatch import implements, put, reject
from ckad.trace.numpy.scipy.splines import (
    Pieces,
    interpolated,
    make_interp_spline,
    pieces_of,
    regular_grid,
)
from ckad.trace.numpy.table import searchsorted

#: Kinds that are splines, and their orders.
_ORDERS = {"slinear": 1, "quadratic": 2, "cubic": 3}
_NAMES: dict[Any, str] = {0: "zero", **{order: kind for kind, order in _ORDERS.items()}}


class Table:
    """``interp1d``: a formula in the two nearest nodes, or a spline."""

    def __init__(
        self, nodes: Array, values: Array, kind: str, fill: Any, checks: bool, spline: Any = None,
        axis: int = 0,
    ) -> None:  # fmt: skip
        self.nodes, self.kind, self.axis = nodes, kind, axis
        self.values = np.moveaxis(values, axis, 0) if axis else values
        self.fill, self.checks, self.spline = fill, checks, spline
        if kind in _ORDERS and spline is None:
            self.spline = make_interp_spline(nodes, values, _ORDERS[kind])

    def __call__(self, x: Any) -> Array:
        points, nodes = traced(x) * 1.0, self.nodes
        first, last = nodes[0], nodes[-1]
        outside = np.logical_or(points < first, points > last)
        if self.checks:  # it is an index that is out of range
            points = points + wrapped(np.where(outside, 1, 0), 1)
        found = self._looked_up(points)
        if not (self.checks or self.fill is None):
            (low, high), wide = self.fill, self._wide(points)
            found = np.where(wide < first, low, np.where(wide > last, high, found))
        if not self.axis:
            return found
        places = range(points.ndim)
        return np.moveaxis(found, places, [self.axis + k for k in places])

    def _wide(self, x: Array) -> Array:
        """With the other axes of the values behind its own."""
        others = self.values.ndim - 1
        return x.reshape((*x.shape, *[1] * others)) if others else x

    def _looked_up(self, x: Array) -> Array:
        """Beyond the ends the formula of the last interval goes on."""
        nodes, values, n = self.nodes, self.values, len(self.nodes)
        if self.spline is not None:
            return self.spline(x)
        if self.kind == "linear":
            bin = np.clip(searchsorted(nodes, x) - 1, 0, n - 2)
            x0, x1, y0, y1 = (taken(v, bin + k, 0) for v in (nodes, values) for k in (0, 1))
            x0, x1, x = map(self._wide, (x0, x1, x))
            return (y1 - y0) / (x1 - x0) * (x - x0) + y0
        if self.kind == "previous":
            return taken(values, np.clip(searchsorted(nodes, x, "right") - 1, 0, n - 1), 0)
        if self.kind == "next":
            return taken(values, np.clip(searchsorted(nodes, x), 0, n - 1), 0)
        halves = nodes[:-1] + (nodes[1:] - nodes[:-1]) / 2.0
        return taken(values, np.clip(searchsorted(halves, x), 0, n - 1), 0)


@implements(scipy.interpolate.interp1d)
def interp1d(
    x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True,
    bounds_error: Any = None, fill_value: Any = np.nan, assume_sorted: bool = False,
) -> Table:  # fmt: skip
    kind = _NAMES.get(kind, kind)
    reject(
        kind not in ("linear", "nearest", "previous", "next", *_ORDERS),
        f"scipy.interpolate.interp1d of kind {kind!r}",
    )
    nodes, values = traced(x), traced(y)
    spline = kind in _ORDERS and values.ndim > 1
    reject(spline, f"scipy.interpolate.interp1d of kind {kind!r} of tables of several axes")
    axis = range(values.ndim)[axis]
    if nodes.shape != values.shape[axis : axis + 1] or len(nodes) < 2:
        raise ValueError(at_place(f"x {nodes.shape} and y {values.shape} must be equally long"))
    if not assume_sorted:
        numbers = known(nodes)
        order: Any = np.argsort(nodes if numbers is None else np.asarray(numbers), kind="stable")
        nodes, values = taken(nodes, order, 0), taken(values, order, axis)
    if isinstance(fill_value, str):
        reject(fill_value != "extrapolate", f"scipy.interpolate.interp1d with {fill_value!r}")
        return Table(nodes, values, kind, None, False, axis=axis)
    fill = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
    checks = bounds_error is None or bool(bounds_error)
    return Table(nodes, values, kind, fill, checks, axis=axis)


def _called(table: Any, x: Any) -> Array:
    """A table that SciPy has made, looked up at traced places."""
    kind, fill = getattr(table, "_kind", ""), table.fill_value
    extrapolates = isinstance(fill, str)
    if kind == "spline":
        reject(np.ndim(table.y) != 1, "scipy.interpolate.interp1d of tables of several axes")
        reject(table._spline.k == 0, "scipy.interpolate.interp1d of kind 'zero'")
        spline = pieces_of(table._spline)
        spread = fill if isinstance(fill, tuple) else (fill, fill)
        own = Table(
            traced(table.x), traced(table.y), kind, None if extrapolates else spread,
            not extrapolates and bool(table.bounds_error), lambda x: spline(x)[..., 0],
        )  # fmt: skip
        return own(x)
    own = interp1d(
        table.x, table.y, kind, table.axis,
        bounds_error=None if extrapolates else table.bounds_error,
        fill_value=fill if extrapolates or isinstance(fill, tuple) else fill[()],
    )  # fmt: skip
    return own(x)


put(scipy.interpolate.interp1d.__call__, _called)


# --- of FITPACK: splines whose knots do not depend on values -------------------------------------


@implements(scipy.interpolate.splrep)
def splrep(
    x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, task: int = 0,
    s: Any = None, t: Any = None, full_output: Any = 0, per: Any = 0, quiet: Any = 1,
) -> tuple[np.ndarray, Array, int]:  # fmt: skip
    smooths = t is None and (w is not None if s is None else s != 0)
    reject(smooths, "scipy.interpolate.splrep with s=, whose knots depend on the values (s=0, t=)")
    reject(per or full_output, "scipy.interpolate.splrep with per= or full_output=")
    nodes, about = _numbers(x, "scipy.interpolate.splrep"), {"w": w, "xb": xb, "xe": xe, "k": k}
    about |= {"s": 0} if t is None else {"t": t, "task": -1}
    fits = [scipy.interpolate.splrep(nodes, unit, **about) for unit in np.eye(len(nodes))]
    return fits[0][0], traced(y) @ np.stack([fit[1] for fit in fits]), k


@implements(scipy.interpolate.UnivariateSpline)
def univariate(
    x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, s: Any = None,
    ext: Any = 0, check_finite: bool = False,
) -> Pieces:  # fmt: skip
    told = "scipy.interpolate.UnivariateSpline with s=, whose knots depend on the values (s=0)"
    reject(s != 0, told)
    return interpolated(x, y, w, bbox, k, ext)


def _numbers(x: Any, call: str) -> np.ndarray:
    found = known(x)
    reject(found is None, f"{call} of traced nodes")
    return np.asarray(found)


class Axis:
    """The B-splines of one axis, of which k + 1 differ from zero between two knots."""

    def __init__(self, knots: np.ndarray, k: int) -> None:
        n = len(knots) - k - 1
        each = [PPoly.from_spline((knots, unit, k)) for unit in np.eye(n)]
        longer = np.flatnonzero(np.diff(each[0].x) > 0.0)
        c = np.stack([pieces.c for pieces in each], axis=-1)  # power, interval, spline
        at = longer[:, np.newaxis] - k + np.arange(k + 1)
        self.first, self.k = longer - k, k
        self.ends = np.append(each[0].x[longer], each[0].x[longer[-1] + 1])
        self.c = np.stack([np.take_along_axis(power[longer], at, 1) for power in c])

    def at(self, points: Any, nu: int) -> tuple[Any, Any]:
        """The first of the B-splines at each point, and what all of them are, along a last axis."""
        x = np.clip(traced(points) * 1.0, self.ends[0], self.ends[-1])  # as FITPACK does
        bin = np.clip(searchsorted(self.ends, x, "right") - 1, 0, len(self.first) - 1)
        past = (x - taken(self.ends, bin, 0))[..., np.newaxis]
        c = self.c
        for _ in range(nu):
            powers = np.arange(len(c) - 1.0, 0.0, -1.0)
            c = c[:-1] * powers.reshape(-1, 1, 1) if len(c) > 1 else 0.0 * c
        total = taken(c[0], bin, 0)
        for power in c[1:]:
            total = total * past + taken(power, bin, 0)
        return taken(self.first, bin, 0), total


class Surface:
    """``RectBivariateSpline``: sums of products of the B-splines of two axes."""

    def __init__(self, axes: Sequence[Axis], c: Any) -> None:
        self.axes, self.c = axes, traced(c)

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Array:
        if grid:
            x, y = (np.atleast_1d(traced(v)) for v in (x, y))
            x, y = x[:, np.newaxis], y[np.newaxis, :]
        (i, a), (j, b) = self.axes[0].at(x, dx), self.axes[1].at(y, dy)
        total: Any = 0.0
        for m in range(self.axes[0].k + 1):
            row: Any = 0.0
            for n in range(self.axes[1].k + 1):
                row = row + b[..., n] * self.c[i + m, j + n]
            total = total + a[..., m] * row
        return total

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Array:
        return self(xi, yi, dx, dy, False)


@implements(scipy.interpolate.RectBivariateSpline)
def rectangular(
    x: Any, y: Any, z: Any, bbox: Any = (None,) * 4, kx: int = 3, ky: int = 3, s: Any = 0,
    maxit: int = 20,
) -> Surface:  # fmt: skip
    told = "scipy.interpolate.RectBivariateSpline with s= or bbox="
    reject(s != 0 or any(end is not None for end in bbox), told)
    c, axes = traced(z) * 1.0, list[Axis]()
    for nodes, k in ((x, kx), (y, ky)):
        numbers = _numbers(nodes, "scipy.interpolate.RectBivariateSpline")
        spline = scipy.interpolate.make_interp_spline(numbers, np.eye(len(numbers)), k)
        axes.append(Axis(spline.t, k))
        c = (spline.c @ c).T
    return Surface(axes, c)


def _surface_of(spline: Any) -> Surface:
    tx, ty, c = spline.tck
    kx, ky = spline.degrees
    shape = len(tx) - kx - 1, len(ty) - ky - 1
    return Surface((Axis(tx, kx), Axis(ty, ky)), np.reshape(c, shape))


def _surface_called(spline: Any, *args: Any, **options: Any) -> Array:
    return _surface_of(spline)(*args, **options)


def _surface_at(spline: Any, *args: Any, **options: Any) -> Array:
    return _surface_of(spline).ev(*args, **options)


put(scipy.interpolate.BivariateSpline.__call__, _surface_called)
put(scipy.interpolate.BivariateSpline.ev, _surface_at)


# --- between scattered points ---------------------------------------------------------------------

#: Of more points there are too many weights.
_MOST_POINTS = 4_096


def _weighted(by: Callable[[np.ndarray], Any], values: Any, fill: Any = np.nan) -> Array:
    """What is linear in ``values``, and ``fill`` where SciPy finds none."""
    y = traced(values) * 1.0
    reject(len(y) > _MOST_POINTS, f"interpolation between {len(y):,} scattered points")
    weights = np.asarray(by(np.eye(len(y))))
    flat, trailing = weights.reshape(-1, len(y)), y.shape[1:]
    outside = np.isnan(flat).any(axis=1)
    found = np.where(outside[:, np.newaxis], 0.0, flat) @ y.reshape((len(y), -1))
    found = np.where(outside[:, np.newaxis], fill, found) if outside.any() else found
    return found.reshape((*weights.shape[:-1], *trailing))


def _places(x: Any, call: str) -> Any:
    """Places as an array, or as one for each of their coordinates."""
    return tuple(_numbers(v, call) for v in x) if isinstance(x, tuple) else _numbers(x, call)


@implements(scipy.interpolate.griddata)
def griddata(
    points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan,
    rescale: bool = False,
) -> Array:  # fmt: skip
    call = "scipy.interpolate.griddata"
    reject(method == "cubic", f"{call} of method 'cubic'")
    at, of = (_places(x, call) for x in (points, xi))

    def by(units: np.ndarray) -> Any:
        return scipy.interpolate.griddata(at, units, of, method, np.nan, rescale)

    return _weighted(by, values, fill_value)


@implements(scipy.interpolate.interpn)
def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Array:  # fmt: skip
    reject(method not in ("linear", "nearest"), f"scipy.interpolate.interpn of method {method!r}")
    return regular_grid(points, values, method, bounds_error, fill_value)(xi)


@implements(scipy.interpolate.RBFInterpolator)
def radial(y: Any, d: Any, *args: Any, **options: Any) -> Callable[[Any], Array]:
    nodes = _numbers(y, "scipy.interpolate.RBFInterpolator")

    def at(x: Any) -> Array:
        places = _numbers(x, "scipy.interpolate.RBFInterpolator")
        return _weighted(
            lambda units: scipy.interpolate.RBFInterpolator(nodes, units, *args, **options)(places),
            d,
        )

    return at
