"""Where no dependence is found, there is no derivative; of some kinds of programs it is exact."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

import ckad

rng = np.random.default_rng(14)
N = 12
POINT = rng.uniform(0.2, 0.9, N)
SPARSE = sp.random(N, N, 0.2, random_state=3, format="csr") + sp.eye(N, format="csr")
DENSE = np.triu(np.ones((N, N)))
INDEX = np.array([3, 3, 0, 7, 11])


def slices(x):
    y = np.zeros_like(x)
    y[1:-1] = x[2:] * x[:-2]
    y[::3] += x[::3] ** 2
    return y


def rolled_rows(x):
    u = x.reshape(3, 4)
    return (np.roll(u, 1, 0) * u + np.roll(u, -1, 1)).T[:, ::-1]


def picked(x):
    y = np.zeros(N + 2)
    y[INDEX] += x[INDEX] ** 2
    np.add.at(y, INDEX + 1, x[:5])
    return np.concatenate([y, x[INDEX]])


def chosen(x):
    return np.where(np.arange(N) % 2 == 0, x, np.where(x > 0.5, np.roll(x, 1), x[0]))


def products(x):
    return np.concatenate([DENSE @ x, SPARSE @ x, x @ DENSE, (SPARSE.T @ x) * x])


def steps(x):
    for k in range(4):
        x = x + 0.1 * np.roll(x, k)
    return x


def rows_of_steps(x):
    out = np.zeros((5, N))
    for k in range(5):
        out[k] = x * (k + 1) + x[k]
    return out


def long_loop(x):
    left, right = x[:4], x[4:]
    for _ in range(3000):
        left = left + 0.0001 * np.roll(left, 1) * left
    return np.concatenate([left, right**2])


def leaves_early(x):
    n = 0
    while n < 4 and x[0] < 0.8:
        x = x + 0.1 * np.roll(x, 1)
        n += 1
    return x


def branch(x):
    return np.roll(x, 1) if x[0] > 0.5 else x * 2.0


def sums(x):
    u = x.reshape(4, 3)
    return np.concatenate([u.sum(0), u.max(1), np.cumsum(u, 1).ravel(), [np.prod(x[:3])]])


def run_time_index(x):
    k = int(np.argmax(x) % 3)
    return x[:4] * x[k]


def solved(x):
    return np.concatenate([spsolve(SPARSE.tocsc(), x), x[2:4]])


EXACT = [slices, rolled_rows, picked, products, steps, rows_of_steps, long_loop]
TOO_LARGE = [sums, chosen, leaves_early, branch, run_time_index, solved]


@pytest.mark.parametrize("fun", EXACT + TOO_LARGE)
def test_no_derivative_is_left_out(fun):
    dense = ckad.jacobian(fun, engine="vm")(POINT).reshape(-1, N)
    found = ckad.sparsity(fun)(POINT).matrix.toarray()
    assert found.shape == dense.shape
    assert not np.any(dense[~found])
    if fun in EXACT:
        assert found.sum() == np.count_nonzero(dense)


def test_indices_that_are_arguments_are_known_by_their_numbers():
    def picked(x, index):
        return x[index] ** 2

    for index in (np.array([1, 1, 4]), np.array([0, 5, 2])):
        found = ckad.jacobian(picked, sparse=True, engine="vm")(POINT, index)
        np.testing.assert_array_equal(found.indices, index)
        np.testing.assert_array_equal(found.data, 2 * POINT[index])


def test_the_rows_that_take_all_are_few():
    """A sum that all elements read is a column in every row, and nothing else."""

    def mean_field(x):
        return np.roll(x, 1) * x + np.sum(x[:2])

    assert ckad.sparsity(mean_field)(POINT).nnz == 2 * N + 2 * N - 4
