"""Products with infinite constants and quotients by constants that are zero have no derivative."""

import tracemalloc

import numpy as np
import pytest

import ckad
from ckad.passes.choices import infinite
from ckad.tape.ops import Op

X = np.array([0.7, -1.3, 2.1, 0.4])
SQUARES = np.array([0.0, 1.0, 4.0, 9.0])


def overwritten(x):
    h = np.sin(x) / SQUARES
    h[0] = 0.0
    return np.sum(h**2)


def overwritten_in_a_loop(x):
    for _ in range(4):
        h = x / SQUARES
        h[0] = 0.0
        x = x + 0.1 * h
    return np.sum(x**2)


def spectral(x):
    h = -np.fft.fft(x) / np.fft.fftfreq(4) ** 2
    h[0] = 0.0
    return np.sum(np.real(np.fft.ifft(h)) ** 3)


def beside_what_is_known_late(x):
    depths = np.array([np.inf, x[1] ** 2, x[2], np.inf])
    return np.sum((x * depths)[1:3]) + (x[0] - 0.5 * depths[1])


def added(x):
    return np.sum((x * np.array([np.inf, 2.0, 3.0, -np.inf]) + x**2)[1:3])


def of_two_that_are_known_in_part(x):
    u, v = np.full(4, np.inf), np.full(4, np.inf)
    u[1:], v[:2] = x[1:], x[:2]
    h = u * v
    h[0], h[2:] = x[3], x[2]
    return np.sum(h**2)


def limit(x):
    return np.exp(-(x[0] ** 2) * np.inf) + 1.0 / (1.0 + x[2] / 0.0) + x[3]


PROGRAMS = [overwritten, overwritten_in_a_loop, spectral, beside_what_is_known_late, added]
PROGRAMS += [of_two_that_are_known_in_part, limit]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_infinite_for_all_numbers_nearby(program, engine):
    value, slopes = ckad.value_and_grad(program, engine=engine)(X)
    assert value == pytest.approx(program(X), rel=1e-13)
    for k, step in enumerate(1e-6 * np.eye(4)):
        difference = (program(X + step) - program(X - step)) / 2e-6
        assert slopes[k] == pytest.approx(difference, rel=1e-7, abs=1e-8)
        along = ckad.jvp(program, (X,), (1e6 * step,), engine=engine)[1]
        assert along == pytest.approx(slopes[k], rel=1e-12, abs=1e-14)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_values_are_the_same():
    def f(x):
        return x / SQUARES, x * np.array([1.0, np.inf, -np.inf, 2.0]) + x

    for x in (X, -X, 0.0 * X, X / 0.0, np.full(4, np.nan)):
        for got, expected in zip(ckad.vjp(f, x)[0], f(x), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_what_stops_a_program_stops_no_pass():
    def f(x):
        if x[0] > 9.0:
            raise ValueError("too large")
        return np.sum(x * x)

    np.testing.assert_array_equal(ckad.grad(f, engine="vm")(X), 2.0 * X)


def test_a_tape_without_such_constants_stays():
    tape = ckad.trace(lambda x: np.sum(x / (1.0 + SQUARES) * 2.0 + 0.0))(X)
    assert infinite(tape) is tape


def test_arrays_that_are_read_no_more_are_not_held():
    def f(x):
        z = np.zeros(40_000)
        for k, scale in ((1, "a"), (5, "b"), (7, "c"), *zip(range(10, 40), "d" * 30, strict=True)):
            z[k:] = x[0] if scale == "a" else x[1] * k
        return np.sum(z**2)

    tape = ckad.trace(f)(X)
    assert sum(row.op is Op.UPDATE for row in tape.rows) > 30
    tracemalloc.start()
    infinite(tape)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 6 * 8 * 40_000
