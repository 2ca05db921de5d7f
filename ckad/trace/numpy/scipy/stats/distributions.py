"""Densities, distribution functions and lines of ``scipy.stats``: formulas in special functions.

A distribution is a row of the table. Its functions take numbers inside of its support; what lies
outside has the density 0, and parameters out of their ranges give NaN, as in SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from scipy import special

from ckad.place import at_place
from ckad.trace.arrays import Array, doubles, own
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.scipy.stats.table import ABOVE, BEHIND, MORE, Distribution, Formula

LOG_2PI = math.log(2.0 * math.pi)


def _student(z: Any, df: Any) -> Any:
    constant = special.betaln(0.5 * df, 0.5) + 0.5 * np.log(df)
    return -constant - 0.5 * (df + 1.0) * np.log1p(z * z / df)


def _beta(z: Any, a: Any, b: Any) -> Any:
    return special.xlog1py(b - 1.0, -z) + special.xlogy(a - 1.0, z) - special.betaln(a, b)


def _gamma(z: Any, a: Any) -> Any:
    return special.xlogy(a - 1.0, z) - z - special.gammaln(a)


def _log_normal(z: Any, s: Any) -> Any:
    return -0.5 * (np.log(z) / s) ** 2 - np.log(s * z) - 0.5 * LOG_2PI


TABLE: dict[Any, Distribution] = {
    scipy.stats.norm: Distribution(
        "",
        logpdf=lambda z: -0.5 * z * z - 0.5 * LOG_2PI,
        cdf=lambda z: special.ndtr(z),
        sf=lambda z: special.ndtr(-z),
        logcdf=lambda z: special.log_ndtr(z),
        logsf=lambda z: special.log_ndtr(-z),
        ppf=lambda q: special.ndtri(q),
    ),
    scipy.stats.t: Distribution(
        "df",
        logpdf=_student,
        cdf=lambda z, df: special.stdtr(df, z),
        sf=lambda z, df: special.stdtr(df, -z),
        ppf=lambda q, df: special.stdtrit(df, q),
    ),
    scipy.stats.expon: Distribution(
        "",
        logpdf=lambda z: -z,
        cdf=lambda z: -np.expm1(-z),
        sf=lambda z: np.exp(-z),
        logsf=lambda z: -z,
        support=ABOVE,
        ppf=lambda q: -np.log1p(-q),
    ),
    scipy.stats.uniform: Distribution(
        "",
        logpdf=lambda z: 0.0 * z,
        cdf=lambda z: z,
        sf=lambda z: 1.0 - z,
        support=(0.0, 1.0),
        ppf=lambda q: q,
    ),
    scipy.stats.lognorm: Distribution(
        "s",
        logpdf=_log_normal,
        cdf=lambda z, s: special.ndtr(np.log(z) / s),
        sf=lambda z, s: special.ndtr(-np.log(z) / s),
        support=BEHIND,
        logcdf=lambda z, s: special.log_ndtr(np.log(z) / s),
        logsf=lambda z, s: special.log_ndtr(-np.log(z) / s),
        ppf=lambda q, s: np.exp(s * special.ndtri(q)),
    ),
    scipy.stats.gamma: Distribution(
        "a",
        logpdf=_gamma,
        cdf=lambda z, a: special.gammainc(a, z),
        sf=lambda z, a: special.gammaincc(a, z),
        support=ABOVE,
        ppf=lambda q, a: special.gammaincinv(a, q),
    ),
    scipy.stats.chi2: Distribution(
        "df",
        logpdf=lambda z, df: _gamma(0.5 * z, 0.5 * df) - math.log(2.0),
        cdf=lambda z, df: special.gammainc(0.5 * df, 0.5 * z),
        sf=lambda z, df: special.gammaincc(0.5 * df, 0.5 * z),
        support=ABOVE,
        ppf=lambda q, df: 2.0 * special.gammaincinv(0.5 * df, q),
    ),
    scipy.stats.beta: Distribution(
        "a b",
        logpdf=_beta,
        cdf=lambda z, a, b: special.betainc(a, b, z),
        sf=lambda z, a, b: special.betainc(b, a, 1.0 - z),
        support=(0.0, 1.0),
        ppf=lambda q, a, b: special.betaincinv(a, b, q),
    ),
    scipy.stats.poisson: Distribution(
        "mu",
        logpdf=lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1.0) - mu,
        cdf=lambda k, mu: special.gammaincc(np.floor(k) + 1.0, mu),
        sf=lambda k, mu: special.gammainc(np.floor(k) + 1.0, mu),
        support=ABOVE,
        discrete=True,
        may_be_zero="mu",
    ),
    **MORE,
}


class _Point(NamedTuple):
    """Where a distribution is asked for; the conditions are arrays of bools."""

    z: Array  # a number of the support wherever the argument is outside
    shapes: tuple[Array, ...]
    scale: Any
    below: Any
    above: Any
    valid: Any


def _point(d: Distribution, x: Any, args: Sequence[Any], options: dict[str, Any]) -> _Point:
    given = _parameters(d, args, options)
    x, loc, scale = doubles(x), doubles(given.pop("loc")), doubles(given.pop("scale"))
    shapes = [doubles(shape) for shape in given.values()]
    valid = scale > 0
    for name, shape in zip(given, shapes, strict=True):
        valid = np.logical_and(valid, shape >= 0 if name in d.may_be_zero.split() else shape > 0)
        if name in d.chances.split():
            valid = np.logical_and(valid, shape <= 1)
        if name in d.whole.split():
            valid = np.logical_and(valid, np.equal(shape, np.floor(shape)))
    divisor = np.where(scale > 0, scale, 1.0)
    z = (x - loc) / divisor
    valid = np.logical_and(valid, np.logical_not(np.isnan(z)))
    below, above = z < d.support[0], z > d.support[1]
    inside = np.logical_and(valid, np.logical_not(np.logical_or(below, above)))
    safe = [np.where(valid, shape, 1.0) for shape in shapes]
    return _Point(np.where(inside, z, d.inside), tuple(safe), divisor, below, above, valid)


def _parameters(d: Distribution, args: Sequence[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Shapes by their names, in their order, then ``loc`` and ``scale``."""
    names = [*d.shapes.split(), "loc", *([] if d.discrete else ["scale"])]
    given = dict(zip(names, args, strict=False)) | options
    missing = set(d.shapes.split()) - set(given)
    if len(args) > len(names) or set(given) - set(names) or missing:
        raise TypeError(at_place(f"the parameters are {', '.join(names)}, not {sorted(given)}"))
    return {name: given.get(name, {"loc": 0.0}.get(name, 1.0)) for name in [*names, "scale"]}


