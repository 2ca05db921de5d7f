"""Functions of arrays, and points at which a rule or a composite takes a special way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import Any

import mpmath as mp
import numpy as np
import scipy.special

from .special_points import Special

ORIGIN, TIES = (0.0, 0.0), (1.0, 1.0)
AXES = ((1.0, 0.0), (0.0, 2.0), (-1.0, 0.0), (0.0, -0.5))
LENGTHS = ((0.0, 0.0, 1.0), (0.0, 2.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 3.0, 4.0))
ZEROS = ((2.0, 0.0, 3.0), (0.0, 2.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 3.0, 0.0))
EYE, TURNED, LOWER = np.eye(3), np.eye(3)[[1, 0, 2]], np.tri(3)
UPPER_COLUMNS = (np.eye(3, 2), -np.eye(3, 2), np.array([[1.0, 1.0], [0.0, 2.0], [0.0, 0.0]]))


# --- what the functions are, in mpmath's numbers -------------------------------------------------


def dot(xs: Sequence[Any], ys: Sequence[Any]) -> Any:
    return mp.fsum(x * y for x, y in zip(xs, ys, strict=True))


def square(*xs: Any) -> Any:
    return dot(xs, xs)


def length(*xs: Any) -> Any:
    return mp.sqrt(square(*xs))


def variance(*xs: Any) -> Any:
    mean = mp.fsum(xs) / len(xs)
    return square(*(x - mean for x in xs)) / len(xs)


def log_sum(*xs: Any) -> Any:
    return mp.log(mp.fsum(map(mp.exp, xs)))


def log2_sum(*xs: Any) -> Any:
    return mp.log(mp.fsum(mp.mpf(2) ** x for x in xs), 2)


def product(*xs: Any) -> Any:
    return reduce(mul, xs)


def partial_products(*xs: Any) -> Any:
    return mp.fsum((k + 1) * product(*xs[: k + 1]) for k in range(len(xs)))


def matrix(xs: Sequence[Any], columns: int) -> Any:
    return mp.matrix([list(xs[k : k + columns]) for k in range(0, len(xs), columns)])


def squared(x: Any) -> Any:
    return matrix(x, math.isqrt(len(x)))


def solved(*xs: Any) -> Any:
    n = math.isqrt(len(xs))
    return mp.fsum(mp.lu_solve(squared(xs), mp.matrix([1 + k for k in range(n)])))


def least_squares(*xs: Any) -> Any:
    a, b = matrix(xs, 2), mp.matrix([1, 2, 4])
    return mp.fsum(mp.lu_solve(a.T * a, a.T * b))


def sizes_of_r(*xs: Any) -> Any:
    """The diagonal of R without its signs, from the Cholesky factor of A'A."""
    a = matrix(xs, 2)
    gram = a.T * a
    first = mp.sqrt(gram[0, 0])
    return first + 2 * mp.sqrt(gram[1, 1] - gram[0, 1] ** 2 / gram[0, 0])


def correlation(*xs: Any) -> Any:
    half = len(xs) // 2
    x, y = ([v - mp.fsum(p) / half for v in p] for p in (xs[:half], xs[half:]))
    return dot(x, y) / mp.sqrt(square(*x) * square(*y))


def cholesky_sum(*xs: Any) -> Any:
    a = squared(xs)
    return mp.fsum(mp.cholesky(a * a.T))


# --- the table -----------------------------------------------------------------------------------

