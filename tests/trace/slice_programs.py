"""Loops over slices of run-time length, on axes long enough that only the slices are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: Axes that end with a whole vector of lanes, and within one.
LENGTHS = (72, 75)
PROGRAMS: list[Callable[..., Any]] = []
_make: dict[str, Callable[[int], tuple[Any, ...]]] = {}


def arguments(function: Callable[..., Any], n: int) -> tuple[Any, ...]:
    return _make[function.__name__](n)


def program(make: Callable[[int], tuple[Any, ...]]) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        PROGRAMS.append(function)
        _make[function.__name__] = make
        return function

    return register


def _drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(0.2, 1.0, shape)


def _matrix(n: int) -> tuple[np.ndarray, np.ndarray]:
    return _drawn(n, n) / n + 2 * np.eye(n), _drawn(n)


def sparse(n: int, rows: int = 30) -> tuple[np.ndarray, ...]:
    """A sparse matrix, some of whose rows are empty, with n numbers."""
    ends = np.sort(np.random.default_rng(n).integers(0, n + 1, rows - 2))
    starts = np.concatenate([[0], ends[:3], ends[2:], [n]])
    columns = np.random.default_rng(n + 1).integers(0, 40, n)
    return _drawn(n), _drawn(40), columns, starts


# --- rows and triangles ------------------------------------------------------------------------


@program(_matrix)
def triangular_solve(L, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return np.sum(x**2)


@program(_matrix)
def back_substitution(U, b):
    x = b.copy()
    for i in range(len(b) - 1, -1, -1):
        x[i] = (x[i] - np.dot(U[i, i + 1 :], x[i + 1 :])) / U[i, i]
    return np.sum(np.sin(x))


@program(_matrix)
def solve_by_columns(L, b):
    """Each unknown is taken out of the rest."""
    x = b.copy()
    for j in range(len(b)):
        x[j] /= L[j, j]
        x[j + 1 :] -= x[j] * L[j + 1 :, j]
    return np.sum(x * x)


@program(lambda n: (_drawn(n), _drawn(n)))
def rows_of_packed_storage(packed, x):
    """Row i of a triangle stored one after the other."""
    total, start = 0.0, 0
    for i in range(11):
        total += np.exp(-(packed[start : start + i + 1] @ x[: i + 1]))
        start += i + 1
    return total


@program(sparse)
def sparse_rows(data, x, columns, starts):
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        cols = columns[starts[i] : starts[i + 1]]
        y[i] = data[starts[i] : starts[i + 1]] @ x[cols]
    return np.sum(y**3)


@program(sparse)
def sparse_rows_transposed(data, x, columns, starts):
    y = np.zeros_like(x)
    for i in range(len(starts) - 1):
        row = slice(starts[i], starts[i + 1])
        np.add.at(y, columns[row], data[row] * np.sqrt(x[i % 7]))
    return y @ y


@program(sparse)
def averages_of_segments(data, x, columns, starts):
    total = 0.0
    for i in range(len(starts) - 1):
        segment = data[starts[i] : starts[i + 1]]
        if len(segment) > 0:
            total += np.sum((segment - np.mean(segment)) ** 2) * x[i]
    return total


@program(sparse)
def segments_scaled_in_place(data, x, columns, starts):
    scaled = data.copy()
    for i in range(len(starts) - 1):
        scaled[starts[i] : starts[i + 1]] *= x[i] + np.sum(scaled[starts[i] : starts[i + 1]])
    return np.sum(scaled**2)


# --- parts of matrices -------------------------------------------------------------------------


@program(lambda n: (_drawn(9, n),))
def covariances(data):
    n = data.shape[1]
    data = data - np.mean(data, axis=0)
    cov = np.zeros((n, n))
    for i in range(n):
        cov[i:, i] = cov[i, i:] = data[:, i] @ data[:, i:] / 8.0
    return np.sum(cov**2)


@program(lambda n: (_drawn(n, n) / n + 3 * np.eye(n),))
def cholesky_by_columns(A):
    A = A + A.T
    n = len(A)
    for j in range(n):
        A[j, j] = np.sqrt(A[j, j] - A[j, :j] @ A[j, :j])
        A[j + 1 :, j] = (A[j + 1 :, j] - A[j + 1 :, :j] @ A[j, :j]) / A[j, j]
    return np.sum(np.tril(A) ** 2)


@program(lambda n: (_drawn(n, 9) + np.eye(n, 9),))
def gram_schmidt(A):
    Q = A.copy()
    for k in range(Q.shape[1]):
        Q[:, k] /= np.sqrt(Q[:, k] @ Q[:, k])
        r = Q[:, k] @ Q[:, k + 1 :]
        Q[:, k + 1 :] -= np.outer(Q[:, k], r)
    return np.sum(Q**3)


@program(lambda n: (_drawn(n, n), _drawn(n, 10)))
def symmetric_rank_update(C, A):
    C = C.copy()
    for i in range(len(C)):
        C[i, : i + 1] *= 1.2
        C[i, : i + 1] += 1.5 * (A[: i + 1] @ A[i])
    return np.sum(C * C)


@program(lambda n: (_drawn(n, n) + n * np.eye(n),))
def elimination(A):
    A = A.copy()
    for k in range(12):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= A[k + 1 :, k, None] * A[k, k + 1 :]
    return np.sum(A**2)


@program(lambda n: _matrix(n)[:1])
def factors_by_elements(A):
    """LU by products of rows and columns; an element is written twice, and read in between."""
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return np.sum(A * A)


@program(lambda n: (_drawn(n, n), _drawn(n)))
def blocks_of_both_axes(A, x):
    y = np.zeros_like(x)
    for i in range(5, len(x) - 4, 7):
        y[i - 5 : i + 4] += A[i - 5 : i + 4, : i + 1] @ x[: i + 1]
        y[:i] += x[i:][:5] @ A[i : i + 5, :i]
    return y @ y


# --- mixtures ----------------------------------------------------------------------------------


@program(lambda n: (_drawn(n), _drawn(n)))
def under_a_branch(x, w):
    total = 0.0
    for i in range(1, len(x)):
        total += np.log(1 + w[:i] @ x[:i]) if x[i] > 0.6 else -np.sum(x[i:] * w[i:] ** 2)
    return total


@program(lambda n: (_drawn(n), _drawn(n)))
def until_it_is_enough(x, w):
    total, k = 0.0, 1
    while k < len(x):
        total += x[:k] @ w[:k] / k
        if total > 4.0:
            break
        k += 3
    return total**2


@program(lambda n: (_drawn(n), _drawn(n)))
def two_ranges_of_one_array(x, w):
    y = x.copy()
    for i in range(1, len(x) - 1, 4):
        y[:i] *= 1.0 - 0.01 * w[:i]
        y[i:] += 0.1 * y[i - 1] * w[i:]
        w = w * 1.01
    return np.sum(y * y) + np.sum(w)


@program(lambda n: (_drawn(6, n), _drawn(n)))
def nested_loops(A, x):
    total = 0.0
    for i in range(len(A)):
        for j in range(2, len(x), 9):
            total += (A[i, :j] @ x[:j]) * np.mean(A[i, j:] ** 2)
            A[i, j:] *= 0.9
    return total


class Accumulator:
    def __init__(self, n):
        self.sums = np.zeros(n)

    def add(self, x, first, last):
        self.sums[first:last] += x[first:last] ** 2


@program(lambda n: (_drawn(n),))
def in_a_method(x):
    kept = Accumulator(len(x))
    for i in range(0, len(x) - 8, 5):
        kept.add(x, i, i + 3 + i // 10)
    return np.sum(np.sqrt(1 + kept.sums))


@program(lambda n: (_drawn(n), np.array([3, 60, 17, 66, 0, 41]), np.array([9, 71, 17, 99, 70, -2])))
def bounds_from_data(x, first, last):
    total = 0.0
    for a, b in zip(first, last, strict=True):
        total += np.sum(x[a:b] ** 3) - np.prod(x[a:b])
        x = x * 0.99
    return total


@program(lambda n: (_drawn(n).astype(np.float32), _drawn(n)))
def single_precision(x, w):
    y = np.zeros_like(x)
    for i in range(1, len(x), 3):
        y[i] = x[:i] @ x[:i]
        y[:i] += x[i] * x[:i]
    return np.sum(y * w)
