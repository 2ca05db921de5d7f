"""SciPy's integrals in programs that are recorded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

import ckad
from ckad.errors import UnrecordableError
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
