"""Makers of arguments: from a generator of random numbers to a tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator
Arguments = tuple[Any, ...]
Maker = Callable[[Rng], Arguments]
Shape = tuple[int, ...]
S: Shape = ()  # a float


def drawn(*shapes: Shape, low: float = 0.2, high: float = 1.0) -> Maker:
    """Arrays of these shapes; a float for a shape of ()."""

    def make(rng: Rng) -> Arguments:
        return tuple(
            rng.uniform(low, high, s) if s else float(rng.uniform(low, high)) for s in shapes
        )

    return make


def signed(*shapes: Shape) -> Maker:
    return drawn(*shapes, low=-1.0)


def numbers(*values: Any) -> Maker:
    """The same for any seed; lists become arrays."""
    return lambda rng: tuple(np.array(v) if isinstance(v, list) else v for v in values)


def then(first: Maker, *more: Maker) -> Maker:
    """The arguments of several makers, one after the other."""
    return lambda rng: tuple(a for make in (first, *more) for a in make(rng))


def dominant(n: int) -> Maker:
    """A matrix whose diagonal outweighs its rows."""
    return lambda rng: (rng.uniform(-1, 1, (n, n)) + (n + 1) * np.eye(n),)


def positive(n: int) -> Maker:
    """A symmetric positive definite matrix."""

    def make(rng: Rng) -> Arguments:
        a = rng.uniform(-1, 1, (n, n))
        return (a @ a.T + n * np.eye(n),)

    return make


def normal(*shapes: Shape, dtype: Any = np.float64) -> Maker:
    return lambda rng: tuple(rng.normal(size=s).astype(dtype) for s in shapes)


def distances(n: int) -> Maker:
    return lambda rng: (rng.uniform(1, 9, (n, n)) * (1 - 0.95 * np.eye(n)),)


def chances(*shapes: Shape) -> Maker:
    """Rows that sum to one."""

    def make(rng: Rng) -> Arguments:
        rows = [rng.uniform(0.1, 1, s) for s in shapes]
        return tuple(r / r.sum(-1, keepdims=True) for r in rows)

    return make


def increasing(n: int) -> Maker:
    return lambda rng: (np.cumsum(rng.uniform(0.5, 1.5, n)),)


CSR_INDICES = [0, 2, 1, 3, 0, 2, 3]
CSR_ROWS = [0, 2, 4, 4, 7]
COO_ROWS, COO_COLUMNS = [0, 1, 1, 2, 3, 3, 0], [1, 0, 3, 2, 0, 2, 1]
EDGES = ((0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (1, 4))
KALMAN = numbers([[1.0, 0.1], [0.0, 0.95]], [[1.0, 0.2]], [[0.05, 0.0], [0.0, 0.05]], [[0.3]])
