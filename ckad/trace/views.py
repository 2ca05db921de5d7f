"""Views: how a tracer looks at its storage, and how a write goes back through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckad.tape.builder import Builder
from ckad.tape.types import Type


class SliceView(NamedTuple):
    """A basic slice: starts and steps per axis, and the part's shape."""

    attrs: tuple[int, ...]
    shape: tuple[int, ...]

    def get(self, b: Builder, x: int) -> int:
        return b.slice(x, attrs=self.attrs, type=b.type(x).with_shape(self.shape))

    def put(self, b: Builder, x: int, y: int) -> int:
        return b.update(x, y, attrs=self.attrs)

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.shape

    def on(self, shadow: np.ndarray) -> np.ndarray:
        from ckad.rules.shape import slices

        return shadow[slices(self.attrs, self.shape)]


class TransposeView(NamedTuple):
    permutation: tuple[int, ...]

    def get(self, b: Builder, x: int) -> int:
        return b.transpose(x, attrs=self.permutation)

    def put(self, b: Builder, x: int, y: int) -> int:
        return b.transpose(y, attrs=np.argsort(self.permutation))

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shape[a] for a in self.permutation)

    def on(self, shadow: np.ndarray) -> np.ndarray:
        return shadow.transpose(self.permutation)


class ReshapeView(NamedTuple):
    shape: tuple[int, ...]

    def get(self, b: Builder, x: int) -> int:
        return b.reshape_to(x, self.shape)

    def put(self, b: Builder, x: int, y: int) -> int:
        return b.reshape_to(y, b.type(x).shape)

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.shape

    def on(self, shadow: np.ndarray) -> np.ndarray:
        return shadow.reshape(self.shape, copy=False)


class ItemView(NamedTuple):
    """One place along an axis, at an index computed by the program (row ``index``, in range)."""

    index: int
    axis: int

    def get(self, b: Builder, x: int) -> int:
        return b.gather(x, self.index, attrs=(self.axis,))

    def put(self, b: Builder, x: int, y: int) -> int:
        return b.scatter(x, self.index, y, attrs=(self.axis, 1))

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[: self.axis], *shape[self.axis + 1 :])

    def on(self, shadow: np.ndarray) -> np.ndarray:
        return shadow[(*[slice(None)] * self.axis, 0)]


View = SliceView | TransposeView | ReshapeView | ItemView
Path = tuple[View, ...]


def read(b: Builder, row: int, path: Path, cache: dict[Path, int]) -> int:
    """The value seen through ``path``; intermediate views are remembered in ``cache``."""
    if not path:
        return row
    if path not in cache:
        cache[path] = path[-1].get(b, read(b, row, path[:-1], cache))
    return cache[path]


def write(b: Builder, row: int, path: Path, value: int, cache: dict[Path, int]) -> int:
    """The storage's next value after ``value`` was written through ``path``."""
    for k in range(len(path) - 1, -1, -1):
        value = path[k].put(b, read(b, row, path[:k], cache), value)
    return value


def shape_of(type: Type, path: Path) -> tuple[int, ...]:
    shape = type.shape
    for view in path:
        shape = view.shape_of(shape)
    return shape


def shadow(shape: Sequence[int], path: Path) -> np.ndarray:
    """An array that has the strides NumPy would give this view; its elements are never read."""
    strides = np.cumprod([8, *shape[:0:-1]])[::-1] if len(shape) else ()
    base = np.lib.stride_tricks.as_strided(np.empty(1), tuple(shape), tuple(map(int, strides)))
    for view in path:
        base = view.on(base)
    return base
