"""Numbers drawn by traced means, covariances and scales: by NumPy's generators and SciPy's rvs."""

import random

import numpy as np
import pytest
import scipy.stats
from scipy.stats import multivariate_normal

import ckad

from .idioms import check


def by_numpy(mean, spread):
    cov, rng, total = np.array([[1.0 + spread**2, 0.3], [0.3, 2.0]]), np.random.default_rng(1), 0.0
    for method in ("svd", "eigh", "cholesky"):
        total += np.sum(rng.multivariate_normal(mean, cov, size=3, method=method) ** 2)
    np.random.seed(3)
    for _ in range(4):
        total += np.random.multivariate_normal(mean, cov)[1] ** 2
    return total + np.sum(np.random.multivariate_normal([0.0, 1.0], cov, (2, 2)))


def by_scipy(mean, spread):
    np.random.seed(4)
    total = np.sum(multivariate_normal.rvs(mean, np.diag([spread, 0.5]), size=2, random_state=5))
    for _ in range(4):
        total += scipy.stats.norm.rvs(loc=mean[0], scale=spread)
        total += scipy.stats.norm(0, 0.5).rvs() * mean[1] + scipy.stats.uniform.rvs(size=2)[1]
        total += np.sum(multivariate_normal(mean, np.diag([0.2, 0.1])).rvs() ** 2)
        total += scipy.stats.norm.rvs(random_state=7) * spread
    return total + np.sum(scipy.stats.expon.rvs(mean, 0.1)) + scipy.stats.lognorm.rvs(spread)


def permuted(x):
    rng = np.random.default_rng(3)
    return np.sum(rng.permuted(x, axis=1) * np.arange(4)) + np.sum(rng.permuted(x)[0] ** 2) + (
        rng.permuted(x, axis=0)[0, 1]
    )  # fmt: skip


def reactions(rate):
    """Gillespie's algorithm: the rates decide which reaction is next, and when."""
    random.seed(3)
    changes, counts, times = [[-1, 1], [0, -1], [2, 0]], [4, 1], [0.0]
    while times[-1] < 1.0:
        rates = [rate * counts[0], 2.0 * counts[1], 5.0]
        change = random.choices(changes, weights=rates)[0]
        counts = [a + b for a, b in zip(counts, change, strict=True)]
        times.append(times[-1] + random.expovariate(sum(rates)))
    return times[-1] * counts[0] + rate * counts[1]


def chosen_items(x):
    random.seed(4)
    total = 0.0
    for k in range(40):
        _, weight = random.choice([("a", 1.0), ("b", 2.0), ("c", x)])
        total += weight * k + sum(random.choices([1, 2, 3], [x, 2, 3], k=3))
        total += x * sum(random.choices((1.0, x, 3.0), cum_weights=[x, 2, 3], k=2))
    return total


@pytest.mark.parametrize("function", [reactions, chosen_items])
def test_items_by_weights(function):
    check(function, 1.5)


def test_weights_of_other_length_are_refused_as_by_python():
    with pytest.raises(ValueError, match="number of weights"):
        ckad.grad(lambda x: random.choices([1.0, 2.0], [x, x, x])[0] * x)(1.0)


@pytest.mark.parametrize("function", [by_numpy, by_scipy])
def test_means_and_spreads(function):
    check(function, np.array([0.3, -0.2]), 1.3)


def test_lines_are_permuted():
    check(permuted, np.random.default_rng(0).normal(size=(3, 4)))


def test_other_distributions_are_refused_by_name():
    def drawn(a):
        return scipy.stats.gamma.rvs(a)

    with pytest.raises(ckad.errors.UnrecordableError, match=r"gamma\.rvs"):
        ckad.grad(drawn)(1.5)
