"""A program run by plain NumPy: its results, and their derivatives without any tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
import optree

from .program import Program

Arrays = list[np.ndarray]


class Plain:
    """A program at its arguments, without ckad: what both engines are compared with."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.rng = np.random.default_rng(crc32(program.name.encode()))
        self.arguments = program.make_arguments(self.rng)
        self.argnums = program.argnums or tuple(
            k for k, a in enumerate(self.arguments) if holds_floats(a)
        )
        self.primals = tuple(self.arguments[k] for k in self.argnums)
        leaves, self.tree = optree.tree_flatten(self.primals)
        self.leaves: Arrays = [np.asarray(x) for x in leaves]

    @cached_property
    def value(self) -> Any:
        return self.run(self.primals)

    @property
    def results(self) -> Arrays:
        return floats(self.value)

    def run(self, primals: Sequence[Any], function: Callable[..., Any] | None = None) -> Any:
        """The result, or the arguments that are written; the arguments given stay as they are."""
        arguments = [copied(a) for a in self.merged(primals)]
        result = (function or self.program.function)(*arguments)
        returns = self.program.returns
        if returns is None:
            return result
        return (
            arguments[returns] if isinstance(returns, int) else tuple(arguments[k] for k in returns)
        )

    def merged(self, primals: Sequence[Any]) -> list[Any]:
        """All arguments, ``primals`` in the places of those that are differentiated."""
        arguments = list(self.arguments)
        for k, x in zip(self.argnums, primals, strict=True):
            arguments[k] = x
        return arguments

    @cached_property
    def directions(self) -> list[Arrays]:
        """Of all leaves together, then of each alone."""
        every = [self.normal(x) for x in self.leaves]
        if len(self.leaves) == 1:
            return [every, [self.normal(every[0])]]
        return [every] + [
            [self.normal(x) if k == j else np.zeros_like(x) for k, x in enumerate(self.leaves)]
            for j in range(len(self.leaves))
        ]

    def normal(self, like: np.ndarray) -> np.ndarray:
        return np.asarray(self.rng.uniform(-1, 1, like.shape), like.dtype)

    def moved(self, direction: Arrays, t: complex) -> Any:
        wide = complex if isinstance(t, complex) else float
        leaves = [
            x.astype(wide) + t * scale(x) * d for x, d in zip(self.leaves, direction, strict=True)
        ]
        return optree.tree_unflatten(self.tree, [x if x.ndim else x[()] for x in leaves])

    def derivative(self, direction: Arrays) -> Arrays:
        """Of the results along ``direction``, in units of each argument's size."""
        if self.program.complex_step:
            function = getattr(self.program.function, "py_func", self.program.function)
            results = floats(self.run(self.moved(direction, 1e-30j), function))
            return [r.imag / 1e-30 for r in results]
        return extrapolated(lambda t: floats(self.run(self.moved(direction, t))), self.program.step)


def scale(x: np.ndarray) -> float:
    """Arguments of any size are moved by the same part of it."""
    return float(np.max(np.abs(x), initial=1e-3))


def extrapolated(at: Callable[[float], Arrays], h: float) -> Arrays:
    """The derivative at 0 by central differences, extrapolated twice: of the sixth order."""
    rows = []
    for step in (h, h / 2, h / 4):
        rows.append([(a - b) / (2 * step) for a, b in zip(at(step), at(-step), strict=True)])
    for power in (4, 16):
        rows = [
            [(power * fine - coarse) / (power - 1) for fine, coarse in zip(y, x, strict=True)]
            for x, y in pairwise(rows)
        ]
    return rows[0]


def holds_floats(argument: Any) -> bool:
    leaves = optree.tree_leaves(argument)
    return bool(leaves) and all(
        isinstance(x, float) or getattr(x, "dtype", np.dtype(int)).kind == "f" for x in leaves
    )


def floats(result: Any) -> Arrays:
    """The leaves of a result that are not integers."""
    arrays = [np.asarray(x) for x in optree.tree_leaves(result)]
    return [x for x in arrays if x.dtype.kind in "fc"]


def copied(argument: Any) -> Any:
    return optree.tree_map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, argument)
