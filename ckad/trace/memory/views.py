"""Views: how a tracer looks at its storage, and how a write goes back through it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from ckad.place import at_place
from ckad.rules.shape import slices
from ckad.tape.builder import Builder
from ckad.tape.types import Type
from ckad.trace.memory.strided import StridedView


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
    """One place along ``n_axes`` neighbouring axes taken as one, at an index that the program
    computes (``row``, in range)."""

    row: int
    axis: int
    n_axes: int = 1

    def _merged(self, shape: Sequence[int]) -> tuple[int, ...]:
        stop = self.axis + self.n_axes
        return (*shape[: self.axis], math.prod(shape[self.axis : stop]), *shape[stop:])

    def get(self, b: Builder, x: int) -> int:
        flat = b.reshape_to(x, self._merged(b.type(x).shape))
        return b.gather(flat, self.row, attrs=(self.axis,))

    def put(self, b: Builder, x: int, y: int) -> int:
        shape = b.type(x).shape
        flat = b.reshape_to(x, self._merged(shape))
        return b.reshape_to(b.scatter(flat, self.row, y, attrs=(self.axis, 1)), shape)

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[: self.axis], *shape[self.axis + self.n_axes :])

    def on(self, shadow: np.ndarray) -> np.ndarray:
        place: list[slice | int] = [slice(None)] * self.axis
        return shadow[(*place, *[0] * self.n_axes)]


class WindowView(NamedTuple):
    """``length`` neighbouring places along an axis, from a place that the program computes.

    ``row`` holds the first; all places are in range.
    """

    row: int
    axis: int
    length: int
    kind: str = "window"  # as tuples, an ItemView of the same numbers would be equal

    def _places(self, b: Builder) -> int:
        first = b.broadcast_to(self.row, (self.length,))
        return b.add(first, b.const(np.arange(self.length)))

    def get(self, b: Builder, x: int) -> int:
        return b.gather(x, self._places(b), attrs=(self.axis,))

    def put(self, b: Builder, x: int, y: int) -> int:
        return b.scatter(x, self._places(b), y, attrs=(self.axis, 1))

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[: self.axis], self.length, *shape[self.axis + 1 :])

    def on(self, shadow: np.ndarray) -> np.ndarray:
        return shadow[(*[slice(None)] * self.axis, slice(0, self.length))]


class BroadcastView(NamedTuple):
    """Repeated along axes, read-only as in NumPy."""

    shape: tuple[int, ...]

    def get(self, b: Builder, x: int) -> int:
        return b.broadcast_to(x, self.shape)

    def put(self, b: Builder, x: int, y: int) -> int:
        _read_only("np.broadcast_to")

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.shape

    def on(self, shadow: np.ndarray) -> np.ndarray:
        return np.broadcast_to(shadow, self.shape)


class DiagonalView(NamedTuple):
    """A diagonal of the last two axes, which have lengths ``rows`` and ``columns``."""

    offset: int
    rows: int
    columns: int
    writable: bool

    def _slice(self, shape: Sequence[int]) -> SliceView:
        """The diagonal as a slice of the array with its last two axes made one."""
        lead = tuple(shape[:-2])
        length = min(self.rows, self.rows + self.offset, self.columns, self.columns - self.offset)
        length = max(length, 0)
        start = self.offset if self.offset >= 0 else -self.offset * self.columns
        zeros, ones = (0,) * len(lead), (1,) * len(lead)
        attrs = (*zeros, start if length else 0, *ones, self.columns + 1)
        return SliceView(attrs, (*lead, length))

    def _flat(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-2], self.rows * self.columns)

    def get(self, b: Builder, x: int) -> int:
        shape = b.type(x).shape
        return self._slice(shape).get(b, b.reshape_to(x, self._flat(shape)))

    def put(self, b: Builder, x: int, y: int) -> int:
        if not self.writable:
            _read_only("a diagonal")
        shape = b.type(x).shape
        flat = self._slice(shape).put(b, b.reshape_to(x, self._flat(shape)), y)
        return b.reshape_to(flat, shape)

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._slice(shape).shape

    def on(self, shadow: np.ndarray) -> np.ndarray:
        return shadow.diagonal(self.offset, -2, -1)


class SlidingView(NamedTuple):
    """Windows of so many places along axes; the places within one are new last axes."""

    axes: tuple[int, ...]
    lengths: tuple[int, ...]

    def get(self, b: Builder, x: int) -> int:
        """The last axis first, so that rows are read before they are repeated; turned once."""
        rank = len(b.type(x).shape)
        found = list(range(rank))  # which axis of the view each axis is
        for k in sorted(range(len(self.axes)), key=lambda k: -self.axes[k]):
            axis, length = self.axes[k], self.lengths[k]
            count = b.type(x).shape[axis] - length + 1
            places = np.arange(count)[:, None] + np.arange(length)
            x = b.gather(x, b.const(places), attrs=(axis,))
            found.insert(axis + 1, rank + k)
        return b.transpose(x, attrs=tuple(np.argsort(found).tolist()))

    def put(self, b: Builder, x: int, y: int) -> int:
        _read_only("sliding windows")

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        left = list(shape)
        for axis, length in zip(self.axes, self.lengths, strict=True):
            left[axis] -= length - 1
        return (*left, *self.lengths)

    def on(self, shadow: np.ndarray) -> np.ndarray:
        return np.lib.stride_tricks.sliding_window_view(shadow, self.lengths, self.axes)


class PartView(NamedTuple):
    """The real or imaginary part of a complex array, between whose elements the other one lies.

    Or a field: ``part`` bytes of the ``whole`` that an element has, its last ``inner`` axes dense.
    """

    part: int = 1
    whole: int = 2
    inner: int = 0
    kind: str = "part"

    def get(self, b: Builder, x: int) -> int:
        return x

    def put(self, b: Builder, x: int, y: int) -> int:
        return y

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shape)

    def on(self, shadow: np.ndarray) -> np.ndarray:
        outer = shadow.ndim - self.inner
        steps = [step * self.whole // self.part for step in shadow.strides[:outer]]
        steps += shadow.strides[outer:]
        return np.lib.stride_tricks.as_strided(shadow, shadow.shape, steps)


def _read_only(what: str) -> NoReturn:
    raise ValueError(
        at_place(f"assignment destination is read-only: {what} in NumPy. Use a .copy().")
    )


View = (
    SliceView
    | TransposeView
    | ReshapeView
    | ItemView
    | WindowView
    | BroadcastView
    | DiagonalView
    | SlidingView
    | PartView
    | StridedView
)
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


def is_static(path: Path) -> bool:
    """Whether no view of ``path`` holds a row of the trace it was made in."""
    return not any(isinstance(view, (ItemView, WindowView)) for view in path)


def renamed(path: Path, rename: Callable[[int], int]) -> Path:
    """``path`` where ``rename`` gives the row that shows what a row of the trace does."""
    return tuple(
        x._replace(row=rename(x.row)) if isinstance(x, (ItemView, WindowView)) else x for x in path
    )


def shape_of(type: Type, path: Path) -> tuple[int, ...]:
    shape = type.shape
    for view in path:
        shape = view.shape_of(shape)
    return shape