LENGTHS_OF_VECTORS = (
    Special("hypot", lambda v: np.hypot(v[0], v[1]), length, AXES),
    Special("hypot**2", lambda v: np.hypot(v[0], v[1]) ** 2, square, (ORIGIN, *AXES)),
    Special(
        "gaussian of hypot",
        lambda v: np.exp(-((np.hypot(v[0], v[1]) / 2) ** 2)),
        lambda x, y: mp.exp(-square(x, y) / 4),
        (ORIGIN, *AXES),
    ),
    Special("hypot of hypot", lambda v: np.hypot(v[2], np.hypot(v[0], v[1])), length, LENGTHS),
    Special(
        "(hypot of hypot)**2",
        lambda v: np.hypot(np.hypot(v[0], v[1]), -v[2]) ** 2,
        square,
        ((0.0, 0.0, 0.0), *LENGTHS),
    ),
    Special("math.hypot", lambda v: math.hypot(v[0], v[1], v[2]), length, LENGTHS),
    Special("hypot.reduce", lambda v: np.hypot.reduce(v), length, LENGTHS),
    Special(
        "hypot.accumulate",
        lambda v: np.hypot.accumulate(v)[1:],
        lambda x, y, z: length(x, y) + 2 * length(x, y, z),
        ((0.0, 3.0, 4.0), (-1.0, 0.0, 0.0)),
    ),
    Special(
        "math.dist**2",
        lambda v: math.dist([v[0], v[1]], [v[1], 2.0]) ** 2,
        lambda x, y: square(x - y, y - 2),
        ((2.0, 2.0), TIES),
    ),
    Special("norm", lambda v: np.linalg.norm(v), length, LENGTHS),
    Special("norm**2", lambda v: np.linalg.norm(v) ** 2, square, ((0.0, 0.0, 0.0), *LENGTHS)),
    Special(
        "k norm norm",
        lambda v: 3 * np.linalg.norm(v) * (np.linalg.norm(v) / 2),
        lambda *v: 1.5 * square(*v),
        (ORIGIN, *AXES),
    ),
    Special("cos(norm)", lambda v: np.cos(np.linalg.norm(v)), lambda *v: mp.cos(length(*v)), AXES),
    Special(
        "sinc(norm)", lambda v: np.sinc(np.linalg.norm(v)), lambda *v: mp.sincpi(length(*v)), AXES
    ),
    Special(
        "sinc(norm) at 0",
        lambda v: np.sinc(np.linalg.norm(v)),
        lambda *v: 1 - mp.pi**2 * square(*v) / 6,
        (ORIGIN,),
    ),
    Special(
        "rows of norm 0",
        lambda v: np.sum(np.linalg.norm(v.reshape(2, 2), axis=1)[:, None] ** 2 * np.ones(2)),
        lambda *v: 2 * square(*v),
        ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)),
    ),
    Special(
        "abs**2 of a part",
        lambda v: np.abs(v)[1:3] ** 2,
        lambda *v: v[1] ** 2 + 2 * v[2] ** 2,
        ((0.0, 0.0, 1.0, 0.0), (1.0,) + (0.0,) * 15),
    ),
    Special(
        "norm of order 3",
        lambda v: np.linalg.norm(v, 3),
        lambda *v: mp.cbrt(mp.fsum(abs(x) ** 3 for x in v)),
        ((0.0, 1.0, 2.0), (0.0, 0.0, -2.0)),
    ),
    Special(
        "norm of order 4",
        lambda v: np.linalg.norm(v, 4),
        lambda *v: mp.root(mp.fsum(x**4 for x in v), 4),
        ((0.0, 1.0, 2.0),),
    ),
    Special("frobenius", lambda v: np.linalg.norm(v.reshape(2, 2)) ** 2, square, ((0.0,) * 4,)),
    Special("var", np.var, variance, ((1.0, 1.0, 1.0), (1.0, 0.0, 0.0))),
    Special(
        "std", np.std, lambda *v: mp.sqrt(variance(*v)), ((1.0, 0.0, 0.0, 3.0), (0.0, 1.0, -1.0))
    ),
    Special("std**2", lambda v: np.std(v) ** 2, variance, ((1.0, 1.0, 1.0), (1.0, 0.0, 0.0))),
    Special("nanstd**2", lambda v: np.nanstd(v) ** 2, variance, ((1.0, 1.0, 1.0),)),
    Special(
        "sqrt of squares",
        lambda v: np.sqrt(np.sum(v * v)) ** 2 + 1,
        lambda *v: square(*v) + 1,
        (ORIGIN, *AXES),
    ),
    Special(
        "x sqrt(y)",
        lambda v: v[0] * np.sqrt(v[1]),
        lambda x, y: x * mp.sqrt(y),
        ((0.0, 1.0), (0.0, 2.0)),
    ),
)

