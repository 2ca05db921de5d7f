"""What published programs check on the way: numpy.testing, ragged arrays, names of dtypes."""

from __future__ import annotations

from inspect import unwrap

import numpy as np
import pytest

import ckad
from ckad.errors import RaisedError, UnsupportedFunctionError

from .idioms import check

#: NumPy's own: those that tests call are counted.
assert_allclose = unwrap(np.testing.assert_allclose)
assert_almost_equal = unwrap(np.testing.assert_almost_equal)
assert_array_almost_equal = unwrap(np.testing.assert_array_almost_equal)
assert_array_equal = unwrap(np.testing.assert_array_equal)
assert_equal = unwrap(np.testing.assert_equal)


def normalised(x, rate):
    q, total = np.array([x, 1.0 - x]), 0.0
    for k in range(6):
        q = q * np.array([1.0, rate])
        q = q / np.sum(q)
        assert_allclose(np.sum(q), 1, err_msg=f"{np.sum(q)}")
        assert_allclose(q, q * 1.0, 1e-7)
        assert_almost_equal(np.sum(q), 1)
        assert_array_equal(q, q)
        assert_equal(k, k)
        assert_array_almost_equal(q, [q[0], q[1]], decimal=5)
        total = total + q[0] * x
    return total


def test_what_holds_is_checked_and_goes_on():
    check(normalised, 0.7, 0.9)


@pytest.mark.parametrize(
    "assertion",
    [
        lambda s, want: assert_allclose(s, want, 1e-3),
        lambda s, want: assert_almost_equal(s, want, decimal=3),
        assert_array_equal,
        assert_equal,
    ],
)
def test_what_does_not_hold_stops_the_program(assertion):
    def summed(x):
        total = 0.0
        for k in range(6):
            total = total + x
            assertion(total, (k + 1) * 0.5)
        return total

    assert ckad.value_and_grad(summed)(0.5) == (summed(0.5), 6.0)
    with pytest.raises(AssertionError):
        summed(0.51)
    with pytest.raises(RaisedError, match="step 0"):
        ckad.grad(summed)(0.51)


def test_arrays_of_lists_of_several_lengths_are_numpys():
    def weighted(x):
        total = 0.0
        for row in np.array([[1, 2], [3]], dtype=object):
            for k in row:
                total = total + k * x
        return total

    assert ckad.value_and_grad(weighted)(0.7) == pytest.approx((weighted(0.7), 6.0))
    with pytest.raises(UnsupportedFunctionError, match="lists of several lengths"):
        ckad.grad(lambda x: np.array([[x, 2.0], [3.0]], dtype=object)[0][0])(0.7)


@pytest.mark.parametrize("name", ["<i4", "intc", "short", "byte", "<u2"])
def test_short_integers_by_other_names(name):
    def counted(x):
        found = np.zeros((2, 3), dtype=name)
        for i in range(2):
            for j in range(3):
                found[i, j] = 40 * (i + j)
        return x * np.sum(found[1] * np.ones(3, name)) * (found.dtype.itemsize + 1)

    assert ckad.value_and_grad(counted)(0.7)[0] == pytest.approx(counted(0.7))
