"""One case: a small program, inputs for it, and what plain NumPy makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type, dtype_of, type_of

F64, F32, I64, BOOL = (np.dtype(t) for t in (np.float64, np.float32, np.int64, np.bool_))
SHORT = {F64: "f64", F32: "f32", I64: "i64", BOOL: "bool"}
LETTERS = {"f": (F64, F32), "i": (I64,), "b": (BOOL,)}

Arrays = tuple[np.ndarray, ...]


def one_row(
    op: Op, attrs: Sequence[int] = (), type: Type | None = None
) -> Callable[..., list[int]]:
    """A program of one row of ``op`` on all inputs."""
    return lambda b, *xs: [b.emit(op, xs, attrs, type)]


@dataclass(frozen=True, eq=False)
class Case:
    """``build(builder, *inputs)`` emits the program; ``expected(*arrays)`` is its NumPy twin.

    A value may be off by ``ulp`` units in the last place of ``max(|value|, floor)``: ``floor`` is
    the size of the terms where a result can be smaller than they are (sums, zeros of a function).
    """

    name: str
    op: Op
    arrays: Arrays
    build: Callable[..., list[int]]
    expected: Callable[..., Any]
    ulp: float = 0.0
    floor: float = 0.0
    wrt: tuple[int, ...] | None = None  # None: all float inputs
    smooth: bool = True  # derivatives are checked at these inputs
    complex: bool = True  # ``expected`` is analytic, so that it takes complex inputs
    signed_zeros: bool = True  # the sign of a zero is defined
    twice: bool = True  # the adjoint can be differentiated again

    def tape(self) -> Tape:
        b = Builder()
        xs = [b.input(type_of(a)) for a in self.arrays]
        return b.tape(self.build(b, *xs))

    @property
    def active(self) -> tuple[int, ...]:
        if self.wrt is not None:
            return self.wrt
        return tuple(k for k, a in enumerate(self.arrays) if a.dtype.kind == "f")

    def __str__(self) -> str:
        return self.name


def shape_word(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def code(dtype: np.dtype) -> DType:
    return dtype_of(dtype)


def fill(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Numbers that are pairwise different within an array, for ops that only move them."""
    size = int(np.prod(shape))
    numbers = rng.permutation(size) - size // 3
    if dtype == BOOL:
        return (numbers % 2 == 0).reshape(shape)
    if dtype == I64:
        return numbers.reshape(shape)
    return (numbers / 7.0).astype(dtype).reshape(shape) * dtype.type(3.0 / max(size, 3))
