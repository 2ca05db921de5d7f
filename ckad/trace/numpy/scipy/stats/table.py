"""What a distribution of ``scipy.stats`` is; those of engineering, extremes and counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from scipy import special

Formula = Callable[..., Any]


class Distribution(NamedTuple):
    """Formulas of z = (x - loc) / scale and the shapes, for z in the support."""

    shapes: str
    logpdf: Formula
    cdf: Formula
    sf: Formula
    support: tuple[float, float] = (-math.inf, math.inf)
    logcdf: Formula | None = None
    logsf: Formula | None = None
    discrete: bool = False
    ppf: Formula | None = None
    may_be_zero: str = ""  # shapes that others have above 0
    chances: str = ""  # shapes of at most 1
    whole: str = ""  # shapes that are integers

    @property
    def inside(self) -> float:
        """A number in the support, where derivatives are finite."""
        low, high = self.support
        if self.discrete or low == -math.inf:
            return max(low, 0.0)
        return low + 1.0 if high == math.inf else 0.5 * (low + high)


def _binomial(k: Any, n: Any, p: Any) -> Any:
    """-inf where there are more than n."""
    more = k > n
    few = np.where(more, 0.0, k)
    ways = special.gammaln(n + 1.0) - special.gammaln(few + 1.0) - special.gammaln(n - few + 1.0)
    return np.where(more, -np.inf, ways + special.xlogy(few, p) + special.xlog1py(n - few, -p))


def _at_most(k: Any, n: Any, p: Any) -> Any:
    k = np.floor(k)
    all_of_them = k >= n
    few = np.where(all_of_them, 0.0, k)
    rest = np.where(all_of_them, 1.0, n - few)
    return np.where(all_of_them, 1.0, special.betainc(rest, few + 1.0, 1.0 - p))


def _more_than(k: Any, n: Any, p: Any) -> Any:
    k = np.floor(k)
    none = k >= n
    few = np.where(none, 0.0, k)
    rest = np.where(none, 1.0, n - few)
    return np.where(none, 0.0, special.betainc(few + 1.0, rest, p))


def _negative_binomial(k: Any, n: Any, p: Any) -> Any:
    ways = special.gammaln(n + k) - special.gammaln(k + 1.0) - special.gammaln(n)
    return ways + n * np.log(p) + special.xlog1py(k, -p)


def _fisher(z: Any, dfn: Any, dfd: Any) -> Any:
    scale = 0.5 * dfd * np.log(dfd) + 0.5 * dfn * np.log(dfn)
    falling = 0.5 * (dfn + dfd) * np.log(dfd + dfn * z)
    rising = special.xlogy(0.5 * dfn - 1.0, z)
    return scale + rising - falling - special.betaln(0.5 * dfn, 0.5 * dfd)


def _share(x: Any, y: Any) -> Any:
    """x / (x + y), also of an infinite x"""
    there = np.isinf(x)
    x = np.where(there, 1.0, x)
    return np.where(there, 1.0, x / (x + y))


def _laplace(z: Any) -> Any:
    half = 0.5 * np.exp(-np.abs(z))
    return np.where(z > 0.0, 1.0 - half, half)


ABOVE = (0.0, math.inf)
BEHIND = (math.ulp(0.0), math.inf)  # 0 at 0, where its formula gives NaN
MORE: dict[Any, Distribution] = {
    scipy.stats.laplace: Distribution(
        "",
        logpdf=lambda z: -np.abs(z) - math.log(2.0),
        cdf=_laplace,
        sf=lambda z: _laplace(-z),
        ppf=lambda q: np.where(q > 0.5, -np.log(2.0 - 2.0 * q), np.log(2.0 * q)),
    ),
    scipy.stats.logistic: Distribution(
        "",
        logpdf=lambda z: -np.abs(z) - 2.0 * np.log1p(np.exp(-np.abs(z))),
        cdf=lambda z: special.expit(z),
        sf=lambda z: special.expit(-z),
        logcdf=lambda z: special.log_expit(z),
        logsf=lambda z: special.log_expit(-z),
        ppf=lambda q: special.logit(q),
    ),
    scipy.stats.cauchy: Distribution(
        "",
        logpdf=lambda z: -math.log(math.pi) - np.log1p(z * z),
        cdf=lambda z: np.arctan2(1.0, -z) / math.pi,
        sf=lambda z: np.arctan2(1.0, z) / math.pi,
        ppf=lambda q: np.tan(math.pi * q - 0.5 * math.pi),
    ),
    scipy.stats.halfnorm: Distribution(
        "",
        logpdf=lambda z: 0.5 * math.log(2.0 / math.pi) - 0.5 * z * z,
        cdf=lambda z: special.erf(z / math.sqrt(2.0)),
        sf=lambda z: 2.0 * special.ndtr(-z),
        support=ABOVE,
        ppf=lambda q: special.ndtri(0.5 * (1.0 + q)),
    ),
    scipy.stats.rayleigh: Distribution(
        "",
        logpdf=lambda z: np.log(np.minimum(z, 1e300)) - 0.5 * z * z,
        cdf=lambda z: -np.expm1(-0.5 * z * z),
        sf=lambda z: np.exp(-0.5 * z * z),
        support=ABOVE,
        logsf=lambda z: -0.5 * z * z,
        ppf=lambda q: np.sqrt(-2.0 * np.log1p(-q)),
    ),
    scipy.stats.maxwell: Distribution(
        "",
        logpdf=lambda z: 0.5 * math.log(2.0 / math.pi) + 2.0 * np.log(z) - 0.5 * z * z,
        cdf=lambda z: special.gammainc(1.5, 0.5 * z * z),
        sf=lambda z: special.gammaincc(1.5, 0.5 * z * z),
        support=ABOVE,
        ppf=lambda q: np.sqrt(2.0 * special.gammaincinv(1.5, q)),
    ),
    scipy.stats.weibull_min: Distribution(
        "c",
        logpdf=lambda z, c: np.log(c) + special.xlogy(c - 1.0, z) - z**c,
        cdf=lambda z, c: -np.expm1(-(z**c)),
        sf=lambda z, c: np.exp(-(z**c)),
        support=ABOVE,
        logsf=lambda z, c: -(z**c),
        ppf=lambda q, c: (-np.log1p(-q)) ** (1.0 / c),
    ),
    scipy.stats.pareto: Distribution(
        "b",
        logpdf=lambda z, b: np.log(b) - (b + 1.0) * np.log(z),
        cdf=lambda z, b: -np.expm1(-b * np.log(z)),
        sf=lambda z, b: np.exp(-b * np.log(z)),
        support=(1.0, math.inf),
        ppf=lambda q, b: np.exp(-np.log1p(-q) / b),
    ),
    scipy.stats.gumbel_r: Distribution(
        "",
        logpdf=lambda z: -z - np.exp(-z),
        cdf=lambda z: np.exp(-np.exp(-z)),
        sf=lambda z: -np.expm1(-np.exp(-z)),
        logcdf=lambda z: -np.exp(-z),
        ppf=lambda q: -np.log(-np.log(q)),
    ),
    scipy.stats.gumbel_l: Distribution(
        "",
        logpdf=lambda z: z - np.exp(z),
        cdf=lambda z: -np.expm1(-np.exp(z)),
        sf=lambda z: np.exp(-np.exp(z)),
        logsf=lambda z: -np.exp(z),
        ppf=lambda q: np.log(-np.log1p(-q)),
    ),
    scipy.stats.invgamma: Distribution(
        "a",
        logpdf=lambda z, a: -(a + 1.0) * np.log(z) - special.gammaln(a) - 1.0 / z,
        cdf=lambda z, a: special.gammaincc(a, 1.0 / z),
        sf=lambda z, a: special.gammainc(a, 1.0 / z),
        support=BEHIND,
        ppf=lambda q, a: 1.0 / special.gammainccinv(a, q),
    ),
    scipy.stats.f: Distribution(
        "dfn dfd",
        logpdf=_fisher,
        cdf=lambda z, m, n: special.betainc(0.5 * m, 0.5 * n, _share(m * z, n)),
        sf=lambda z, m, n: special.betainc(0.5 * n, 0.5 * m, n / (m * z + n)),
        support=ABOVE,
    ),
    scipy.stats.powerlaw: Distribution(
        "a",
        logpdf=lambda z, a: np.log(a) + special.xlogy(a - 1.0, z),
        cdf=lambda z, a: z**a,
        sf=lambda z, a: -np.expm1(special.xlogy(a, z)),
        support=(0.0, 1.0),
        ppf=lambda q, a: q ** (1.0 / a),
    ),
    scipy.stats.binom: Distribution(
        "n p",
        logpdf=_binomial,
        cdf=_at_most,
        sf=_more_than,
        support=ABOVE,
        discrete=True,
        may_be_zero="n p",
        chances="p",
        whole="n",
    ),
    scipy.stats.bernoulli: Distribution(
        "p",
        logpdf=lambda k, p: special.xlogy(k, p) + special.xlog1py(1.0 - k, -p),
        cdf=lambda k, p: np.where(k < 1.0, 1.0 - p, 1.0),
        sf=lambda k, p: np.where(k < 1.0, p, 0.0),
        support=(0.0, 1.0),
        discrete=True,
        may_be_zero="p",
        chances="p",
    ),
    scipy.stats.nbinom: Distribution(
        "n p",
        logpdf=_negative_binomial,
        cdf=lambda k, n, p: special.betainc(n, np.floor(k) + 1.0, p),
        sf=lambda k, n, p: special.betainc(np.floor(k) + 1.0, n, 1.0 - p),
        support=ABOVE,
        discrete=True,
        chances="p",
    ),
    scipy.stats.geom: Distribution(
        "p",
        logpdf=lambda k, p: special.xlog1py(k - 1.0, -p) + np.log(p),
        cdf=lambda k, p: -np.expm1(special.xlog1py(np.floor(k), -p)),
        sf=lambda k, p: np.exp(special.xlog1py(np.floor(k), -p)),
        support=(1.0, math.inf),
        discrete=True,
        chances="p",
    ),
}
