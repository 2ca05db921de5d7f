"""Parts of arrays whose size is only known when the program runs.

A part is an array of static size, its *base*, and where in it the part lies: per axis from a place
on (``x[:k]``, ``A[i, j + 1:]``), or at the places of a traced mask (``a[a > 0]``). The former is a
mask, too, of the places from one bound to another, and kept as the bounds, by which it can be
moved, cut and written as a view of a storage. The elements under a mask are a copy, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ckad.errors import ConcreteValueError, UnknownLengthError
from ckad.trace import dispatch
from ckad.trace.memory.opened import is_text
from ckad.trace.values.array import Array
from ckad.trace.values.tracer import Number, Tracer


class Extent(NamedTuple):
    """Which places of an axis are the part: ``length`` of them from ``origin`` on."""

    origin: Number
    length: Number


class Extents(tuple[Extent | None, ...]):
    """An extent for each axis of the base, None for an axis that is the part's as a whole."""

    __slots__ = ()

    def shape(self, sizes: Sequence[int]) -> tuple[Any, ...]:
        pairs = zip(sizes, self, strict=True)
        return tuple(n if e is None else as_python_int(e.length) for n, e in pairs)

    def base_axes(self, axes: Sequence[int]) -> tuple[int, ...]:
        """The axes of the base that make up those of the part."""
        return tuple(axes)

    def reduced(self, axes: Sequence[int], keepdims: bool) -> Extents | None:
        """Where the part lies in what a reduction over ``axes`` leaves; None if it is all of it."""
        left = [None if k in axes else e for k, e in enumerate(self) if keepdims or k not in axes]
        return None if all(e is None for e in left) else Extents(left)

    def transposed(self, order: Sequence[int]) -> tuple[Extents, Sequence[int]]:
        """The same with the part's axes in ``order``, and the order of the base's axes for it."""
        return Extents(self[k] for k in order), order


class Mask(NamedTuple):
    """The places of the first axes of the base where ``mask`` is true, as one axis.

    ``before`` of the axes that follow stand before it in the part.
    """

    mask: Tracer
    before: int = 0

    def shape(self, sizes: Sequence[int]) -> tuple[Any, ...]:
        rest = sizes[self.mask.ndim :]
        return *rest[: self.before], as_python_int(np.sum(self.mask)), *rest[self.before :]

    def base_axes(self, axes: Sequence[int]) -> tuple[int, ...]:
        covered = range(self.mask.ndim) if self.before in axes else ()
        rest = (self.mask.ndim + k - (k > self.before) for k in axes if k != self.before)
        return *covered, *rest

    def reduced(self, axes: Sequence[int], keepdims: bool) -> Mask | None:
        if self.before in axes:
            return None
        return (
            self if keepdims else Mask(self.mask, self.before - sum(k < self.before for k in axes))
        )

    def transposed(self, order: Sequence[int]) -> tuple[Mask, Sequence[int]]:
        others = self.base_axes([k for k in order if k != self.before])
        return Mask(self.mask, list(order).index(self.before)), (*range(self.mask.ndim), *others)


class Part(Array):
    """``base`` at the places ``where``. ``tame`` says that what lies elsewhere in it is finite."""

    __slots__ = ("base", "tame", "where")
    __array_priority__ = 2000
    kind = dispatch.PART

    base: Tracer
    where: Extents | Mask
    tame: bool

    def __init__(self, base: Any, where: Extents | Mask, tame: bool = False) -> None:
        self.base, self.where, self.tame = base, where, tame

    def over(self, base: Any) -> Part:
        """The same places of another base, which was made of this one."""
        return Part(base, self.where, self.tame)

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.where.shape(self.base.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.base.dtype

    @property
    def ndim(self) -> int:
        where = self.where
        return self.base.ndim - (where.mask.ndim - 1 if isinstance(where, Mask) else 0)

    @property
    def size(self) -> Any:
        total: Any = 1
        for n in self.shape:
            total = total * n
        return total

    def __len__(self) -> int:
        n = self.shape[0]
        if isinstance(n, int):
            return n
        raise ConcreteValueError.here(
            "len() of an array whose length is only known when the program runs. Use "
            "x.shape[0], which is a traced integer."
        )

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self.where, Mask):
            unsupported("iteration")
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        is_text(self)
        return f"<traced part of {self.base.type}>"

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        unsupported("this use")

    def __bool__(self) -> NoReturn:
        bool(self.base)
        raise AssertionError

    __hash__ = object.__hash__


def as_python_int(x: Number) -> Number:
    """A traced integer that takes the dtype of what it meets, as lengths in NumPy do."""
    return Tracer(x.storage, x.path, scalar=True, weak=True) if isinstance(x, Tracer) else x


def unsupported(what: str) -> NoReturn:
    raise UnknownLengthError.here(
        f"{what} is not supported for an array whose length is only known when the program "
        "runs: a slice with computed bounds, or the elements under a traced mask, x[mask]. "
        "They can be combined element by element, reduced, and assigned where a mask is true. "
        "Use a whole array and np.where with a mask, or a loop over the elements."
    )


dispatch.refuses(dispatch.PART, lambda name: unsupported(name.replace("numpy", "np", 1)))
