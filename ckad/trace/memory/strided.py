"""Views by strides: any places of an array, a constant number of elements apart along each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckad.errors import UnsupportedFunctionError
from ckad.tape.builder import Builder
from ckad.tape.types import c_strides


class Cut(NamedTuple):
    """A basic slice of the memory, then its axes in another order: what the strides say."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    lengths: tuple[int, ...]
    order: tuple[int, ...]  # the slice's axes as the view has them; those left have length one


class StridedView(NamedTuple):
    """Elements at ``offset`` and ``strides`` in a C-contiguous array taken as one axis."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements

    def places(self) -> np.ndarray:
        """Of each element in the memory."""
        steps = zip(self.shape, self.strides, strict=True)
        axes = np.ix_(*(np.arange(n) * step for n, step in steps))
        return np.asarray(sum(axes, np.int64(self.offset)), np.int64).reshape(self.shape)

    def then(
        self, starts: Sequence[int], steps: Sequence[int], lengths: tuple[int, ...]
    ) -> StridedView:
        """A basic slice of the view."""
        moved = sum(i * s for i, s in zip(starts, self.strides, strict=True))
        strides = tuple(k * s for k, s in zip(steps, self.strides, strict=True))
        return StridedView(self.offset + moved, lengths, strides)

    def get(self, b: Builder, x: int) -> int:
        cut = self._cut(b.type(x).shape)
        if cut is None:
            flat = b.reshape_to(x, (b.type(x).size,))
            return b.gather(flat, b.const(self.places()), attrs=(0,))
        part = b.type(x).with_shape(cut.lengths)
        piece = b.slice(x, attrs=(*cut.starts, *cut.steps), type=part)
        return b.reshape_to(b.transpose(piece, attrs=cut.order), self.shape)

    def put(self, b: Builder, x: int, y: int) -> int:
        shape = b.type(x).shape
        cut = self._cut(shape)
        if cut is not None:
            turned = b.reshape_to(y, [cut.lengths[k] for k in cut.order])
            piece = b.transpose(turned, attrs=np.argsort(cut.order))
            return b.update(x, piece, attrs=(*cut.starts, *cut.steps))
        places = self.places()
        if len(np.unique(places)) < places.size:
            raise UnsupportedFunctionError.here(
                "a write through strides that show an element several times. Write into the "
                "array itself."
            )
        flat = b.reshape_to(x, (math.prod(shape),))
        return b.reshape_to(b.scatter(flat, b.const(places), y, attrs=(0, 1)), shape)

    def _cut(self, shape: Sequence[int]) -> Cut | None:
        """The same as a slice of the array, if there is one."""
        if not math.prod(self.shape):
            return None
        jumps = c_strides(shape)
        starts = list(map(int, np.unravel_index(self.offset, tuple(shape)))) if shape else []
        steps, lengths, order = [1] * len(shape), [1] * len(shape), []
        for n, stride in zip(self.shape, self.strides, strict=True):
            if n == 1:
                continue
            k = _axis(stride, n, shape, jumps, starts)
            if k is None or k in order:
                return None
            steps[k], lengths[k] = stride // jumps[k], n
            order.append(k)
        rest = [k for k in range(len(shape)) if k not in order]
        return Cut(tuple(starts), tuple(steps), tuple(lengths), (*order, *rest))

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.shape

    def on(self, shadow: np.ndarray) -> np.ndarray:
        first = shadow.reshape(-1, copy=False)[self.offset :]
        steps = [s * shadow.itemsize for s in self.strides]
        return np.lib.stride_tricks.as_strided(first, self.shape, steps)


def _axis(
    stride: int, n: int, shape: Sequence[int], jumps: Sequence[int], starts: Sequence[int]
) -> int | None:
    """The axis along which ``n`` places ``stride`` elements apart lie, without leaving it."""
    for k, jump in enumerate(jumps):
        last = starts[k] + stride // jump * (n - 1)
        if stride and stride % jump == 0 and 0 <= last < shape[k]:
            return k
    return None
