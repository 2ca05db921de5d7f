"""Python's ``statistics``, and ``np.broadcast``, of traced numbers."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

import ckad
from ckad.errors import CkadError

from .idioms import check_number

SAMPLES = {
    "mean": statistics.mean,
    "fmean": statistics.fmean,
    "weighted": lambda data: statistics.fmean(data, [1.0, 2.0, 0.5, data[0]]),
    "geometric_mean": statistics.geometric_mean,
    "variance": statistics.variance,
    "variance about": lambda data: statistics.variance(data, data[0]),
    "pvariance": statistics.pvariance,
    "stdev": statistics.stdev,
    "stdev about": lambda data: statistics.stdev(data, xbar=1.5),
    "pstdev": statistics.pstdev,
    "pstdev about": lambda data: statistics.pstdev(data, mu=1.5),
    "median": statistics.median,
    "median_low": statistics.median_low,
    "median_high": statistics.median_high,
    "median of three": lambda data: statistics.median(data[1:]),
    "low of three": lambda data: statistics.median_low(data[1:]),
    "high of three": lambda data: statistics.median_high(data[1:]),
    "of a generator": lambda data: statistics.mean(x * x for x in data),
    "of an array": lambda data: statistics.stdev(np.array(data)),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_of_traced_numbers(name):
    def of_number(x):
        return SAMPLES[name]([x, x * x, 3.0, 2 * x])

    check_number(of_number, 1.3, rel=1e-12)


def test_samples_are_numbers_of_python():
    def single(x):
        return np.ones(2, np.float32) * statistics.mean([x, 2.0])

    assert ckad.jit(single)(1.3).dtype == single(1.3).dtype == np.float32


def test_samples_in_a_loop():
    def means(x):
        total = 0.0
        for k in range(20):
            total += statistics.mean([x, x * k, 1.0])
        return total

    check_number(means, 0.7, rel=1e-12)


def test_too_few_numbers():
    with pytest.raises((statistics.StatisticsError, CkadError), match="at least 2"):
        ckad.grad(lambda x: statistics.stdev([x]))(1.0)


def of_shapes(x):
    together = np.broadcast(np.arange(3.0) * x, np.ones((2, 1)) * x)
    out = np.empty(together.shape)
    out.flat = [u + v * u for u, v in together]
    return np.sum(out**2) + together.size + together.nd + together.numiter


def by_elements(x):
    total = 0.0
    for k, (u, v) in enumerate(np.broadcast(np.arange(3.0) * x, x)):
        total = total + k * u * v
    return total


@pytest.mark.parametrize("function", [of_shapes, by_elements])
def test_arrays_spread_to_one_shape(function):
    check_number(function, 1.3, rel=1e-14)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="broadcast"):
        ckad.grad(lambda x: np.broadcast(np.ones(3) * x, np.ones(2)).size * x)(1.0)
