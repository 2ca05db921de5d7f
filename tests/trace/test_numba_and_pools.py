"""Classes and functions on rows that Numba compiles; pools of processes and threads."""

from __future__ import annotations

import concurrent.futures
import math
import multiprocessing
import multiprocessing.pool

import numba
import numpy as np
import pytest

import ckad
from ckad.errors import UnsupportedFunctionError


def check(f, *args, tolerance=1e-7):
    """Value to the bit, gradient as central differences."""
    value, gradient = ckad.value_and_grad(f, engine="vm")(*args)
    assert value == f(*args)
    (x,) = args
    for k in range(len(x)):
        h = np.zeros_like(x)
        h[k] = 1e-6
        assert gradient[k] == pytest.approx((f(x + h) - f(x - h)) / 2e-6, rel=tolerance)


@numba.experimental.jitclass([("x", numba.float64[:]), ("k", numba.float64), ("n", numba.int64)])
class Chain:
    def __init__(self, x, k):
        self.x = x
        self.k = k
        self.n = 0

    def step(self, dt):
        force = np.zeros_like(self.x)
        for i in range(self.x.shape[0] - 1):
            force[i] += self.k * (self.x[i + 1] - self.x[i])
            force[i + 1] -= force[i]
        self.x += dt * force
        self.n += 1.0

    def halve(self):
        self.n = self.n / 2

    @property
    def total(self):
        return np.sum(self.x * self.x) * self.n

    @staticmethod
    def squared(x):
        return x * x


@numba.njit
def run(chain, n):
    for _ in range(n):
        chain.step(0.1)
    return chain.total


def test_objects_of_a_class_that_numba_compiles():
    def f(p):
        chain = Chain(np.linspace(0.0, 1.0, 5) ** 2 * p[0], p[1])
        total = run(chain, 7)
        chain.halve()  # cut to an integer, as the field is one
        return total + Chain.squared(p[0]) + chain.n

    check(f, np.array([1.2, 0.7]), tolerance=1e-6)


def test_an_object_that_numba_made_outside_is_refused():
    chain = Chain(np.ones(3), 1.0)
    with pytest.raises(UnsupportedFunctionError, match="Make the object in the function"):
        ckad.grad(lambda dt: chain.step(dt))(0.1)


@numba.guvectorize(["void(float64[:], float64, float64[:])"], "(n),()->(n)")
def filtered(x, a, out):
    s = 0.0
    for i in range(x.shape[0]):
        s = s * a + x[i]
        out[i] = s


@numba.guvectorize("(n),(m)->(),(m)")
def moments(x, c, mean, powers):
    mean[0] = np.sum(x) / x.shape[0]
    for j in range(c.shape[0]):
        powers[j] = c[j] * np.sum(x ** (j + 1))


@numba.guvectorize(["void(int64[:], float64[:])", "void(float64[:], float64[:])"], "(n)->()")
def of_two_classes(x, out):
    out[0] = x[0]


def test_functions_on_rows_that_numba_compiles():
    def f(p):
        rows = np.outer(p, np.arange(1.0, 5.0))  # (2, 4)
        one = filtered(rows, np.array([[0.5], [0.25], [p[0]]]))  # (3, 2, 4)
        into = np.zeros(4)
        same = filtered(rows[0], p[1], out=into) is into
        mean, powers = np.zeros(2), np.zeros((2, 3))
        moments(rows, p[0] * np.ones(3), mean, powers)
        return np.sum(one[2] ** 2) + one.size * same + into[3] + mean @ p + np.sum(powers)

    check(f, np.array([0.6, 0.9]))


def test_functions_on_rows_of_several_signatures_are_refused():
    with pytest.raises(UnsupportedFunctionError, match="several signatures"):
        ckad.grad(lambda x: of_two_classes(x))(np.ones(3))


def pull(x, k=2.0):
    return k * math.sin(x)


def spoil(x):
    x[0] = 7.0
    return x.sum()


def with_processes(p):
    with multiprocessing.Pool(2) as pool:
        found = pool.map(pull, [x * p[0] for x in (0.1, 0.2, 0.3)])
        found += pool.starmap(pull, zip([p[0], p[1]], [p[1], 3.0], strict=True))
        found.append(pool.apply_async(pull, (p[1],), {"k": p[0]}).get())
        found.extend(pool.imap(pull, p))
        rows = np.outer(p, p)
        found += [np.sum(x) for x in pool.map(spoil, rows)]
    pool.join()
    return sum(found) + rows[0, 0]  # the rows are as they were


def with_threads(p):
    pool = multiprocessing.pool.ThreadPool(2)
    rows = [p * 2.0, p * 3.0]
    found = sum(pool.map(spoil, rows))
    pool.close()
    return found + rows[1][0] * p[1]  # threads share them


def with_executors(p):
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        found = list(pool.map(pull, [p[0], p[1]], [1.0, p[0]]))
        futures = [pool.submit(pull, x * p[1]) for x in range(3)]
        for future in concurrent.futures.as_completed(futures):
            found.append(future.result())
    return sum(sorted(found))


@pytest.mark.parametrize("f", [with_processes, with_threads, with_executors])
def test_pools_are_calls_one_after_the_other(f):
    value, gradient = ckad.value_and_grad(f, engine="vm")(np.array([0.6, 0.9]))
    p = np.array([0.6, 0.9])
    # Python's own pool of processes is not started here: forks of threads warn.
    expected = f(p) if f is not with_processes else one_by_one(p)
    assert value == pytest.approx(expected, rel=1e-15)
    true = f if f is not with_processes else one_by_one
    for k in range(2):
        h = 1e-6 * np.eye(2)[k]
        assert gradient[k] == pytest.approx((true(p + h) - true(p - h)) / 2e-6, rel=1e-7)


def one_by_one(p):
    found = [pull(x * p[0]) for x in (0.1, 0.2, 0.3)]
    found += [pull(p[0], p[1]), pull(p[1], 3.0), pull(p[1], p[0]), *[pull(x) for x in p]]
    rows = np.outer(p, p)
    found += [np.sum(spoil(x.copy())) for x in rows]
    return sum(found) + rows[0, 0]


def test_a_pool_that_is_there_already():
    with multiprocessing.pool.ThreadPool(1) as pool:
        check(lambda p: sum(pool.map(pull, [p[0], p[0] * p[1]])), np.array([0.3, 0.4]))
