"""Python's integers have no end, those of 64 bits do: right, or the program stops."""

import sys

import numpy as np
import pytest

import ckad
from ckad.errors import RaisedError


def fibonacci(x, n):
    a, b, s = 0, 1, x
    for _ in range(n):
        a, b = b, a + b
        s = s + x * (a % 7)
    return s


def counted_from_the_end(x, n):
    k, s = sys.maxsize - 90, x
    for _ in range(n):
        k += 1
        s = s + x * (k % 5)
    return s


def counted_down(x, n):
    k, s = 90 - sys.maxsize, x
    for i in range(n):
        k -= i % 3
        s = s + x * (k % 5)
    return s


def differences(x, n):
    a, b, s = 1, -1, x
    for _ in range(n // 2):
        a, b = a - b, b - a
        s = s + x * (a % 5)
    return s


def sums_of_lists(x, n):
    k, s = 1, x
    for _ in range(n // 2):
        k = sum([k, k, 1])
        s = s + x * (k % 5)
    return s


def halves_added(x, n):
    k, s = 3, x
    for _ in range(n):
        k = k + (k >> 1)
        s = s + x * (k % 5)
    return s


def powers(x, n):
    s = x
    for k in range(n):
        s = s + x * (pow(k, 10) % 7)
    return s


def counted(x, n):
    k, m, s = 0, 0, x
    while k < n:
        k += 1
        if s > 2.0:
            m = m + 2
        s = s * 1.01 + 0.01 * k - 0.01 * m
    return s


GROWING = [
    fibonacci,
    counted_from_the_end,
    counted_down,
    differences,
    sums_of_lists,
    halves_added,
    powers,
]


@pytest.mark.parametrize("program", [*GROWING, counted], ids=lambda f: f.__name__)
def test_as_in_python_while_64_bits_hold_them(program):
    value, slope = ckad.value_and_grad(program, engine="vm")(1.5, 70)
    assert value == pytest.approx(program(1.5, 70), rel=1e-14)
    h = 1e-6
    differences = (program(1.5 + h, 70) - program(1.5 - h, 70)) / (2 * h)
    assert slope == pytest.approx(differences, rel=1e-6)


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("program", GROWING, ids=lambda f: f.__name__)
def test_the_program_stops_where_they_do_not(program, engine):
    with pytest.raises(RaisedError, match="leaves the 64 bits"):
        ckad.jit(program, engine=engine)(1.5, 200)


def test_who_counts_slowly_is_not_checked():
    assert "wrap" not in str(ckad.trace(counted)(1.5, 70))


def inverses(x):
    s = x
    for i in range(1, 20):
        s = s + x * i**-1 + x * (i + 1) ** -2
    return s


def test_negative_powers_of_integers_are_floats():
    value, slope = ckad.value_and_grad(inverses)(1.5)
    np.testing.assert_allclose([value, slope], [inverses(1.5), inverses(1.5) / 1.5], rtol=1e-14)


IMAGE = np.array([250, 3, 128], np.uint8)


def short_and_traced(x):
    return x * (IMAGE + int(100 * x)).sum()


def short_range(x):
    return x * (np.arange(20, dtype=np.uint8) ** 2).astype(float).sum()


def short_in_a_loop(x):
    image = IMAGE
    for _ in range(10):
        image = image + np.uint8(100)
        x = 0.9 * x
    return x * image.astype(float).sum()


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_traced_number_of_python_among_short_integers_has_to_be_in_their_range(engine):
    run = ckad.jit(short_and_traced, engine=engine)
    assert run(0.7) == pytest.approx(short_and_traced(0.7), rel=1e-14)
    with pytest.raises(RaisedError, match=r"test_python_integers.py:\d+: a Python integer is out"):
        run(2.57)


@pytest.mark.parametrize("program", [short_range, short_in_a_loop])
def test_short_integers_wrap_around(program):
    assert ckad.jit(program, engine="vm")(0.7) == pytest.approx(program(0.7), rel=1e-14)


def short_and_real(x):
    total = (IMAGE * x).sum() + (IMAGE.astype(float) / 255 * x).sum()
    for k in range(5):
        total = 0.9 * total + 0.01 * x * IMAGE[k % 3]
    return total


def test_short_integers_beside_real_numbers():
    value, slope = ckad.value_and_grad(short_and_real, engine="vm")(0.7)
    assert value == pytest.approx(short_and_real(0.7), rel=1e-14)
    assert slope == pytest.approx(short_and_real(1.7) - short_and_real(0.7), rel=1e-12)
