"""Special functions of SciPy that are formulas, and its distributions, against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st
from scipy.interpolate import RBFInterpolator

import ckad
from ckad.errors import ConcreteValueError, UnsupportedFunctionError

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3, 4))
POSITIVE = RNG.uniform(1.1, 4.0, (3, 4))
UNIT = RNG.uniform(0.2, 0.8, (3, 4))
COUNTS = np.array([0.0, 1.0, 3.0, 7.0])
SPREAD = np.cov(RNG.normal(size=(4, 9))) + np.eye(4)


def regressed(x, y):
    found = st.linregress(x, y)
    return *found, found.slope, found.intercept_stderr


DENSITY = st.gaussian_kde([0.1, 0.5, 2.0], 0.4)


def joined(*parts):
    return np.concatenate([np.ravel(part) for part in parts])


def by_weights(x):
    made = st.gaussian_kde(x[0], x[1, 0] * 0.2 + 1.0, x[2])
    smooth = st.gaussian_kde(x[:2], "silverman", x[2])
    covariance = smooth.covariance * smooth.factor
    return joined(made.logpdf(x[0] * 0.9), smooth.pdf(x[1:, 0]), covariance, made.neff * smooth.d)


FUNCTIONS = {
    "polygamma": (lambda x: sp.polygamma(1, x) + sp.polygamma([0, 1, 2, 3], x), POSITIVE),
    "gammasgn": (lambda x: sp.gammasgn(x) * x, X),
    "beta": (lambda x: sp.beta(x, 0.7) + sp.beta(-0.3, x), POSITIVE),
    "whole orders": (lambda x: sp.yn(2, x) + sp.kn([0, 1, 2, 3], x) + sp.jn(2, x), POSITIVE),
    "orders 0 and 1": (
        lambda x: [sp.y0(x), sp.y1(x), sp.k0(x), sp.k1(x), sp.k0e(x), sp.k1e(x), sp.i1e(x)],
        POSITIVE,
    ),
    "i0e": (lambda x: sp.i0e(x), POSITIVE),
    "ndtri": (lambda p: sp.ndtri(p), UNIT),
    "logit": (lambda p: sp.logit(p), UNIT),
    "log_expit": (lambda x: sp.log_expit(x), X),
    "entr": (lambda x: sp.entr(x), POSITIVE),
    "xlog1py": (lambda x: sp.xlog1py(x, x), POSITIVE),
    "logsumexp": (lambda x: sp.logsumexp(x), X),
    "logsumexp along an axis": (lambda x: sp.logsumexp(x, axis=0, keepdims=True), X),
    "weighted": (lambda x: sp.logsumexp(x, 1, b=np.where(UNIT > 0.5, UNIT, 0)), X),
    "softmax": (lambda x: sp.softmax(x, axis=0), X),
    "log_softmax": (lambda x: sp.log_softmax(x, axis=-1), X),
    "regression": (lambda x: [*regressed(x[0], x[1])], X),
    "regression on known numbers": (lambda x: [*regressed([1, 2, 4, 8], x[2])], X),
    "a line through two points": (lambda x: [*regressed(x[0, :2], x[1, :2])[:2]], X),
    "multigammaln": (lambda a: sp.multigammaln(a, 3), 1 + POSITIVE),
    "math": (lambda x: math.erfc(x[0, 0]) + math.gamma(x[0, 1] + 5.0), X),
    "normal": (lambda x: st.multivariate_normal.logpdf(x, 0.5 * x[0], SPREAD), X),
    "normal of one": (lambda x: st.multivariate_normal.pdf(x[0], x[0, 0], x[0, 1] ** 2), X),
    "normal of no mean": (lambda x: st.multivariate_normal.pdf(x[0], cov=2.0), X),
    "independent": (lambda x: st.multivariate_normal.pdf(x[0], x[1], x[2] ** 2 + 1), X),
    "covariance": (
        lambda x: st.multivariate_normal.logpdf(X[:, :3], np.ones(3), x @ x.T + np.eye(3)),
        X,
    ),
    "entropy": (lambda x: st.multivariate_normal.entropy(cov=x @ x.T + np.eye(3)), X),
    "singular": (
        lambda x: st.multivariate_normal.logpdf(
            np.concatenate([x[0, :2], np.zeros(2)]), None, np.diag([1.0, 2, 0, 0]), True
        ),
        X,
    ),
    "density": (lambda x: st.gaussian_kde(x)(np.cos(x[:, :2])), X),
    "density by weights": (lambda x: by_weights(x), POSITIVE),
    "known density": (lambda x: joined(DENSITY(x[0]), DENSITY.pdf(x[0]), DENSITY.logpdf(x[1])), X),
    "density within bounds": (
        lambda x: joined(
            st.gaussian_kde(x[0]).integrate_box_1d(-1.0, x[1, 1]),
            DENSITY.integrate_box_1d(x[0, 0], 2.0),
        ),
        X,
    ),
    "dirichlet": (lambda a: st.dirichlet.logpdf(UNIT[0] / UNIT[0].sum(), a[0]), POSITIVE),
    "points of a simplex": (
        lambda x: st.dirichlet.pdf(x / np.sum(x, axis=0), np.array([1.5, 2.0, 2.5])),
        UNIT,
    ),
    "all but one": (lambda x: st.dirichlet.logpdf(0.2 * x[0], POSITIVE[0, [0, 1, 2, 3, 0]]), UNIT),
}
SHAPES = {
    st.norm: (X, ()),
    st.t: (X, (POSITIVE,)),
    st.expon: (POSITIVE, ()),
    st.uniform: (UNIT, ()),
    st.lognorm: (POSITIVE, (UNIT,)),
    st.gamma: (POSITIVE, (POSITIVE,)),
    st.chi2: (POSITIVE, (POSITIVE,)),
    st.beta: (UNIT, (POSITIVE, POSITIVE[::-1])),
}
OF_POINTS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")


def moved(distribution, name, shapes):
    function = getattr(distribution, name)
    return lambda x: function(x, *shapes) + function(0.9 * x, *shapes, loc=-0.05, scale=1.4)


def by_shapes(distribution, name, x, n_shapes):
    function = getattr(distribution, name)
    return lambda a: function(x, *(a * (k + 1) for k in range(n_shapes)), scale=1 + 0.1 * a)


def of_counts(name):
    function = getattr(st.poisson, name)
    return lambda mu: function(COUNTS, mu) + function(COUNTS, mu, 1)


for _distribution, (_x, _shapes) in SHAPES.items():
    for _name in OF_POINTS:
        _key = f"{_distribution.name}.{_name}"
        FUNCTIONS[_key] = moved(_distribution, _name, _shapes), _x
        if _shapes and _name.endswith("pdf"):
            FUNCTIONS[f"shapes of {_key}"] = (
                by_shapes(_distribution, _name, _x, len(_shapes)),
                POSITIVE,
            )
for _name in ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"):
    FUNCTIONS[f"poisson.{_name}"] = of_counts(_name), POSITIVE


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_derivatives(name):
    function, x = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        want = function(x)
    got = ckad.jit(function)(x)
    np.testing.assert_allclose(got, want, rtol=2e-11, atol=1e-13)
    assert np.shape(got) == np.shape(want)
    if np.all(np.isfinite(want)):
        ckad.testing.check_grads(function, (x,), order=2)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_likelihood_on_both_engines(engine):
    def likelihood(mean, scale, degrees):
        points = np.linspace(-1.0, 2.0, 7)
        return np.sum(st.t.logpdf(points, degrees, mean, scale)) + st.norm.logsf(mean, 0.0, scale)

    arguments = (np.float64(0.3), np.float64(1.2), np.float64(4.0))
    assert abs(ckad.jit(likelihood, engine=engine)(*arguments) - likelihood(*arguments)) < 1e-12
    ckad.testing.check_grads(likelihood, arguments, order=2, engine=engine)


@pytest.mark.parametrize("name", OF_POINTS)
@pytest.mark.parametrize("distribution", SHAPES, ids=lambda d: d.name)
def test_outside_of_support_and_parameters(distribution, name):
    x = np.array([-np.inf, -2.0, 0.0, 0.5, 1.0, 3.0, np.inf, np.nan])
    function, shapes = getattr(distribution, name), (2.5,) * len(SHAPES[distribution][1])
    for scale in (1.3, 0.0, -1.0):
        got = ckad.jit(lambda x, s=scale: function(x, *shapes, scale=s))(x)
        with np.errstate(all="ignore"):
            want = function(x, *shapes, scale=scale)
        np.testing.assert_allclose(got, want, rtol=1e-12)
    for k in range(len(shapes)):
        wrong = (*shapes[:k], -1.0, *shapes[k + 1 :])
        assert np.all(np.isnan(ckad.jit(lambda x, w=wrong: function(x, *w))(x)))


def test_densities_on_both_engines_and_what_they_lack():
    def smooth(x):
        return np.sum(st.gaussian_kde(x[:2])(x[1:]) + DENSITY(x[0]))

    by_vm, native = (ckad.value_and_grad(smooth, engine=e)(X) for e in ("vm", "native"))
    np.testing.assert_allclose(by_vm[0], smooth(X), rtol=1e-13)
    np.testing.assert_allclose(by_vm[1], native[1], rtol=1e-12)
    with pytest.raises(UnsupportedFunctionError, match="'resample' of a gaussian_kde"):
        ckad.jit(lambda x: st.gaussian_kde(x).resample(3))(X)
    with pytest.raises(UnsupportedFunctionError, match="a function as bw_method="):
        ckad.jit(lambda x: st.gaussian_kde(x, lambda kde: 0.3)(x))(X)
    with pytest.raises(ValueError, match="which are too few"):
        ckad.jit(lambda x: st.gaussian_kde(x.T)(x))(X)


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
def test_a_known_object_without_a_rule_is_refused():
    found = RBFInterpolator(POSITIVE.T, COUNTS)
    with pytest.raises(ConcreteValueError, match=r"test_distributions\.py:\d+"):
        ckad.jit(lambda x: found(x.T))(POSITIVE)


def test_derivatives_outside_of_the_support_are_zero():
    x = np.array([-2.0, 0.5, 3.0])
    for distribution, shapes in ((st.beta, (2.0, 3.0)), (st.uniform, ())):
        slope = ckad.grad(lambda x, d=distribution, s=shapes: np.sum(d.cdf(x, *s)))(x)
        np.testing.assert_allclose(slope, distribution.pdf(x, *shapes), rtol=1e-14)


def test_derivatives_by_shapes_of_distribution_functions_are_not_given():
    by_shape = ckad.grad(lambda a: st.gamma.cdf(1.5, a) + st.gamma.cdf(1.5, 2.0))
    assert np.isnan(by_shape(2.0))


def test_what_has_no_rule():
    with pytest.raises(UnsupportedFunctionError, match="return_sign"):
        ckad.jit(lambda x: sp.logsumexp(x, return_sign=True))(X)
    with pytest.raises(ValueError, match="points of 4 coordinates for 1 variables"):
        ckad.jit(lambda x: st.multivariate_normal.pdf(x))(X)
    with pytest.raises(TypeError, match="the parameters are df, loc, scale"):
        ckad.jit(lambda x: st.t.pdf(x, 1.0, degrees=3.0))(X)
    with pytest.raises(TypeError, match="the parameters are a, b, loc, scale"):
        ckad.jit(lambda x: st.beta.pdf(x, 1.0))(X)


@pytest.mark.parametrize("x", [-12.0, -3.0, 0.0, 3.0, 12.0, 30.0])
def test_tails_keep_their_digits(x):
    for function in (sp.erfc, sp.ndtr, st.norm.sf, st.norm.logcdf, st.norm.logsf, sp.expit):
        np.testing.assert_allclose(ckad.jit(function)(x), function(x), rtol=1e-13)
