"""SciPy's distances between points; loaded when needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.spatial.distance

from ckad.place import at_place
from ckad.trace.arrays import Array, traced
from ckad.trace.dispatch import implements, reject


def _cosine(u: Array, v: Array) -> Array:
    sizes = np.linalg.norm(u, axis=-1) * np.linalg.norm(v, axis=-1)
    return 1.0 - np.sum(u * v, axis=-1) / sizes


#: What a metric makes of two arrays of points, along the last axis.
_METRICS: dict[str, Callable[[Array, Array], Array]] = {
    "euclidean": lambda u, v: np.linalg.norm(u - v, axis=-1),
    "sqeuclidean": lambda u, v: np.sum((u - v) ** 2, axis=-1),
    "cityblock": lambda u, v: np.sum(np.abs(u - v), axis=-1),
    "chebyshev": lambda u, v: np.max(np.abs(u - v), axis=-1),
    "cosine": _cosine,
}


def _metric(name: Any, options: dict[str, Any]) -> Callable[[Array, Array], Array]:
    if name == "minkowski" and options.keys() <= {"p"}:
        order = options.get("p", 2)
        return lambda u, v: np.linalg.norm(u - v, ord=order, axis=-1)
    reject(name not in _METRICS or bool(options), f"scipy.spatial.distance with metric {name!r}")
    return _METRICS[name]


@implements(scipy.spatial.distance.cdist)
def cdist(
    XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any
) -> Array:  # fmt: skip
    reject(out is not None, "scipy.spatial.distance.cdist with out=")
    left, right = traced(XA), traced(XB)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise ValueError(at_place(f"points {left.shape} and {right.shape} must be [n, d], [m, d]"))
    return _metric(metric, options)(left[:, np.newaxis], right[np.newaxis])


@implements(scipy.spatial.distance.pdist)
def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Array:
    reject(out is not None, "scipy.spatial.distance.pdist with out=")
    points = traced(X)
    if points.ndim != 2:
        raise ValueError(at_place(f"points have shape {points.shape}; they must be [n, d]"))
    first, second = np.triu_indices(points.shape[0], 1)
    return _metric(metric, options)(points[first], points[second])


@implements(scipy.spatial.distance.squareform)
def squareform(X: Any, force: str = "no", checks: bool = True) -> Array:
    """From the distances of pairs to their matrix, or back."""
    x = traced(X)
    if x.ndim == 2 and force != "tomatrix":
        return x[np.triu_indices(x.shape[0], 1)]
    n = max(int(np.ceil(np.sqrt(x.size * 2))), 1)
    if x.ndim != 1 or n * (n - 1) != 2 * x.size:
        raise ValueError(at_place(f"shape {x.shape} is not that of the distances of all pairs"))
    matrix = np.zeros((n, n), dtype=x.dtype, like=x)
    first, second = np.triu_indices(n, 1)
    matrix[first, second] = x
    matrix[second, first] = x
    return matrix


@implements(scipy.spatial.distance.euclidean)
def euclidean(u: Any, v: Any, w: Any = None) -> Array:
    reject(w is not None, "scipy.spatial.distance.euclidean with w=")
    return np.linalg.norm(traced(u) - traced(v))
