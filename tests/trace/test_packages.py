"""Habits of published packages: functions that others call, and what is asked of values."""

import functools
import sys
import warnings

import numba
import numpy as np
import pytest

import ckad

X = np.array([1.0, -2.0, 3.0])


def check(program, x):
    value, gradient = ckad.value_and_grad(program, engine="vm")(x)
    np.testing.assert_allclose(value, program(x), rtol=1e-12)
    direction, h = np.cos(np.arange(np.size(x))), 1e-6
    slope = (program(x + h * direction) - program(x - h * direction)) / (2 * h)
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-6)


@numba.vectorize
def rectified(x, slope):
    if x > 0:
        return slope * x
    return 0


LIMIT = 0.5


@numba.vectorize
def limited(x):
    return rectified(x, 2.0) + rectified(LIMIT, 1.0)


def test_ufuncs_that_numba_makes_are_run_as_their_functions():
    def program(x):
        total = np.sum(limited(x) ** 2) + rectified(x[0], 3.0)
        for _ in range(30):
            total = total + 0.1 * limited(x[2]) + rectified(LIMIT, x[0])
        return total

    check(program, X)
    assert ckad.explain(program, X).anew == ""


@numba.vectorize(["int64(float64)"])
def cut(x):
    return x * 1.7


@numba.vectorize(["float64(float64)"])
def of_floats(x):
    return x // 2 + x


@numba.vectorize(["int64(int64)", "float32(float32)", "float64(float64)"])
def of_some(x):
    return x * x // 2


def test_ufuncs_that_numba_makes_compute_with_the_types_of_their_signatures():
    whole = np.array([3, -3, 5])

    def program(x):
        total = np.sum(cut(x) * x) + np.sum(of_floats(whole) * x) + cut(2.9) * x[0]
        return (
            total
            + np.sum(of_some(whole) * x)
            + of_some(x[1] * 1.3) * x[2]
            + np.sum(of_some(1.1 * x))
        )

    check(program, X)
    single = X.astype(np.float32)
    assert ckad.jit(of_some)(single).dtype == of_some(single).dtype


class System:
    def __init__(self, matrices):
        self.A, self.B = list(map(self.matrix, matrices))

    def matrix(self, x):
        return np.atleast_2d(np.asarray(x, dtype="float"))


def test_methods_partials_and_compiled_functions_that_map_calls():
    def program(x):
        system = System(([[x[0]]], x))
        doubled = map(functools.partial(lambda k, v: k * v, 2.0), x)
        squares = map(numba.njit(lambda v: v * v), x)
        return system.A[0, 0] * sum(doubled) + np.sum(system.B) + sum(squares)

    check(program, X)


def test_a_name_that_an_array_cannot_have():
    def program(x):
        y = x * 2
        try:
            y.name = "doubled"
        except AttributeError:
            y = y + 1
        return np.sum(y)

    check(program, X)
    with pytest.raises(AttributeError, match="has no attribute 'name'"):
        ckad.grad(lambda x: setattr(np.sin(x), "name", "s"))(X)


def test_comparisons_of_numbers_with_none():
    def program(x):
        before, now = None, x[0]
        for _ in range(30):
            step = now**2 - x[2]
            if before == now or now == None:  # noqa: E711
                break
            before, now = now, now - step / (2 * now)
        return now + np.sum(np.where(x != None, x, 0.0))  # noqa: E711

    check(program, X)


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_warnings_in_loops_are_skipped():
    def program(x):
        s = x[0]
        for k in range(30):
            if s > 0.5:
                warnings.warn("large", stacklevel=2)
            s = 0.9 * s + 0.01 * k * x[1]
        return s

    value, gradient = ckad.value_and_grad(program)(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert value == program(X)
    assert gradient[0] == pytest.approx(0.9**30)


def test_constants_of_the_interpreter_and_seeded_streams_are_read_once():
    def program(x):
        stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(7)))
        return np.sum(x) * stream.random() + sys.float_info.min

    check(program, X)
    assert ckad.explain(program, X).anew == ""
