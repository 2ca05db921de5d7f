"""Shapes that depend on numbers which arguments decide: recorded for those of the call."""

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import spsolve

import ckad
from ckad.errors import CkadError, ConcreteValueError, RaisedError

from .idioms import check, check_number


def decay(dt, end):
    n = int(end / dt)
    x = np.zeros(n + 1)
    times = np.arange(0.0, end, dt)
    x[0] = 1.0
    for i in range(n):
        x[i + 1] = x[i] - dt * x[i]
    return np.sum(x**2) + np.sum(times**2) + np.sum(np.linspace(0.0, end, n) * dt)


def test_lengths_are_those_of_the_call():
    check(decay, 0.07, 3.02)


def test_a_recording_is_used_again_for_the_same_numbers_alone():
    gradient = ckad.value_and_grad(decay, engine="vm")
    for dt in (0.1, 0.1, 0.07, 0.1):
        value, slope = gradient(dt, 3.02)
        assert value == pytest.approx(decay(dt, 3.02), rel=1e-14)
        difference = (decay(dt + 1e-7, 3.02) - decay(dt - 1e-7, 3.02)) / 2e-7
        assert slope == pytest.approx(difference, rel=1e-6)
    assert ckad.explain(decay, 0.1, 3.02).anew == ""


def test_what_was_recorded_for_other_numbers_stops():
    both = ckad.vmap(decay)(np.array([0.1, 0.1]), np.array([3.02, 3.02]))
    np.testing.assert_allclose(both, decay(0.1, 3.02), rtol=1e-14)
    with pytest.raises(RaisedError, match="recorded for other numbers"):
        ckad.vmap(decay)(np.array([0.1, 0.12]), np.array([3.02, 3.02]))


def test_within_another_recording_numbers_stay_unknown():
    with pytest.raises(ConcreteValueError, match="the length of a new array"):
        ckad.grad(lambda dt: ckad.grad(decay)(dt, 3.02))(0.1)


def test_lengths_that_elements_decide():
    def program(u):
        n = int(np.ceil(np.max(np.abs(u))))
        return np.sum(np.outer(u, np.ones(n)).reshape(n, -1) ** 2)

    check(program, np.array([0.4, -2.5, 1.0]))


def test_an_array_that_is_changed_in_place_is_another_one():
    def program(u):
        n = int(np.ceil(np.max(u)))
        return n * np.sum(np.outer(u, np.ones(n)))

    u = np.array([0.4, 2.5])
    gradient = ckad.value_and_grad(program, engine="vm")
    for largest in (2.5, 3.5, 0.9):
        u[1] = largest
        value, slopes = gradient(u)
        n = int(np.ceil(largest))
        assert value == pytest.approx(program(u), rel=1e-14)
        np.testing.assert_allclose(slopes, n * n, rtol=1e-14)


def test_a_shape_that_one_element_decides():
    def program(x):
        return np.sum(np.prod(x.reshape(int(abs(x[0])) + 1, -1), axis=0))

    for first in (0.5, 1.5, 2.5):
        check(program, np.array([first, *np.linspace(0.2, 0.9, 5)]))


def test_what_a_loop_has_counted():
    def program(rate):
        x, k = np.zeros(40), 0
        v = 1.0
        for _ in range(40):
            x[k] = v
            v = v * rate
            k += 1
            if v < 0.1:
                break
        kept = np.resize(x, k)
        return np.mean(kept) + k * kept[-1]

    check_number(program, 0.8)


def test_the_numbers_of_two_arguments_of_which_one_holds_integers():
    def program(scale, counts):
        n = int(np.sum(counts)) + int(scale * 2.0)
        return np.sum(np.full(n, scale) ** 2)

    value, slope = ckad.value_and_grad(program, engine="vm")(1.7, np.array([2, 3]))
    assert value == pytest.approx(8 * 1.7**2, rel=1e-14)
    assert slope == pytest.approx(16 * 1.7, rel=1e-14)


def test_arrays_of_steps_hold_numpys_numbers():
    at, end = 0.3, 2.35

    def program(step):
        return np.arange(0.1, end, step)

    np.testing.assert_array_equal(ckad.jit(program, engine="vm")(at), program(at))


def test_a_shape_that_an_array_with_nan_decides():
    def program(u):
        return np.sum(np.nanmax(u.reshape(int(np.sum(u > 0.5)), -1), axis=1) ** 2)

    gradient = ckad.value_and_grad(program, engine="vm")
    u = np.array([0.2, np.nan, 0.7, 0.9])
    for last, expected in ((0.9, [0.4, 0, 0, 1.8]), (0.4, [0, 0, 1.4, 0])):
        u[3] = last
        value, slopes = gradient(u)
        assert value == pytest.approx(program(u), rel=1e-14)
        np.testing.assert_allclose(slopes, expected, rtol=1e-14)
    with pytest.raises(RaisedError, match="recorded for other numbers"):
        ckad.vmap(program)(np.array([[0.2, np.nan, 0.7, 0.4], [0.2, 0.1, 0.7, 0.4]]))


def test_lists_and_sparse_matrices_are_as_long_as_the_arguments_say():
    def delayed(lag, rate):
        n = int(np.ceil(lag))
        weights = [0] * n
        for t in range(1, n + 1):
            weights[t - 1] = min(t / lag, 1.0) - (t - 1) / lag
        main = np.ones(n + 1)
        main[:] = 1.0 + rate
        banded = scipy.sparse.diags(
            diagonals=[main, -rate * np.ones(n)], offsets=[0, 1], shape=(n + 1, n + 1), format="csr"
        )
        other = scipy.sparse.spdiags(np.array([main]), np.array([0]), n + 1, n + 1).tocsr()
        return (
            np.sum(spsolve(banded + 0.1 * other, np.ones(n + 1)))
            + sum(w**2 for w in weights) * rate
        )

    check(delayed, 6.4, 0.3)


def test_what_is_refused_for_the_numbers_of_the_call_is_named():
    def sorted_out(dt, x):
        times = np.linspace(0.0, 1.0, round(0.5 / dt))
        return np.sum(np.unique(x * times))

    with pytest.raises(CkadError, match=r"np\.unique|unique\(x"):
        ckad.grad(sorted_out)(0.1, 2.0)
