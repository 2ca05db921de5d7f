"""Chains of matrix products, of the linear-algebra kernels of PolyBench: one function each.

The value is the sum of the squares of all results, by every array. No time steps: "per step" is the
whole function, "per cell" an element of a matrix.

Source: T. Yuki and L.-N. Pouchet, PolyBench/C 4.2 (2016): atax, bicg, mvt, gesummv, 2mm, 3mm, gemm,
syrk.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings, Value
from benchmarks.peers import ckad_gradient, ckad_primal

ALPHA, BETA = 1.5, 1.2


def size(settings: Settings) -> int:
    return int(settings["size"])


def inputs(settings: Settings, matrices: int, vectors: int) -> Inputs:
    n, generator = size(settings), np.random.default_rng(42)
    squares = [generator.normal(size=(n, n)) / np.sqrt(n) for _ in range(matrices)]
    return (*squares, *(generator.normal(size=n) for _ in range(vectors)))


def atax(a, x):
    return (a.T @ (a @ x),)


def bicg(a, p, r):
    return a.T @ r, a @ p


def mvt(a, x1, x2, y1, y2):
    return x1 + a @ y1, x2 + a.T @ y2


def gesummv(a, b, x):
    return (ALPHA * (a @ x) + BETA * (b @ x),)


def gemm(a, b, c):
    return (ALPHA * a @ b + BETA * c,)


def two_products(a, b, c, d):
    return (ALPHA * a @ b @ c + BETA * d,)


def three_products(a, b, c, d):
    return ((a @ b) @ (c @ d),)


def syrk(a, c):
    return (BETA * c + ALPHA * a @ a.T,)


def squares_of(xp: Any, results: Callable) -> Callable:
    return lambda *arrays: sum(xp.sum(result * result) for result in results(*arrays))


def build_ckad(settings: Settings, results: Callable, n_inputs: int, **options: Any) -> Gradient:
    return ckad_gradient(squares_of(np, results), n_inputs, **options)


def build_primal(settings: Settings, results: Callable, **options: Any) -> Value:
    return ckad_primal(squares_of(np, results), **options)


def build_jax(settings: Settings, results: Callable, n_inputs: int) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient

    return jax_gradient(jax, squares_of(jnp, results), n_inputs)


def build_torch(settings: Settings, results: Callable) -> Gradient:
    import torch

    from benchmarks.peers import torch_gradient

    return torch_gradient(squares_of(torch, results))


def case(
    name: str, results: Callable, matrices: int, vectors: int, n: int, second: int | None = None
) -> Case:
    n_inputs = matrices + vectors
    return Case(
        name=name,
        title=f"{name} of PolyBench: sum of squares in all arrays",
        defaults={"size": n},
        tiny={"size": 9},
        inputs=partial(inputs, matrices=matrices, vectors=vectors),
        steps=lambda settings: 1,
        cells=lambda settings: size(settings) ** 2,
        forms={
            "ckad": {"auto": partial(build_ckad, results=results, n_inputs=n_inputs)},
            "jax": {"jit": partial(build_jax, results=results, n_inputs=n_inputs)},
            "torch": {"eager": partial(build_torch, results=results)},
        },
        primal=partial(build_primal, results=results),
    )


CASES = (
    case("atax", atax, 1, 1, 2000),
    case("bicg", bicg, 1, 2, 2000),
    case("mvt", mvt, 1, 4, 2000),
    case("gesummv", gesummv, 2, 1, 2000),
    case("gemm", gemm, 3, 0, 1000),
    case("2mm", two_products, 4, 0, 800),
    case("3mm", three_products, 4, 0, 800),
    case("syrk", syrk, 2, 0, 1000),
)
