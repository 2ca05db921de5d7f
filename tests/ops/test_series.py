"""Series of `numpy.polynomial`, and fits to elements under masks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy import polynomial as series
from numpy.polynomial import Chebyshev, Laguerre, Legendre, Polynomial

import ckad
from ckad.errors import RaisedError, TracedIndexError, TracedShapeError, UnsupportedFunctionError
from ckad.testing import check_grads

X = np.linspace(0.1, 1.0, 8)
FAMILIES = {
    "poly": series.polynomial,
    "cheb": series.chebyshev,
    "leg": series.legendre,
    "lag": series.laguerre,
    "herm": series.hermite,
    "herme": series.hermite_e,
}


@pytest.mark.parametrize("name", FAMILIES)
def test_functions_of_each_family_are_numpys(name):
    module = FAMILIES[name]
    val, vander, fit, der, int_ = (
        getattr(module, name + end) for end in ("val", "vander", "fit", "der", "int")
    )

    def program(a):
        c = np.array([1.0, a, 0.3, -0.2])
        total = np.sum(val(a * X, [1.0, 2.0, 3.0])) + np.sum(val(X, c)) + np.sum(vander(a * X, 3))
        columns = np.stack([c, c**2], 1)
        total += np.sum(val(X, columns) * [[1.0], [2.0]]) + np.sum(
            val(X[:2], columns, tensor=False)
        )
        total += np.sum(fit(X, np.sin(a * X), 2) ** 2)
        total += np.sum(fit(a * X, np.stack([X, a * X**2], 1), 1, w=1 + X))
        return total + np.sum(der(c, 2, scl=0.5)) + np.sum(int_(c, 2, k=[1.0, a], lbnd=-1, scl=2))

    found = ckad.jit(program)(1.2)
    np.testing.assert_allclose(found, program(1.2), rtol=1e-12)
    check_grads(program, (1.2,))


def objects(a):
    x, y = X * a, np.exp(-a * X)
    p, q = Polynomial.fit(x, y, 3), Polynomial([1.0, a, -0.4])
    total = np.sum(p(x + 0.01)) + np.sum(p.deriv()(x)) + p.integ(lbnd=0.2)(0.5) + p.degree()
    total += np.sum(p.convert().coef * [1.0, 2.0, 3.0, 4.0]) + np.sum((q * q - 2 * q + 1 / a)(X))
    total += np.sum(q.roots().real * [1.0, 2.0]) + Polynomial([1.0, 2.0])(a) + sum(q) + (q**2)(0.5)
    for _ in range(5):
        q = q * 0.5 + Polynomial([0.0, 1.0, 0.1])
    return total + np.sum(q.coef**2)


def other_families(a):
    y = np.exp(-a * X)
    total = sum(np.sum(kind.fit(X, y, 3)(X + 0.01)) for kind in (Chebyshev, Legendre, Laguerre))
    total += np.sum(Chebyshev.fit(X, y, 4, domain=[0.0, 2.0]).convert(kind=Polynomial).coef[:2])
    return total + Legendre.basis(3)(a) + np.sum(Chebyshev([1.0, a, 2.0]).deriv().coef)


def lists_of_sides(a):
    """Longstaff and Schwartz, by three ways to fit."""
    steps = np.exp(a * np.sin(np.arange(90.0)).reshape(6, 15))
    value = np.maximum(1.1 - steps[-1], 0)
    for t in range(4, 0, -1):
        x, value = steps[t], value * 0.99
        inside = x < 1.1
        places = np.nonzero(inside)[0]
        line = np.polyfit(x[inside], value[inside], 1)
        A = np.vstack([np.ones(len(x[places])), x[places]]).T
        beta = np.linalg.lstsq(A, value[places], rcond=None)[0]
        curve = Polynomial.fit(x[inside], value[inside], 1)
        kept = (np.polyval(line, x) + beta[0] + beta[1] * x + curve(x)) / 3
        now = inside & (1.1 - x > kept)
        value[now] = (1.1 - x)[now]
    return np.sum(value)


@pytest.mark.parametrize("program", [objects, other_families, lists_of_sides])
def test_series_as_objects_and_fits_under_masks(program):
    np.testing.assert_allclose(ckad.jit(program)(0.9), program(0.9), rtol=1e-11)
    check_grads(program, (0.9,))


def test_parts_of_slices_are_fitted_where_they_lie():
    def program(a):
        x = X * a
        k = np.searchsorted(x, 0.6)
        c, gaps, rank, _ = np.linalg.lstsq(np.vander(x[:k], 2), x[:k] ** 3)
        return np.sum(c) + gaps[0] + rank + np.sum(np.polyfit(x[1:k], x[: k - 1] ** 2, 1))

    np.testing.assert_allclose(ckad.jit(program)(0.9), program(0.9), rtol=1e-11)
    check_grads(program, (0.9,))


@pytest.mark.parametrize(
    ("below", "error"), [(-1.0, TracedIndexError), (0.7, (TracedShapeError, RaisedError))]
)
def test_fits_of_no_elements_or_of_others_stop_the_program(below, error):
    def program(a):
        x = X * a
        return np.sum(np.polyfit(x[x < below], x[x < min(below, 0.5)], 1))

    with pytest.raises(error):
        ckad.jit(program)(1.0)


def test_what_series_of_traced_values_do_not_have_is_refused():
    for program in (
        lambda a: Polynomial([a, 1.0]).truncate(1),
        lambda a: Chebyshev([1.0, a]).roots(),
    ):
        with pytest.raises(UnsupportedFunctionError, match=r"numpy|Polynomial|series"):
            ckad.jit(program)(1.0)