def _finished(point: _Point, inside: Any, below: float, above: float) -> Array:
    value = np.where(point.below, below, np.where(point.above, above, inside))
    return own(np.where(point.valid, value, np.nan))


def _log_density(d: Distribution) -> Formula:
    def logpdf(x: Any, *args: Any, **options: Any) -> Array:
        p = _point(d, x, args, options)
        inside = d.logpdf(p.z, *p.shapes) - np.log(p.scale)
        if d.discrete:
            inside = np.where(np.equal(p.z, np.floor(p.z)), inside, -np.inf)
        return _finished(p, inside, -math.inf, -math.inf)

    return logpdf


def _density(d: Distribution) -> Formula:
    log = _log_density(d)
    return lambda x, *args, **options: np.exp(log(x, *args, **options))


def _distribution(d: Distribution, formula: Formula, below: float, above: float) -> Formula:
    def function(x: Any, *args: Any, **options: Any) -> Array:
        p = _point(d, x, args, options)
        return _finished(p, formula(p.z, *p.shapes), below, above)

    return function


def _quantile(d: Distribution, formula: Formula) -> Formula:
    """Where the distribution function is q; the ends of the support at 0 and 1."""

    def ppf(q: Any, *args: Any, **options: Any) -> Array:
        given = _parameters(d, args, options)
        p = _point(d, d.inside, args, options)
        q = doubles(q)
        inside = np.logical_and(q > 0.0, q < 1.0)
        z = formula(np.where(inside, q, 0.5), *p.shapes)
        ends = np.where(
            np.equal(q, 0.0), d.support[0], np.where(np.equal(q, 1.0), d.support[1], np.nan)
        )
        found = np.where(inside, z, ends) * p.scale + doubles(given["loc"])
        return own(np.where(p.valid, found, np.nan))

    return ppf


def _log(formula: Formula) -> Formula:
    return lambda *xs: np.log(formula(*xs))


for _scipy, _d in TABLE.items():
    _names = ("pmf", "logpmf") if _d.discrete else ("pdf", "logpdf")
    implements(getattr(_scipy, _names[0]))(_density(_d))
    implements(getattr(_scipy, _names[1]))(_log_density(_d))
    implements(_scipy.cdf)(_distribution(_d, _d.cdf, 0.0, 1.0))
    implements(_scipy.sf)(_distribution(_d, _d.sf, 1.0, 0.0))
    implements(_scipy.logcdf)(_distribution(_d, _d.logcdf or _log(_d.cdf), -math.inf, 0.0))
    if _d.ppf is not None:
        implements(_scipy.ppf)(_quantile(_d, _d.ppf))
    implements(_scipy.logsf)(_distribution(_d, _d.logsf or _log(_d.sf), 0.0, -math.inf))


# --- regression --------------------------------------------------------------------------------

_Line: Any = type(scipy.stats.linregress([0.0, 1.0], [0.0, 1.0]))


@implements(scipy.stats.linregress)
def linregress(x: Any, y: Any, alternative: str = "two-sided") -> Any:
    reject(alternative != "two-sided", f"scipy.stats.linregress with alternative={alternative!r}")
    x, y = doubles(x), doubles(y)
    if x.ndim != 1 or x.shape != y.shape or x.size < 2:
        raise ValueError(
            at_place(f"linregress takes two rows of numbers, not {x.shape}, {y.shape}")
        )
    dx, dy, df = x - np.mean(x), y - np.mean(y), x.size - 2
    xx, xy, yy = np.mean(dx * dx), np.mean(dx * dy), np.mean(dy * dy)
    slope, r = xy / xx, np.clip(xy / np.sqrt(xx * yy), -1.0, 1.0)
    intercept = np.mean(y) - slope * np.mean(x)
    if df == 0:
        is_level = np.where(np.equal(y[0], y[1]), 1.0, 0.0)
        return _Line(slope, intercept, r, is_level, 0.0, intercept_stderr=0.0)
    t = r * np.sqrt(df / ((1.0 - r + 1e-20) * (1.0 + r + 1e-20)))
    error = np.sqrt((1.0 - r**2) * yy / xx / df)
    both = 2.0 * special.stdtr(float(df), -np.abs(t))
    of_intercept = error * np.sqrt(xx + np.mean(x) ** 2)
    return _Line(slope, intercept, r, both, error, intercept_stderr=of_intercept)
