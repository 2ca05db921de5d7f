"""What an array says of its memory: ``x.strides``, ``x.flags``; ``x.shape = ...``."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError, UnsupportedFunctionError
from ckad.place import at_place
from ckad.trace.dispatch import put, reject
from ckad.trace.memory import layout
from ckad.trace.memory.context import current
from ckad.trace.memory.views import BroadcastView, DiagonalView, SlidingView
from ckad.trace.primitives.shape import reshape, transpose
from ckad.trace.values.tracer import Tracer


def strides(x: Tracer) -> tuple[int, ...]:
    """In bytes, as NumPy has them."""
    found = _settled(layout.strides(x), "strides")
    return tuple(s * x.itemsize for s in found)


def _settled(found: Any, what: str) -> Any:
    if found is None:
        raise UnsupportedFunctionError(
            at_place(
                f"the {what} of this array depend on how NumPy lays out the result of an operation "
                "on transposed arrays, which is not known. Ask for those of a .copy()."
            )
        )
    return found


class Flags:
    """``x.flags``; arrays that can be written stay so."""

    def __init__(self, x: Tracer) -> None:
        self._array = x

    @property
    def c_contiguous(self) -> bool:
        return bool(_settled(layout.contiguity(self._array), "flags"))

    @property
    def f_contiguous(self) -> bool:
        return bool(_settled(layout.contiguity(transpose(self._array)), "flags"))

    contiguous = c_contiguous

    @property
    def fnc(self) -> bool:
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        return self.f_contiguous or self.c_contiguous

    @property
    def owndata(self) -> bool:
        return not self._array.path

    @property
    def writeable(self) -> bool:
        return not any(map(_is_read_only, self._array.path))

    @writeable.setter
    def writeable(self, wanted: bool) -> None:
        """A program that forbids itself to write does not write."""

    aligned = True
    writebackifcopy = False

    def __getitem__(self, name: str) -> bool:
        full = {"C": "c_contiguous", "F": "f_contiguous", "O": "owndata", "W": "writeable"}
        return bool(getattr(self, full.get(name, name.lower())))


def _is_read_only(view: Any) -> bool:
    diagonal = isinstance(view, DiagonalView) and not view.writable
    return diagonal or isinstance(view, (BroadcastView, SlidingView))


def set_shape(x: Tracer, shape: Any) -> None:
    """``x.shape = shape``: the array itself has another shape from here on."""
    whole = reshape(x, shape)
    if whole.storage.root is not x.storage.root:
        raise AttributeError(
            at_place("incompatible shape for in-place modification. Use a.reshape(...), a copy.")
        )
    if x.storage.trace is not current() and whole.shape != x.shape:
        raise UnrecordableError(
            at_place(
                "the body of a loop or branch sets the shape of an array from outside of it. Set "
                "it before, or bind a name to a.reshape(...)."
            )
        )
    x.path = whole.path


def resize(x: Tracer, *shape: Any, refcheck: bool = True) -> None:
    """In place, to as many elements: NumPy's own gives or takes memory."""
    (given,) = shape if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else (shape,)
    dims = tuple(map(operator.index, given))
    reject(math.prod(dims) != x.size, "a.resize(...) to another number of elements")
    if dims != x.shape:
        set_shape(x, dims)


put(np.ndarray.resize, resize)
put(np.ndarray.shape, set_shape)
put(np.ndarray.strides, strides)
put(np.ndarray.flags, Flags)
