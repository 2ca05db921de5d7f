"""Multivariate densities of ``scipy.stats``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special
from scipy.stats import dirichlet, multivariate_normal

from ckad.place import at_place
from ckad.trace.arrays import Array, doubles, own
from ckad.trace.dispatch import implements
from ckad.trace.numpy.scipy.dense.matrices import solve_triangular
from ckad.trace.numpy.scipy.stats.distributions import LOG_2PI

# --- normal distribution -----------------------------------------------------------------------


class _Normal(NamedTuple):
    mean: Array
    cov: Array
    dim: int


def _normal(mean: Any, cov: Any) -> _Normal:
    """Parameters with their axes; a number is a variance, a vector a diagonal."""
    cov = doubles(1.0 if cov is None else cov)
    if mean is not None:
        dim = np.size(mean)
    else:
        dim = cov.shape[-1] if cov.ndim == 2 else 1
    if cov.ndim < 2:
        cov = cov * np.eye(dim)
    if cov.shape != (dim, dim):
        raise ValueError(at_place(f"a covariance of shape {cov.shape} for {dim} variables"))
    mean = np.zeros(dim) if mean is None else np.reshape(doubles(mean), (dim,))
    return _Normal(mean, cov, dim)


def _points(x: Any, dim: int) -> Array:
    """The points as rows, ``dim`` along the last axis."""
    x = doubles(x)
    if x.ndim == 0:
        return np.reshape(x, (1, 1))
    if x.ndim == 1:
        x = np.reshape(x, (-1, 1) if dim == 1 else (1, -1))
    if x.shape[-1] != dim:
        raise ValueError(at_place(f"points of {x.shape[-1]} coordinates for {dim} variables"))
    return x


@implements(multivariate_normal.logpdf)
def logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Array:
    """NaN where SciPy finds that the covariance is no such, and raises LinAlgError."""
    p = _normal(mean, cov)
    points = _points(x, p.dim)
    away = np.reshape(points - p.mean, (-1, p.dim))
    if allow_singular:
        squares, log_det, rank = _of_support(away, p.cov)
    else:
        root = np.linalg.cholesky(p.cov)
        whitened = solve_triangular(root, np.swapaxes(away, 0, 1), lower=True)
        squares = np.sum(whitened**2, axis=0)
        log_det, rank = 2.0 * np.sum(np.log(np.diagonal(root))), p.dim
    found = -0.5 * (rank * LOG_2PI + log_det + squares)
    return own(np.squeeze(np.reshape(found, points.shape[:-1])))


def _of_support(away: Array, cov: Array) -> tuple[Array, Array, Array]:
    """As SciPy: eigenvalues that are nothing beside the largest are left out."""
    values = np.linalg.eigvalsh(cov)
    cut = 1e6 * np.finfo(float).eps
    kept = values > cut * np.max(np.abs(values))
    log_det = np.sum(np.log(np.where(kept, values, 1.0)))
    squares = np.sum(np.matmul(away, np.linalg.pinv(cov, cut)) * away, axis=-1)
    return squares, log_det, np.sum(kept)


@implements(multivariate_normal.pdf)
def pdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Array:
    return np.exp(logpdf(x, mean, cov, allow_singular))


@implements(multivariate_normal.entropy)
def entropy(mean: Any = None, cov: Any = 1) -> Array:
    p = _normal(mean, cov)
    root = np.linalg.cholesky(p.cov)
    return 0.5 * p.dim * (LOG_2PI + 1.0) + np.sum(np.log(np.diagonal(root)))


# --- Dirichlet distribution --------------------------------------------------------------------


@implements(dirichlet.logpdf)
def dirichlet_logpdf(x: Any, alpha: Any) -> Array:
    """NaN where SciPy raises ValueError: outside of the simplex, or parameters that are not > 0."""
    x, alpha = doubles(x), doubles(alpha)
    if x.shape[0] + 1 == alpha.shape[0]:
        x = np.concatenate([x, np.reshape(1.0 - np.sum(x, axis=0), (1, *x.shape[1:]))])
    each = np.reshape(alpha, (-1, *(1,) * (x.ndim - 1)))
    log_beta = np.sum(special.gammaln(alpha)) - special.gammaln(np.sum(alpha))
    found = np.sum(special.xlogy(each - 1.0, x), axis=0) - log_beta
    on_simplex = np.logical_and(np.all(x >= 0, axis=0), np.abs(np.sum(x, axis=0) - 1.0) <= 1e-9)
    return own(np.where(np.logical_and(on_simplex, np.all(alpha > 0)), found, np.nan))


@implements(dirichlet.pdf)
def dirichlet_pdf(x: Any, alpha: Any) -> Array:
    return np.exp(dirichlet_logpdf(x, alpha))
