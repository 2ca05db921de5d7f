"""SciPy's interpolation in tables; loaded when needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate

from ckad.place import at_place
from ckad.trace.arrays import Array, known, taken, traced, wrapped
from ckad.trace.dispatch import implements, put, reject
from ckad.trace.numpy.scipy.splines import make_interp_spline, pieces_of
from ckad.trace.numpy.table import searchsorted

#: Kinds that are splines, and their orders.
_ORDERS = {"slinear": 1, "quadratic": 2, "cubic": 3}
_NAMES: dict[Any, str] = {0: "zero", **{order: kind for kind, order in _ORDERS.items()}}


class Table:
    """``interp1d``: a formula in the two nearest nodes, or a spline."""

    def __init__(
        self, nodes: Array, values: Array, kind: str, fill: Any, checks: bool, spline: Any = None
    ) -> None:
        self.nodes, self.values, self.kind = nodes, values, kind
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
        if self.checks or self.fill is None:
            return found
        low, high = self.fill
        return np.where(points < first, low, np.where(points > last, high, found))

    def _looked_up(self, x: Array) -> Array:
        """Beyond the ends the formula of the last interval goes on."""
        nodes, values, n = self.nodes, self.values, len(self.nodes)
        if self.spline is not None:
            return self.spline(x)
        if self.kind == "linear":
            bin = np.clip(searchsorted(nodes, x) - 1, 0, n - 2)
            x0, x1, y0, y1 = (taken(v, bin + k, 0) for v in (nodes, values) for k in (0, 1))
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
    reject(values.ndim != 1, "scipy.interpolate.interp1d of tables of several axes")
    if nodes.shape != values.shape or len(nodes) < 2:
        raise ValueError(at_place(f"x {nodes.shape} and y {values.shape} must be equally long"))
    if not assume_sorted:
        numbers = known(nodes)
        reject(numbers is None, "scipy.interpolate.interp1d of traced x without assume_sorted=True")
        ascending = np.asarray(numbers)
        order = np.argsort(ascending, kind="stable")
        nodes, values = traced(ascending[order]), taken(values, order, 0)
    if isinstance(fill_value, str):
        reject(fill_value != "extrapolate", f"scipy.interpolate.interp1d with {fill_value!r}")
        return Table(nodes, values, kind, None, False)
    fill = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
    return Table(nodes, values, kind, fill, bounds_error is None or bool(bounds_error))


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
        table.x, table.y, kind, bounds_error=None if extrapolates else table.bounds_error,
        fill_value=fill if extrapolates or isinstance(fill, tuple) else fill[()],
    )  # fmt: skip
    return own(x)


put(scipy.interpolate.interp1d.__call__, _called)
