"""Integrals, polynomials, harmonics and losses of ``scipy.special``, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as sp

import ckad
from ckad.errors import UnsupportedFunctionError

UNIT = np.array([0.13, 0.4, 0.77, 0.9])
AROUND = np.array([0.0, 0.005, 0.7, 2.3, -1.1])  # 0, by a series, by Bessel functions
ABOVE = np.array([0.5, 1.3, 2.2, 3.1])
ORDERS = np.array([2, 3, 0, 1])
PLAIN = ("legendre", "chebyt", "chebyu", "hermite", "hermitenorm", "laguerre", "sh_legendre")


def polynomials(name):
    f = getattr(sp, f"eval_{name}")
    return lambda x: [f(0, x), f(1, x), f(6, x), f(ORDERS, x)]


def spherical(name):
    f = getattr(sp, f"spherical_{name}")
    return lambda z: (
        [f(k, z, d) for k in (0, 1, 2, 5) for d in (False, True)] + [f(ORDERS[:, None], z)]
    )


FUNCTIONS = {
    **{name: (polynomials(name), UNIT) for name in (*PLAIN, "sh_chebyt", "sh_chebyu")},
    **{name: (spherical(name), AROUND) for name in ("jn", "in")},
    **{name: (spherical(name), ABOVE) for name in ("yn", "kn")},
    "yn below 0": (lambda z: [sp.spherical_yn(0, -z), sp.spherical_yn(3, -z)], ABOVE),
    "genlaguerre": (
        lambda x: [sp.eval_genlaguerre(4, 0.5, x), sp.eval_genlaguerre(3, x, 0.3)],
        UNIT,
    ),
    "gegenbauer": (lambda x: [sp.eval_gegenbauer(4, 0.7, x), sp.eval_gegenbauer(3, x, 0.3)], UNIT),
    "jacobi": (lambda x: [sp.eval_jacobi(4, 0.7, 0.3, x), sp.eval_jacobi(3, x, 0.3, 0.2)], UNIT),
    "lpmv": (
        lambda x: [sp.lpmv(*p, x) for p in ((0, 2), (1, 2), (3, 5), (4, 2), (-1, 3), (-2, 2))],
        UNIT,
    ),
    "sph_harm_y": (
        lambda x: [
            part(sp.sph_harm_y(n, m, x, 2.0 * x + 0.3))
            for n, m in ((2, 0), (2, 1), (5, 3), (3, -1), (2, -2), (0, 0), (1, 2))
            for part in (np.real, np.imag)
        ],
        UNIT,
    ),
    "boxcox": (
        lambda x: [
            *(f(x, p) for p in (0.3, 0.0) for f in (sp.boxcox, sp.inv_boxcox)),
            sp.boxcox(0.4, x),
            sp.boxcox1p(x, x),
            sp.inv_boxcox1p(x, x),
        ],
        UNIT,
    ),
    "exponentials": (
        lambda x: [sp.cosm1(x), sp.exp10(x), sp.exprel(x), sp.exprel(0.01 * x), sp.exprel(-x)],
        UNIT,
    ),
    "divergences": (lambda x: [sp.rel_entr(x, 0.4), sp.rel_entr(0.4, x), sp.kl_div(x, x**2)], UNIT),
    "losses": (
        lambda x: [sp.huber(0.5, x), sp.pseudo_huber(0.5, x), sp.pseudo_huber(x, 0.3)],
        UNIT,
    ),
    "counts": (
        lambda x: [
            sp.binom(x, 3),
            sp.binom(5.0, x),
            sp.comb(x + 4, 2),
            sp.comb(3.0, x, repetition=True),
            sp.factorial(x),
            sp.loggamma(x),
        ],
        UNIT,
    ),
    "waves": (
        lambda x: [*sp.fresnel(3 * x), np.real(sp.hankel1(0, x)), np.imag(sp.hankel2(1.5, x))],
        UNIT,
    ),
    "voigt_profile": (
        lambda x: [
            sp.voigt_profile(x, 0.3, 0.4),
            sp.voigt_profile(0.2, x, 0.1),
            sp.voigt_profile(0.2, 0.0, x),
        ],
        UNIT,
    ),
    "exponential integrals": (
        lambda x: [sp.expi(x), sp.exp1(x), *(sp.expn(n, x) for n in (0, 1, 2, 4))],
        ABOVE,
    ),
    "elliptic integrals": (
        lambda m: [
            *(f(m) for f in (sp.ellipk, sp.ellipe, sp.ellipkm1)),
            *(f(m, 0.4) + f(1.1, m) for f in (sp.ellipkinc, sp.ellipeinc)),
        ],
        UNIT,
    ),
    "inverses": (
        lambda p: [
            sp.gammaincinv(1.3, p),
            sp.gammainccinv(1.0, p),
            sp.betaincinv(1.2, 2.0, p),
            sp.stdtrit(3.0, p),
        ],
        UNIT,
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_derivatives(name):
    function, x = FUNCTIONS[name]
    for got, want in zip(ckad.jit(lambda x: function(x))(x), function(x), strict=True):
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=2e-12, atol=1e-13)
    ckad.testing.check_grads(lambda x: function(x), (x,), order=2)


EDGES = np.array([-np.inf, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 30.0, 800.0, np.inf, np.nan])
OF_ONE = "expi exp1 ellipk ellipe ellipkm1 cosm1 exp10 exprel loggamma factorial".split()
OF_TWO = "boxcox rel_entr kl_div huber ellipkinc ellipeinc".split()


@pytest.mark.parametrize("name", OF_ONE + OF_TWO)
def test_special_values(name):
    function = getattr(sp, name)
    xs = np.meshgrid(EDGES, EDGES) if name in OF_TWO else [EDGES]
    with np.errstate(all="ignore"):
        got, want = ckad.jit(lambda *xs: function(*xs))(*xs), function(*xs)
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_series_of_harmonics_on_both_engines(engine):
    def series(c, x):
        even = sum(c[n] * sp.eval_legendre(n, x) for n in range(4))
        return np.sum(even * sp.ellipe(x) * sp.expn(1, x) * np.exp(-sp.spherical_jn(1, x)))

    c = np.array([0.3, 1.0, -0.4, 0.2])
    value = ckad.jit(series, engine=engine)(c, UNIT)
    assert value == pytest.approx(series(c, UNIT), rel=1e-13)
    ckad.testing.check_grads(series, (c, UNIT), order=2, engine=engine)


def test_derivatives_at_zero():
    def slope(f):
        return ckad.grad(f)(0.0)

    assert slope(lambda p: sp.boxcox(2.0, p)) == pytest.approx(np.log(2.0) ** 2 / 2)
    assert slope(lambda x: sp.exprel(x)) == 0.5
    assert slope(lambda m: sp.ellipk(m)) == pytest.approx(np.pi / 8)
    assert np.isnan(slope(ckad.grad(lambda m: sp.ellipk(m))))  # has no formula there


def test_what_has_no_rule():
    for refused in (lambda n: sp.eval_legendre(n, UNIT), lambda x: sp.eval_legendre(-1, x)):
        with pytest.raises(UnsupportedFunctionError, match="traced, below 0 or not whole"):
            ckad.jit(refused)(2.0)
    with pytest.raises(UnsupportedFunctionError, match="exact=True"):
        ckad.jit(lambda n: sp.comb(n, 2, exact=True))(3.0)


@pytest.mark.parametrize("engine", ["native", "vm"])
def test_beta_functions_and_coefficients_between_poles_of_gamma_functions(engine):
    values = np.concatenate([np.arange(-4.0, 5.0), [-0.0], np.arange(-3.5, 3.0)])
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    for function in (sp.beta, sp.binom):
        found = ckad.jit(lambda a, b, f=function: f(a, b), engine=engine)(a, b)
        np.testing.assert_allclose(found, function(a, b), rtol=1e-12)
    assert ckad.jit(lambda x: sp.gammaln(x), engine=engine)(-np.inf) == sp.gammaln(-np.inf)
