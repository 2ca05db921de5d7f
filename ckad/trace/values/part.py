"""Parts of arrays whose size is only known when the program runs.

A part is an array of static size, its *base*, and where in it the part lies: per axis from a place
on (``x[:k]``, ``A[i, j + 1:]``), or where a traced mask is true (``a[a > 0]``). A part of a storage
has that storage's view as its base, so it is read when it is used and written in place; the
elements under a mask are a copy, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ckad.errors import ConcreteValueError, UnsupportedFunctionError
from ckad.place import at_place
from ckad.trace import dispatch
from ckad.trace.values.array import Array
from ckad.trace.values.tracer import Number, Tracer


class Part(Array):
    """What both kinds of parts are."""

    __slots__ = ()
    __array_priority__ = 2000


class Extent(NamedTuple):
    """Which places of an axis are the part: ``length`` of them from ``origin`` on."""

    origin: Number
    length: Number


class Padded(Part):
    """A part of run-time extent. ``tame`` says that what lies outside is finite."""

    __slots__ = ("base", "extents", "tame")
    kind = dispatch.PART

    def __init__(self, base: Tracer, extents: Sequence[Extent | None], tame: bool = False) -> None:
        self.base: Tracer = base
        self.extents = tuple(extents)
        self.tame = tame

    @property
    def shape(self) -> tuple[Any, ...]:
        sizes = zip(self.base.shape, self.extents, strict=True)
        return tuple(n if e is None else as_python_int(e.length) for n, e in sizes)

    @property
    def dtype(self) -> np.dtype:
        return self.base.dtype

    @property
    def ndim(self) -> int:
        return len(self.extents)

    @property
    def size(self) -> Any:
        return count(self, range(self.ndim))

    def __len__(self) -> int:
        if self.extents[0] is None:
            return self.base.shape[0]
        raise ConcreteValueError(
            at_place(
                "len() of an array whose length is only known when the program runs. Use "
                "x.shape[0], which is a traced integer."
            )
        )

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
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


def count(part: Padded, axes: Sequence[int]) -> Any:
    """How many elements the part has along ``axes``."""
    total: Any = 1
    for axis in axes:
        total = total * part.shape[axis]
    return total


def unsupported(what: str) -> NoReturn:
    raise UnsupportedFunctionError(
        at_place(
            f"{what} is not supported for an array whose length is only known when the program "
            "runs (a slice with computed bounds). Use a whole array and np.where with a mask, or "
            "a loop over the elements."
        )
    )


# --- under a mask ------------------------------------------------------------------------------


class Masked(Part):
    """``data[mask]``, a copy as in NumPy; the mask stands for the first axes of ``data``.

    ``before`` of the axes that follow stand before those of the mask in the user's array.
    """

    __slots__ = ("before", "data", "mask")
    kind = dispatch.MASK

    def __init__(self, data: Tracer, mask: Tracer, before: int = 0) -> None:
        self.data: Tracer = data
        self.mask, self.before = mask, before

    @property
    def rest(self) -> tuple[int, ...]:
        """The lengths of the axes that the mask does not cover."""
        return self.data.shape[self.mask.ndim :]

    @property
    def count(self) -> Any:
        """How many places of the mask are true."""
        return as_python_int(np.sum(self.mask))

    @property
    def shape(self) -> tuple[Any, ...]:
        return *self.rest[: self.before], self.count, *self.rest[self.before :]

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return 1 + len(self.rest)

    @property
    def size(self) -> Any:
        return self.count * int(np.prod(self.rest))

    def __len__(self) -> int:
        raise ConcreteValueError(
            at_place(
                "len() of an array under a traced mask: how many elements it has is only known "
                "when the program runs. Use np.sum(mask) or x.shape[0], which are traced integers."
            )
        )

    def __iter__(self) -> Iterator[Any]:
        unsupported_under_mask("iteration")

    def __repr__(self) -> str:
        return f"<traced {self.data.type} under a mask>"

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        unsupported_under_mask("this use")

    def __bool__(self) -> NoReturn:
        bool(self.data)
        raise AssertionError

    __hash__ = object.__hash__


def unsupported_under_mask(what: str) -> NoReturn:
    raise UnsupportedFunctionError(
        at_place(
            f"{what} is not supported for the elements under a traced mask, x[mask], whose number "
            "is only known when the program runs. They can be combined element by element with "
            "elements under the same mask, reduced, and assigned where the same mask is true. Use "
            "np.where(mask, ..., ...) on the whole array."
        )
    )


dispatch.refuses(dispatch.PART, lambda name: unsupported(name.replace("numpy", "np", 1)))
dispatch.refuses(dispatch.MASK, lambda name: unsupported_under_mask(name.replace("numpy", "np", 1)))
