"""Gradients called from compiled code: the bits of an ordinary call, in any number of threads."""

import ctypes
import threading

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

import ckad
from ckad.errors import DifferentiationError, EngineError

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="there is no compiled code")


def decay(x, rate, place):
    for _ in range(60):
        x = x - 0.01 * rate * (x - np.roll(x, 1)) * x
    return np.sum(x**2) * x[place]


X, RATE, PLACE = np.linspace(0.1, 1.0, 40), 0.3, np.array(7)


@pytest.fixture(scope="module")
def gradient():
    return ckad.value_and_grad(decay, (0, 1), engine="native", memory="20 KB", schedule="revolve")


@pytest.fixture(scope="module")
def made(gradient):
    return ckad.cfunc(gradient, X, RATE, PLACE)


def by_address(made, x, rate, place, work=None):
    numbers = np.array(rate)
    inputs = (ctypes.c_void_p * 3)(x.ctypes.data, numbers.ctypes.data, place.ctypes.data)
    results = np.empty(()), np.empty(40), np.empty(())
    pointers = (ctypes.c_void_p * 3)(*(r.ctypes.data for r in results))
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(made.address)
    return call(inputs, pointers, work), *results


def test_from_c_in_several_threads(gradient, made):
    value, (by_x, by_rate) = gradient(X, RATE, PLACE)
    work = (ctypes.c_char * made.workspace)()
    calls = (
        by_address(made, X, RATE, PLACE),
        by_address(made, X, RATE, PLACE, ctypes.cast(work, ctypes.c_void_p)),
    )
    for status, *found in calls:
        assert status == 0
        for one, other in zip(found, (value, by_x, by_rate), strict=True):
            np.testing.assert_array_equal(one, other)
    assert by_address(made, X, RATE, np.array(99))[0] == 2
    found = {}
    points = [X * (1 + 0.01 * k) for k in range(4)]

    def work_on(k):
        found[k] = [by_address(made, points[k], RATE, PLACE)[2] for _ in range(50)]

    threads = [threading.Thread(target=work_on, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for k, point in enumerate(points):
        expected = gradient(point, RATE, PLACE)[1][0]
        assert all(np.array_equal(expected, one) for one in found[k])


@pytest.mark.slow
def test_from_numba(gradient, made):
    value, (by_x, by_rate) = gradient(X, RATE, PLACE)

    @numba.njit(nogil=True)
    def several(x, rate, place, n):
        total, last = 0.0, x
        for _ in range(n):
            status, value, by_x, by_rate = made(x, rate, place)
            if status != 0:
                return -1.0, x, by_rate
            total, last = total + value[()], by_x
        return total, last, by_rate

    total, last, slope = several(X, RATE, PLACE, 2)
    assert (total, slope) == (2 * value, by_rate)
    np.testing.assert_array_equal(last, by_x)
    # threads, each with arguments of its own
    found = {}
    points = [X * (1 + 0.01 * k) for k in range(4)]

    def work_on(k):
        found[k] = [several(points[k], RATE, PLACE, 50)[1] for _ in range(4)]

    threads = [threading.Thread(target=work_on, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for k, point in enumerate(points):
        expected = gradient(point, RATE, PLACE)[1][0]
        assert all(np.array_equal(expected, one) for one in found[k])

    # what fails says so by a number
    assert made(X, RATE, np.array(99))[0] == 2
    assert made(X[:5].copy(), RATE, PLACE)[0] == -1
    with pytest.raises(numba.core.errors.TypingError, match="C order"):
        made(X[::2], RATE, PLACE)


@pytest.mark.slow
def test_gradients_alone_and_functions():
    def energy(x):
        return np.sum(x**3), x[0]

    gradient = ckad.cfunc(ckad.grad(energy, has_aux=True), X)
    status, by_x, aux = gradient(X)
    assert (status, aux) == (0, X[0])
    expected, _ = ckad.grad(energy, has_aux=True, engine="native")(X)
    np.testing.assert_array_equal(by_x, expected)
    np.testing.assert_allclose(by_x, 3 * X**2, rtol=1e-15)
    plain = ckad.cfunc(ckad.jit(np.sort), X)
    np.testing.assert_array_equal(plain(X[::-1].copy())[1], X)


def test_what_is_refused(made):
    with pytest.raises(DifferentiationError, match="value_and_grad"):
        ckad.cfunc(decay, X, RATE, PLACE)
    with pytest.raises(DifferentiationError, match="bind what is a constant"):
        ckad.cfunc(ckad.grad(decay), X, RATE, 7)
    with pytest.raises(DifferentiationError, match="recorded"):
        ckad.grad(lambda x: made(x, RATE, PLACE)[1])(X)


@pytest.mark.slow
def test_a_loop_that_nothing_bounds_has_a_place_for_some_steps():
    def shrunk(x):
        while np.sum(x) > 1.0:
            x = x * 0.9
        return np.sum(x)

    made = ckad.cfunc(ckad.grad(shrunk), X)
    assert made(X)[0] == 0
    np.testing.assert_array_equal(made(X)[1], ckad.grad(shrunk)(X))
    assert made(X * 1e9)[0] == 3


def test_what_would_need_python():
    @ckad.primitive
    def doubled(x):
        return 2 * x

    doubled.defvjp(lambda ct, out, x: (2 * ct,))
    with pytest.raises(EngineError, match=r"needs Python.*doubled.* runs in Python"):
        ckad.cfunc(ckad.grad(lambda x: np.sum(doubled(x))), X)


@pytest.mark.slow
def test_no_argument_is_dropped(made):
    with pytest.raises(TypingError):
        made(X, RATE, PLACE, 1.0)
