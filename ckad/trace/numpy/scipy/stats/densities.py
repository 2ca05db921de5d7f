"""``scipy.stats.gaussian_kde`` of traced samples, or at traced places."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special
from scipy.stats import gaussian_kde

from ckad.place import at_place
from ckad.trace.arrays import Array, OfTraced, doubles, traced
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.scipy.dense.matrices import solve_triangular
from ckad.trace.numpy.scipy.special import logsumexp
from ckad.trace.numpy.scipy.stats.distributions import LOG_2PI


def _columns(x: Any) -> Array:
    """One point a column: a vector holds numbers."""
    x = doubles(x)
    return x if x.ndim == 2 else np.reshape(x, (1, -1))


class Density(OfTraced):
    """Samples [d, n] with weights [n], under normal distributions of one covariance."""

    dataset: Array
    weights: Array
    factor: Any
    _root: Array  # of the covariance of the samples

    def __init__(self, dataset: Any, weights: Any, root: Any, factor: Any) -> None:
        vars(self).update(dataset=dataset, weights=weights, _root=root)
        vars(self)["factor"] = self._scale(factor)

    def __setattr__(self, name: str, value: Any) -> None:
        reject(True, f"setting {name!r} of a gaussian_kde of traced values")

    def _named(self) -> str:
        return "a gaussian_kde of traced values"

    d = property(lambda self: self.dataset.shape[0])
    n = property(lambda self: self.dataset.shape[1])
    neff = property(lambda self: 1.0 / np.sum(self.weights**2))
    covariance = property(lambda self: self._root @ self._root.T * self.factor**2)

    def scotts_factor(self) -> Array:
        factor: Array = self.neff ** (-1.0 / (self.d + 4))
        return factor

    def silverman_factor(self) -> Array:
        factor: Array = (self.neff * (self.d + 2.0) / 4.0) ** (-1.0 / (self.d + 4))
        return factor

    def _scale(self, bw_method: Any) -> Any:
        if not isinstance(bw_method, str):
            reject(callable(bw_method), "scipy.stats.gaussian_kde with a function as bw_method=")
            return bw_method
        if bw_method not in ("scott", "silverman"):
            raise ValueError(at_place(f"bw_method is {bw_method!r}, not 'scott', 'silverman'"))
        return self.scotts_factor() if bw_method == "scott" else self.silverman_factor()

    def logpdf(self, x: Any) -> Array:
        points = _columns(x)
        if points.shape[0] != self.d:
            if points.shape != (1, self.d):
                raise ValueError(
                    at_place(f"points of {points.shape[0]} coordinates for {self.d} variables")
                )
            points = np.reshape(points, (self.d, 1))
        root = self._root * self.factor
        there = solve_triangular(root, points, lower=True)
        here = solve_triangular(root, self.dataset, lower=True)
        squares = np.sum((there[:, :, None] - here[:, None, :]) ** 2, 0)
        scale = np.sum(np.log(np.diagonal(root))) + 0.5 * self.d * LOG_2PI
        found: Array = logsumexp(-0.5 * squares, axis=1, b=self.weights) - scale
        return found

    def evaluate(self, points: Any) -> Array:
        return np.exp(self.logpdf(points))

    __call__ = pdf = evaluate

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        if self.d != 1:
            raise ValueError(at_place("integrate_box_1d() only handles 1D pdfs"))
        wide, at = self._root[0, 0] * self.factor, self.dataset[0]
        inside: Array = special.ndtr((high - at) / wide) - special.ndtr((low - at) / wide)
        return np.sum(self.weights * inside)


@implements(gaussian_kde)
def density(dataset: Any, bw_method: Any = None, weights: Any = None) -> Density:
    samples = _columns(dataset)
    d, n = samples.shape
    if samples.size < 2 or d > n:
        raise ValueError(at_place(f"a density of {n} samples of {d} variables, which are too few"))
    if weights is None:
        w = traced(np.full(n, 1.0 / n))
    else:
        w = doubles(weights)
        if w.shape != (n,):
            raise ValueError(at_place(f"weights of shape {w.shape} for {n} samples"))
        w = w / np.sum(w)
    away = samples - np.sum(samples * w, 1, keepdims=True)
    covariance = (away * w) @ away.T / (1.0 - np.sum(w**2))
    root = np.linalg.cholesky(covariance)
    return Density(samples, w, root, "scott" if bw_method is None else bw_method)


def _of_scipy(known: gaussian_kde) -> Density:
    root = known.cho_cov / known.factor
    return Density(traced(known.dataset), traced(known.weights), traced(root), known.factor)


implements(gaussian_kde.evaluate, gaussian_kde.pdf)(lambda kde, points: _of_scipy(kde)(points))
implements(gaussian_kde.logpdf)(lambda kde, x: _of_scipy(kde).logpdf(x))
implements(gaussian_kde.integrate_box_1d)(
    lambda kde, low, high: _of_scipy(kde).integrate_box_1d(low, high)
)
