"""Scalar functions of loops that several test files run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import ckad
from ckad.transforms.gradients import Gradient


class Program(NamedTuple):
    """A scalar function, how many steps its outermost loop has, and what its arguments are."""

    fun: Callable[..., Any]
    n_steps: int
    shapes: tuple[tuple[int, ...], ...]
    dtype: type = np.float64

    def arguments(self, seed: int = 6) -> list[Any]:
        rng = np.random.default_rng(seed)
        draws = [rng.uniform(0.2, 0.9, shape).astype(self.dtype) for shape in self.shapes]
        return [x[()] if x.ndim == 0 else x for x in draws]

    def gradient(self, **options: Any) -> Gradient:
        return ckad.value_and_grad(self.fun, tuple(range(len(self.shapes))), **options)


def reaction(u: Any, v: Any) -> Any:
    """Gray–Scott with rolls, two fields; the products of its reverse stand behind rolls."""

    def laplacian(w: Any) -> Any:
        return sum(np.roll(w, s, a) for s in (1, -1) for a in (0, 1)) - 4 * w

    def step(i: Any, carry: Any) -> Any:
        u, v = carry
        uvv = u * v * v
        return (
            u + 0.16 * laplacian(u) - uvv + 0.035 * (1 - u),
            v + 0.08 * laplacian(v) + uvv - 0.1 * v,
        )

    u, v = ckad.fori_loop(0, 9, step, (u, v))
    return np.mean(u * v) + np.sum(np.cos(v))


#: Its arrays are larger than a strip of the vm.
REACTION = Program(reaction, 9, ((24, 40), (24, 40)))
