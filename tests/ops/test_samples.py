"""More distributions of ``scipy.stats`` and what it says of samples, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st

import ckad
from ckad.errors import UnsupportedFunctionError

POINTS = np.array([-np.inf, -2.0, 0.0, 0.3, 0.5, 1.0, 1.5, 3.0, np.inf, np.nan])
SHARES = np.array([-0.1, 0.0, 0.05, 0.5, 0.9, 1.0, 1.2, np.nan])
#: Distributions with shapes, and points within their supports.
INSIDE = np.array([0.3, 0.45, 0.6])
DISTRIBUTIONS = {
    **dict.fromkeys((st.laplace, st.logistic, st.cauchy, st.gumbel_r, st.gumbel_l), ()),
    **dict.fromkeys((st.halfnorm, st.rayleigh, st.maxwell), ()),
    **dict.fromkeys((st.weibull_min, st.pareto, st.invgamma, st.powerlaw), (1.7,)),
    st.f: (2.5, 3.5),
}
QUANTILES = {
    **{d: shapes for d, shapes in DISTRIBUTIONS.items() if d is not st.f},
    **dict.fromkeys((st.norm, st.expon, st.uniform), ()),
    **dict.fromkeys((st.t, st.lognorm, st.gamma, st.chi2), (0.7,)),
    st.beta: (2.5, 1.5),
}
COUNTS = np.array([-1.0, 0.0, 1.0, 2.0, 2.5, 5.0, 6.0, np.nan])
OF_COUNTS = [
    *((st.binom, shapes) for shapes in ((5, 0.3), (5, 0.0), (5, 1.0), (4.5, 0.3), (5, 1.2))),
    *((st.bernoulli, (p,)) for p in (0.3, 0.0, 1.0)),
    *((st.nbinom, shapes) for shapes in ((2.5, 0.3), (2, 1.0))),
    *((st.geom, (p,)) for p in (0.3, 1.0)),
]


def equal(mine, theirs):
    np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda d: d.name)
def test_distributions(distribution):
    shapes = DISTRIBUTIONS[distribution]

    def asked(x, loc=0.1, scale=1.3):
        names = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")
        return [getattr(distribution, n)(x, *shapes, loc=loc, scale=scale) for n in names]

    with np.errstate(all="ignore"):
        for scale in (1.3, -1.0):
            equal(ckad.jit(asked)(POINTS, 0.0, scale), asked(POINTS, 0.0, scale))
    place = -1.0 if distribution is st.pareto else 0.1
    ckad.testing.check_grads(lambda x, s: asked(x, place, s), (INSIDE, np.float64(0.6)), order=1)

    def by_shapes(*shapes):
        return distribution.logpdf(INSIDE, *shapes, place, 0.6)

    if shapes:
        ckad.testing.check_grads(by_shapes, tuple(map(np.float64, shapes)), order=2)


@pytest.mark.parametrize("distribution", QUANTILES, ids=lambda d: d.name)
def test_quantiles(distribution):
    def ppf(q, loc, scale):
        return distribution.ppf(q, *QUANTILES[distribution], loc=loc, scale=scale)

    equal(ckad.jit(ppf)(SHARES, 0.2, 1.3), ppf(SHARES, 0.2, 1.3))
    ckad.testing.check_grads(ppf, (SHARES[2:5], np.float64(0.2), np.float64(1.3)), order=1)


@pytest.mark.parametrize(
    ("distribution", "shapes"), OF_COUNTS, ids=lambda x: getattr(x, "name", str(x))
)
def test_counts(distribution, shapes):
    def asked(k, *first, p):
        return [getattr(distribution, n)(k, *first, p=p, loc=1) for n in names]

    *first, p = shapes
    names = ["pmf", "logpmf", "cdf", "sf", "logsf"]
    if p <= 1 and (distribution is not st.binom or shapes[0] == 5):
        names.append("logcdf")  # for other parameters SciPy's is 0 above the support
    with np.errstate(all="ignore"):
        equal(ckad.jit(lambda k: asked(k, *first, p=p))(COUNTS), asked(COUNTS, *first, p=p))
    if 0 < p < 1 and distribution is not st.binom:
        fits = lambda p: distribution.logpmf(np.array([1.0, 1.0]), *first, p)  # noqa: E731
        ckad.testing.check_grads(fits, (np.float64(p),), order=2)


def test_the_likelihood_of_trials():
    def likelihood(p):
        return np.sum(st.binom.logpmf([0, 3, 5], 5, p)) + st.binom.cdf(2, 5, p)

    ckad.testing.check_grads(likelihood, (np.float64(0.3),), order=2)


X = np.random.default_rng(0).uniform(0.5, 2.0, (3, 7))
SAMPLES = {
    "skew": lambda x: [st.skew(x), st.skew(x, 1, False), st.skew(x, axis=None)],
    "kurtosis": lambda x: [
        st.kurtosis(x.T),
        st.kurtosis(x, 1, fisher=False, bias=False),
        st.kurtosis(x, axis=1, keepdims=True),
    ],
    "moment": lambda x: [st.moment(x, 3), st.moment(x, 2, axis=None, center=0.3)],
    "scores": lambda x: [
        st.zscore(x),
        st.zscore(x, axis=None, ddof=1),
        st.zmap(x[0], x[1]),
    ],
    "means": lambda x: [
        st.gmean(x),
        st.gmean(x, axis=1, weights=np.arange(1.0, 8.0)),
        st.hmean(x, axis=None),
        st.sem(x, axis=1),
        st.variation(x, ddof=1),
    ],
    "spread": lambda x: [
        st.iqr(x),
        st.iqr(x, axis=1, rng=(10, 80)),
        st.median_abs_deviation(x, axis=1),
    ],
    "entropy": lambda x: [st.entropy(x), st.entropy(x, x[::-1] ** 2, base=2, axis=1)],
    "pearsonr": lambda x: [*st.pearsonr(x[0], x[1]), st.pearsonr(x[1], x[2]).statistic],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name):
    function = SAMPLES[name]
    for mine, theirs in zip(ckad.jit(lambda x: function(x))(X), function(X), strict=True):
        assert np.shape(mine) == np.shape(theirs)
        equal(mine, theirs)
    order = 1 if name == "spread" else 2  # places in an order are kinks
    ckad.testing.check_grads(lambda x: function(x), (X,), order=order)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_fit_on_both_engines(engine):
    def loss(c, scale, q):
        likely = np.sum(st.weibull_min.logpdf(X[0], c, scale=scale))
        return likely + st.norm.ppf(q, c, scale) + st.skew(X[1] * c**2 + X[2])

    arguments = tuple(map(np.float64, (1.7, 1.3, 0.3)))
    assert ckad.jit(loss, engine=engine)(*arguments) == pytest.approx(loss(*arguments), rel=1e-12)
    ckad.testing.check_grads(loss, arguments, order=2, engine=engine)


def test_what_has_no_rule():
    with pytest.raises(UnsupportedFunctionError, match="nan_policy"):
        ckad.jit(lambda x: st.skew(x, nan_policy="omit"))(X)
    with pytest.raises(ValueError, match="two lines of 3 numbers"):
        ckad.jit(lambda x: st.pearsonr(x, x))(X)
