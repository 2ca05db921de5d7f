"""Solutions and factors of a dense matrix: the sum of squares of what is computed, or of sines.

Symmetric matrices are made so, since peers differ in which triangle they read. Of eigenvectors and
singular vectors fourth powers are added up, in which their signs do not matter. "Per step" is the
whole function, "per cell" an element of the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings, Value
from benchmarks.peers import ckad_gradient, ckad_primal


def size(settings: Settings) -> int:
    return int(settings["size"])


def inputs(settings: Settings, vectors: int = 0) -> Inputs:
    """A matrix with eigenvalues apart from each other and from zero, and right sides."""
    n, generator = size(settings), np.random.default_rng(3)
    q = np.linalg.qr(generator.normal(size=(n, n)))[0]
    matrix = q @ np.diag(np.linspace(1.0, 3.0, n)) @ q.T
    return ((matrix + matrix.T) / 2, *(generator.normal(size=n) for _ in range(vectors)))


def solve(xp, a, b):
    return xp.sum(xp.linalg.solve(a, b) ** 2)


def cholesky(xp, a):
    return xp.sum(xp.sin(xp.linalg.cholesky((a + a.T) / 2)))


def qr(xp, a):
    q, r = xp.linalg.qr(a)
    return xp.sum(xp.sin(q)) + xp.sum(xp.sin(r))


def eigh(xp, a):
    values, vectors = xp.linalg.eigh((a + a.T) / 2)
    return xp.sum(values**2) + xp.sum(vectors**4)


def svd(xp, a):
    u, s, vt = xp.linalg.svd(a, full_matrices=False)
    return xp.sum(s**2) + xp.sum(u**4) + xp.sum(vt**4)


def bound(function: Callable, xp: Any) -> Callable:
    return lambda *arrays: function(xp, *arrays)


def build_ckad(settings: Settings, function: Callable, n_inputs: int, **options: Any) -> Gradient:
    return ckad_gradient(bound(function, np), n_inputs, **options)


def build_primal(settings: Settings, function: Callable, **options: Any) -> Value:
    return ckad_primal(bound(function, np), **options)


def inv(xp, a):
    return xp.sum(xp.sin(xp.linalg.inv(a)))


def det(xp, a):
    return xp.linalg.det(a / 2)


def lstsq(xp, a, b):
    return xp.sum(xp.linalg.lstsq(a, b)[0] ** 2)


def build_jax(settings: Settings, function: Callable, n_inputs: int) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient

    return jax_gradient(jax, bound(function, jnp), n_inputs)


def build_torch(settings: Settings, function: Callable) -> Gradient:
    import torch

    from benchmarks.peers import torch_gradient

    return torch_gradient(bound(function, torch))


def case(function: Callable, n: int, vectors: int = 0) -> Case:
    n_inputs = 1 + vectors
    return Case(
        name=f"{function.__name__}-{n}",
        title=f"np.linalg.{function.__name__} of {n} rows",
        defaults={"size": n},
        tiny={"size": 9},
        inputs=partial(inputs, vectors=vectors),
        steps=lambda settings: 1,
        cells=lambda settings: size(settings) ** 2,
        forms={
            "ckad": {"auto": partial(build_ckad, function=function, n_inputs=n_inputs)},
            "jax": {"jit": partial(build_jax, function=function, n_inputs=n_inputs)},
            "torch": {"eager": partial(build_torch, function=function)},
        },
        primal=partial(build_primal, function=function),
    )


CASES = tuple(
    case(function, n, vectors)
    for function, vectors in (
        *((solve, 1), (cholesky, 0), (qr, 0), (eigh, 0), (svd, 0)),
        *((inv, 0), (det, 0), (lstsq, 1)),
    )
    for n in (16, 64, 256, 1024)
)
