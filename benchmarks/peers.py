"""The table of peers, and what several cases need to build a peer's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import isqrt
from typing import Any

import numpy as np

from benchmarks.case import Gradient


@dataclass(frozen=True)
class Peer:
    """A contender: the module it is imported from and the distributions whose versions count."""

    title: str
    module: str
    distributions: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def installed(self) -> bool:
        return find_spec(self.module) is not None


PEERS = {
    "ckad": Peer("ckad", "ckad", ("ckad", "numba", "llvmlite")),
    "jax": Peer("JAX", "jax", ("jax", "jaxlib"), {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}),
    "numba": Peer("Numba, adjoint by hand", "numba", ("numba", "llvmlite")),
}


def jax_gradient(jax: Any, value: Callable, n_inputs: int) -> Gradient:
    """The compiled reverse-mode gradient, from and to NumPy arrays."""
    compiled = jax.jit(jax.value_and_grad(value, argnums=tuple(range(n_inputs))))

    def gradient(arrays):
        result, cotangents = jax.block_until_ready(compiled(*arrays))
        return float(result), tuple(np.asarray(cotangent) for cotangent in cotangents)

    return gradient


def jax_nested_scan(
    advance: Callable, start: Any, length: int, levels: int, remat_step: bool, unroll: int = 1
) -> Any:
    """The carry after `length` steps, as one scan or as a scan of checkpointed scans.

    `remat_step` checkpoints each step too: its scan then stores the carry and nothing else.
    """
    import jax

    advance = jax.checkpoint(advance) if remat_step else advance
    if levels == 1:
        return jax.lax.scan(advance, start, None, length=length, unroll=unroll)[0]
    period = max(1, isqrt(length))

    def block(carry, _):
        return jax.lax.scan(advance, carry, None, length=period, unroll=unroll)

    carry, _ = jax.lax.scan(jax.checkpoint(block), start, None, length=length // period)
    return jax.lax.scan(advance, carry, None, length=length % period, unroll=unroll)[0]