ANGLES_AND_POWERS = (
    Special(
        "arctan2",
        lambda v: np.arctan2(v[0], v[1]),
        mp.atan2,
        ((0.0, 1.0), (1.0, 0.0), (-1.0, 0.0), (0.5, 0.0)),
    ),
    Special(
        "x**y",
        lambda v: v[0] ** v[1],
        lambda x, y: x**y,
        ((2.0, 0.0), (2.0, 1.0), (0.5, 0.0), (3.0, 2.0), (1.0, 0.0)),
    ),
    Special(
        "0**y", lambda v: v[0] ** v[1], lambda x, y: abs(x) ** y if x else mp.mpf(0), ((0.0, 4.0),)
    ),
    Special(
        "x**(0, 1, 2, 3)",
        lambda v: v ** np.arange(4.0),
        lambda *v: mp.fsum((k + 1) * x**k for k, x in enumerate(v)),
        ((0.0,) * 4, (1.0,) * 4, (-1.0,) * 4),
    ),
    Special(
        "xlogy",
        lambda v: scipy.special.xlogy(v[0], v[1]),
        lambda x, y: x * mp.log(y),
        ((0.0, 1.0), (0.0, 0.5), (1.0, 1.0), (0.0, 3.0)),
    ),
    Special("logaddexp", lambda v: np.logaddexp(v[0], v[1]), log_sum, (ORIGIN, TIES, *AXES)),
    Special("logaddexp2", lambda v: np.logaddexp2(v[0], v[1]), log2_sum, (ORIGIN, TIES, *AXES)),
    Special(
        "logaddexp.reduce", lambda v: np.logaddexp.reduce(v), log_sum, ((1.0,) * 5, (1.0, 1.0, 0.0))
    ),
    Special(
        "log of a sum of exponentials",
        lambda v: np.max(v) + np.log(np.sum(np.exp(v - np.max(v)))),
        log_sum,
        ((1.0,) * 3, (1.0, 1.0, 0.0)),
    ),
    Special(
        "geomspace",
        lambda v: np.geomspace(v[0], v[1], 3),
        lambda x, y: x + 2 * mp.sqrt(x * y) + 3 * y,
        (TIES, (1.0, 2.0)),
    ),
    Special(
        "logspace",
        lambda v: np.logspace(v[0], v[1], 2),
        lambda x, y: mp.mpf(10) ** x + 2 * mp.mpf(10) ** y,
        (ORIGIN, TIES),
    ),
    Special("divide", lambda v: v[0] / v[1], lambda x, y: x / y, ((0.0, 1.0), TIES)),
    Special(
        "a masked zero",
        lambda v: np.where(v[1:] > 0, v[0] / np.where(v[1:] > 0, v[1:], 1), v[1:] ** 2),
        lambda x, y, z: x / y + 2 * z * z,
        ((1.0, 2.0, 0.0),),
    ),
    Special(
        "a masked root",
        lambda v: np.where(v > 0, np.sqrt(v), v * v),
        lambda x, y: mp.sqrt(x) + 2 * y * y,
        ((1.0, 0.0), (1.0, -1.0)),
    ),
    Special(
        "interp by values",
        lambda v: np.interp([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], v) ** 2,
        lambda *v: mp.fsum((k + 1) * x * x for k, x in enumerate(v)),
        ((0.0, 2.0, 4.0),),
    ),
    Special("ptp", lambda v: np.ptp(v) ** 2, lambda x, y, z: (z - x) ** 2, ((0.0, 1.0, 3.0),)),
    Special(
        "average",
        lambda v: np.average(v[:2], weights=v[2:]),
        lambda a, b, c, d: (a * c + b * d) / (c + d),
        ((0.0, 0.0, 1.0, 1.0), (1.0, 2.0, 0.0, 1.0)),
    ),
    Special(
        "corrcoef",
        lambda v: np.corrcoef(v[:3], v[3:])[0, 1],
        correlation,
        ((1.0, 2.0, 4.0, 1.0, 2.0, 4.0), (0.0, 1.0, 0.0, 0.0, -2.0, 0.0)),
    ),
)

PRODUCTS_AND_MATRICES = (
    Special("prod", np.prod, product, ZEROS),
    Special(
        "prod of a matrix",
        lambda v: np.prod(v.reshape(2, 2), (0, 1)),
        product,
        ((0.0,) * 4, (0.0, 1.0, 0.0, 2.0)),
    ),
    Special("nanprod", lambda v: np.nanprod(v), product, ZEROS),
    Special(
        "multiply.reduceat",
        lambda v: np.multiply.reduceat(v, [0, 2]),
        lambda a, b, c, d: a * b + 2 * c * d,
        ((0.0, 0.0, 0.0, 1.0),),
    ),
    Special("cumprod", np.cumprod, partial_products, ZEROS),
    Special("nancumprod", lambda v: np.nancumprod(v), partial_products, ZEROS),
    Special(
        "polyval",
        lambda v: np.polyval([1.0, 2.0, 3.0], v),
        lambda x, y: x * x + 2 * x + 2 * (y * y + 2 * y) + 9,
        (ORIGIN,),
    ),
    Special(
        "det",
        lambda v: np.linalg.det(v),
        lambda *v: mp.det(squared(v)),
        (EYE, TURNED, LOWER, np.ones((2, 2)), np.eye(4)[::-1]),
    ),
    Special(
        "det of singular matrices",
        lambda v: np.linalg.det(v.reshape(2, 2)),
        lambda a, b, c, d: a * d - b * c,
        ((0.0,) * 4, (1.0, 2.0, 0.0, 0.0)),
    ),
    Special(
        "slogdet",
        lambda v: np.linalg.slogdet(v)[1],
        lambda *v: mp.log(abs(mp.det(squared(v)))),
        (EYE, TURNED, LOWER),
    ),
    Special(
        "inv",
        lambda v: np.sum(np.linalg.inv(v)),
        lambda *v: mp.fsum(squared(v) ** -1),
        (EYE, TURNED, LOWER),
    ),
    Special(
        "solve",
        lambda v: np.sum(np.linalg.solve(v, np.arange(1.0, 4.0))),
        solved,
        (EYE, TURNED, LOWER),
    ),
    Special("cholesky", lambda v: np.sum(np.linalg.cholesky(v @ v.T)), cholesky_sum, (EYE, LOWER)),
    Special(
        "lstsq",
        lambda v: np.sum(np.linalg.lstsq(v, np.array([1.0, 2.0, 4.0]))[0]),
        least_squares,
        UPPER_COLUMNS,
    ),
    Special("qr", lambda v: np.abs(np.diag(np.linalg.qr(v)[1])), sizes_of_r, UPPER_COLUMNS),
    Special(
        "matrix_power",
        lambda v: np.sum(np.linalg.matrix_power(v, 3)),
        lambda *v: mp.fsum(squared(v) ** 3),
        (np.zeros((2, 2)), EYE),
    ),
)
