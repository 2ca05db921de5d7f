"""What an array says of its memory: ``x.strides``, ``x.flags``; ``x.shape = ...``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.errors import UnrecordableError, UnsupportedFunctionError
from ckad.place import at_place
from ckad.trace.dispatch import STATIC, put
from ckad.trace.memory import layout
from ckad.trace.memory.context import current
from ckad.trace.memory.storage import PROTECTED
from ckad.trace.memory.views import BroadcastView, DiagonalView, SlidingView
from ckad.trace.primitives.shape import reshape, transpose
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.tracer import Tracer


def strides(x: Tracer) -> tuple[int, ...]:
    """In bytes, as NumPy has them."""
    found = _settled(layout.strides(x), "strides")
    return tuple(s * x.itemsize for s in found)


def _settled(found: Any, what: str) -> Any:
    if found is None:
        raise UnsupportedFunctionError.here(
            f"the {what} of this array depend on how NumPy lays out the result of an operation "
            "on transposed arrays, which is not known. Ask for those of a .copy()."
        )
    return found


class Flags:
    """``x.flags``."""

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
        x = self._array
        return x.storage.shared is not PROTECTED and not any(map(_is_read_only, x.path))

    @writeable.setter
    def writeable(self, wanted: bool) -> None:
        """Of an array itself; a program that forbids itself to write into a view does not."""
        x = self._array
        if x.path:
            return
        if not wanted and x.storage.shared is None:
            x.storage.shared = PROTECTED
        elif wanted and x.storage.shared is PROTECTED:
            x.storage.shared = None

    aligned = True
    writebackifcopy = False

    def __getitem__(self, name: str) -> bool:
        return bool(getattr(self, _named(name)))

    def __setitem__(self, name: str, wanted: bool) -> None:
        setattr(self, _named(name), wanted)


def _named(name: str) -> str:
    full = {"C": "c_contiguous", "F": "f_contiguous", "O": "owndata", "W": "writeable"}
    return full.get(name, name.lower())


def set_flags(x: Tracer, write: Any = None, align: Any = None, uic: Any = None) -> None:
    """``x.setflags(write=False)``."""
    if write is not None:
        Flags(x).writeable = bool(write)


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
    _check_own(x, whole.shape, "a.reshape(...)")
    x.path = whole.path


def _check_own(x: Tracer, shape: tuple[int, ...], other: str) -> None:
    if x.storage.trace is not current() and shape != x.shape:
        raise UnrecordableError.here(
            "the body of a loop or branch sets the shape of an array from outside of it. Set "
            f"it before, or bind a name to {other}."
        )


def resize(x: Any, *shape: Any, refcheck: bool = True) -> None:
    """``x.resize(n)``: the array itself is longer or shorter from here on, zero where it is new."""
    if isinstance(x, ComplexTracer):
        for part in x.parts:
            resize(part, *shape)
        return
    wanted = np.empty(shape[0] if len(shape) == 1 else shape, bool)
    if wanted.shape == x.shape:
        return
    if x.path or x.scalar or x.storage.root is not x.storage:
        raise ValueError(at_place("cannot resize this array: it does not own its data"))
    _check_own(x, wanted.shape, "np.resize(a, ...) or np.pad(a, ...)")
    size = min(wanted.size, x.size)
    longer: Any = np.zeros(wanted.size, x.dtype, like=x)
    longer[:size] = reshape(x, (x.size,))[:size]
    x.storage, x.path = longer.storage, ()
    x.path = reshape(longer, wanted.shape).path


put(np.ndarray.shape, set_shape)
put(np.ndarray.resize, resize, STATIC)
put(np.ndarray.strides, strides)
put(np.ndarray.flags, Flags)
put(np.ndarray.setflags, set_flags, STATIC)
