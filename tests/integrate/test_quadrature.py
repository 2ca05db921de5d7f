"""SciPy's integrals in programs that are recorded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import dblquad, fixed_quad, nquad, quad, quad_vec

import ckad
from ckad.errors import RaisedError, UnrecordableError
from ckad.testing import check_grads


def integrals(k):
    """Both kinds of ends, an interval that is halved, a traced end, and one of known numbers."""

    def bell(x, width):
        return np.exp(-((x / width) ** 2))

    known = quad(math.cos, 0.0, 1.0)[0]
    far = quad(bell, k, -np.inf, args=(k,))[0]
    fast = quad(lambda x: math.cos(30.0 * x) * math.exp(-k * x), 0.0, 3.0)[0]
    return known + far + fast


def test_quad_is_scipys():
    value, gradient = ckad.value_and_grad(integrals, engine="vm")(0.7)
    assert value == pytest.approx(integrals(0.7), rel=1e-11)
    h = 1e-5
    assert gradient == pytest.approx((integrals(0.7 + h) - integrals(0.7 - h)) / (2 * h), rel=1e-7)


def test_dblquad():
    def moment(k):
        return dblquad(lambda y, x: x * y**2 * k, 0.0, 2.0, lambda x: 0.0, lambda x: k)[0]

    value, gradient = ckad.value_and_grad(moment, engine="vm")(0.7)
    assert value == pytest.approx(2.0 / 3.0 * 0.7**4, rel=1e-12)
    assert gradient == pytest.approx(8.0 / 3.0 * 0.7**3, rel=1e-12)


@pytest.mark.slow
def test_second_derivatives_are_those_of_the_sum():
    check_grads(lambda k: quad(lambda x: np.exp(-k * x), 0.0, k)[0], (0.7,), order=2)


def test_weights_are_refused():
    with pytest.raises(UnrecordableError, match="weight="):
        ckad.grad(lambda k: quad(lambda x: k * x, 0.0, 1.0, weight="cos", wvar=3.0)[0])(0.7)


def test_an_argument_that_is_no_tuple_is_one():
    def area(a):
        one = quad(lambda x, b: np.sin(b * x), 0.0, 2.0, args=a)[0]
        return one + quad(lambda x, b: b[1] * x + b[0], 0.0, 2.0, args=[1.0, a])[0]

    value, slope = ckad.value_and_grad(area, engine="vm")(0.9)
    assert value == pytest.approx(area(0.9), rel=1e-12)
    assert slope == pytest.approx((area(0.9 + 1e-5) - area(0.9 - 1e-5)) / 2e-5, rel=1e-7)


def over_several_axes(k):
    """Ranges that depend on the axes outside of them, arguments, options of one axis."""
    plain = nquad(lambda x, y: np.exp(-k * x * y), [[0.0, 1.0], [0.0, k]])[0]
    wedge = nquad(
        lambda x, y, z, a: a * x * y**2 + z,
        [lambda y, z, a: (0.0, a * y * z), lambda z, a: (0.0, z), (0.0, 1.0)],
        args=(k,), opts=[{"epsabs": 1e-10}, {}, {"limit": 70}],
    )[0]  # fmt: skip
    return plain + wedge


def of_arrays(k):
    """An interval that is halved, ends at infinity, values of two axes, arguments."""
    peaks = quad_vec(lambda x: 1.0 / ((x - np.array([0.2, 0.7])) ** 2 + 0.01 * k), 0.0, k + 1.0)[0]
    bells, error = quad_vec(lambda x, a: np.exp(-a * x * x) * np.eye(2), -np.inf, np.inf, args=k)
    tail = quad_vec(lambda x: np.exp(-x * np.array([k, 1.0])), np.inf, 1.0, norm="max")[0]
    return peaks @ [1.0, k] + bells[1, 1] + bells[0, 1] + 0.0 * error + tail[0] * tail[1]


def by_known_nodes(k):
    return (
        fixed_quad(lambda x, a: np.sin(a * x), k, 2.0, args=(k,), n=7)[0]
        + fixed_quad(lambda x: np.stack([x**3, k * x]), 0.0, 1.0)[0].sum()
    )


def by_shooting(k):
    """A boundary value problem by the root of what is missed at the other end."""

    def missed(slope):
        rates = lambda t, y: [y[1], -k * np.exp(y[0])]  # noqa: E731
        return ckad.integrate.solve_ivp(
            rates, (0.0, 1.0), np.append(0.0, slope), rtol=1e-10, atol=1e-10
        ).y[:1, -1]

    return ckad.optimize.root(missed, np.array([0.5]), tol=1e-10).x[0]


def between_points(k):
    """A jump that moves with k, and one end before the other."""

    def steep(x):
        return x * x if x < k else 2.0 * k * x

    value, _, _ = quad(steep, 3.0, -k, points=[7.0, k, 0.0], full_output=1)
    return value


@pytest.mark.parametrize(
    "program",
    [over_several_axes, of_arrays, by_known_nodes, by_shooting, between_points],
    ids=lambda f: f.__name__,
)
def test_other_integrals_are_scipys(program):
    value, slope = ckad.value_and_grad(program, engine="vm")(0.7)
    assert value == pytest.approx(program(0.7), rel=1e-9)
    assert slope == pytest.approx((program(0.7 + 1e-4) - program(0.7 - 1e-4)) / 2e-4, rel=1e-6)


def test_points_need_ends_that_are_finite():
    with pytest.raises(ValueError, match="break points"):
        ckad.jit(lambda k: quad(lambda x: k, 0.0, np.inf, points=[1.0])[0])(0.7)


def test_what_finds_the_length_of_its_result_is_refused():
    with pytest.raises(UnrecordableError, match="points= is not recorded"):
        ckad.grad(lambda k: quad_vec(lambda x: x * k, 0.0, 1.0, points=[0.5])[0])(0.7)
    with pytest.raises(UnrecordableError, match="weight= is not recorded"):
        ckad.grad(lambda k: nquad(lambda x: x * k, [(0, 1)], opts={"weight": "cos"})[0])(0.7)


def test_more_intervals_than_there_is_room_for_stop_the_program():
    def noisy(k):
        return quad_vec(lambda x: np.sin(np.floor(x * 1e5) * k), 0.0, 1.0)[0]

    with pytest.raises(RaisedError, match="converged"):
        ckad.jit(noisy)(0.7)
