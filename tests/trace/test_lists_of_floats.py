"""Deep loops over a few items of lists of floats: recorded once for all, as over Gaussians."""

import math

import numpy as np
import pytest

import ckad


def repulsion(p):
    """Every loop over the Gaussians of a function stands in all others."""
    basis = [[(p[0] * 0.1, 0.44), (0.4, 0.53), (2.2, 0.15)], [(0.2, p[1]), (0.5, 0.6), (1.7, 0.2)]]
    total = 0.0
    for one in basis:
        for a, ca in one:
            for b, cb in basis[0]:
                for c, cc in basis[1]:
                    for d, cd in one:
                        t = (a + b) * (c + d) / (a + b + c + d)
                        f = 1 - t / 3 if t < 0.1 else 0.5 * math.sqrt(math.pi / t) * math.erf(t)
                        total += ca * cb * cc * cd * f
    return total


def changed(p):
    """A list of floats that the loop over it makes longer is run over as Python does."""
    rates, total = [p[0], 2.0 * p[1]], 0.0
    for k, rate in enumerate(rates):
        if k < 3:
            rates.append(rate * 0.5)
        for i in range(3):
            for j in range(5):
                total += np.sin(rate * i) * j
    return total


def with_whole_numbers(p):
    """Whole numbers in tuples stay known: they are places and lengths."""
    x, total = np.linspace(0.0, 1.0, 6) * p[0], 0.0
    for i, weight in [(0, p[1]), (2, 0.5 * p[0]), (4, 2.0)]:
        for _ in range(i + 5):
            for k in range(5):
                total += weight * x[i : i + 2].sum() * k
    return total


@pytest.mark.parametrize("program", [repulsion, changed, with_whole_numbers])
def test_as_in_python(program):
    at, step = np.array([1.3, 0.7]), 1e-6
    value, gradient = ckad.value_and_grad(program, engine="vm")(at)
    assert value == pytest.approx(program(at), rel=1e-13)
    by = [(program(at + step * d) - program(at - step * d)) / (2 * step) for d in np.eye(2)]
    np.testing.assert_allclose(gradient, by, rtol=1e-7)


def test_the_outer_loops_are_recorded_once():
    assert len(str(ckad.trace(repulsion)(np.array([1.3, 0.7]))).splitlines()) < 1500
