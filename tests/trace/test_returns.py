"""Functions that write into their arguments: ``returns=``."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

pytestmark = pytest.mark.usefixtures("engine")
RNG = np.random.default_rng(3)
U, W = RNG.random(9), RNG.random(9)


def turn(u, n, w):
    for _ in range(n):
        w[1:-1] = 0.5 * u[2:] * u[:-2]
        u, w = w, u


def relax(u):
    for _ in range(6):
        u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u)


@pytest.mark.parametrize("n", [0, 1, 5, 6])
def test_buffers_that_take_turns_are_the_arguments(n):
    u, w = U.copy(), W.copy()
    turn(u, n, w)
    got = ckad.jit(turn, returns=(0, 2))(U, n, W)
    np.testing.assert_allclose(got[0], u, rtol=1e-14)
    np.testing.assert_allclose(got[1], w, rtol=1e-14)


def test_both_modes_agree():
    ct, v = RNG.random(9), RNG.random(9)
    out, pullback = ckad.vjp(lambda u, w: turn(u, 5, w), U, W, returns=1)
    _, tangent = ckad.jvp(lambda u, w: turn(u, 5, w), (U, W), (v, 0 * v), returns=1)
    assert np.dot(pullback(ct)[0], v) == pytest.approx(np.dot(ct, tangent), rel=1e-12)
    assert out.shape == U.shape


def test_the_result_comes_before_the_argument():
    (value, after), gradient = ckad.value_and_grad(relax, has_aux=True, returns=0)(U)
    u = U.copy()
    assert value == pytest.approx(relax(u))
    np.testing.assert_allclose(after, u)
    np.testing.assert_allclose(gradient, ckad.grad(relax)(U))


def test_the_callers_arrays_stay_unless_asked():
    u, w = U.copy(), W.copy()
    ckad.jit(turn, returns=(0, 2))(u, 3, w)
    np.testing.assert_array_equal(u, U)
    got = ckad.jit(turn, returns=(0, 2), in_place=True)(u, 3, w)
    assert got[0] is u
    assert got[1] is w
    plain = U.copy(), W.copy()
    turn(plain[0], 3, plain[1])
    np.testing.assert_allclose(u, plain[0])
    np.testing.assert_allclose(w, plain[1])
    v = U.copy()
    total, own = ckad.jit(relax, returns=0, in_place=True)(v)
    assert own is v
    assert total == pytest.approx(np.sum(v))


def test_a_position_that_is_not_there_is_named():
    with pytest.raises(ckad.errors.TraceError, match="returns=4 names argument 4 of relax"):
        ckad.jit(relax, returns=4)(U)
