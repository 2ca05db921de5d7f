"""The methods of arrays, on tracers: each is the NumPy function of the same name."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from ckad.errors import UnrecordableError, UnsupportedFunctionError
from ckad.place import at_place
from ckad.trace.arrays import Array, Casting, repeated
from ckad.trace.dispatch import ANY, EVERY, SHORT, Function, call, put, reject
from ckad.trace.memory.context import current
from ckad.trace.memory.storage import Storage
from ckad.trace.memory.views import Path, ReshapeView
from ckad.trace.primitives import shape
from ckad.trace.primitives.creation import converted
from ckad.trace.primitives.scalars import as_python
from ckad.trace.primitives.select import copyto
from ckad.trace.primitives.shape import copied, in_order, view
from ckad.trace.values.apply import astype, reshape_value, tape_dtype
from ckad.trace.values.tracer import Tracer, lift, localise


def _as_tuple(args: tuple[Any, ...]) -> Any:
    """``x.reshape(2, 3)`` and ``x.reshape((2, 3))`` mean the same."""
    return args[0] if len(args) == 1 and (args[0] is None or np.ndim(args[0])) else args


def _reshape(self: Any, *dims: Any, **options: Any) -> Any:
    return call(np.reshape, (self, dims[0] if len(dims) == 1 else dims), options)


def _transpose(self: Any, *axes: Any) -> Any:
    return call(np.transpose, (self, _as_tuple(axes) if axes else None), {})


def _fill(self: Any, value: Any) -> None:
    self[...] = value


def _copy(self: Tracer, order: str = "C") -> Tracer:
    return view(self) if self.scalar else in_order(self, order)


def _flatten(self: Tracer, order: str = "C") -> Tracer:
    turned = shape.order_of_elements(self, order) == "F"
    return copied(shape.ravel(copied(shape.transpose(self) if turned else self)))


def _astype(
    self: Tracer,
    dtype: Any,
    order: str = "K",
    casting: Casting = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Tracer:
    if not np.can_cast(self.dtype, dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {self.dtype} to {dtype} according to {casting!r}"
        )
    if not copy and tape_dtype(dtype) == self.type.dtype:
        return self
    if self.scalar:
        return view(astype(self, dtype))
    if order in ("F", "A"):
        return in_order(astype(self, dtype), shape.settled_order(self, order))
    return converted(self, dtype, order == "C")


def _in_order(self: Tracer, *args: Any, **options: Any) -> None:
    """``x.sort()`` and ``x.partition(k)`` change the array itself."""
    axis = options.get("axis", args[0] if args else -1)
    copyto(self, np.sort(self, axis))


def _partition(self: Tracer, kth: Any, axis: int = -1, **options: Any) -> None:
    _in_order(self, axis)


def _view(self: Tracer, dtype: Any = None) -> Tracer:
    reject(dtype is not None and dtype != self.dtype, "the method .view with another dtype")
    return view(self)


# --- single numbers ----------------------------------------------------------------------------


def _item(self: Tracer, *index: Any) -> Array:
    """The element as a Python number; it stays traced."""
    if not index and self.size != 1:
        raise ValueError(at_place("can only convert an array of size 1 to a Python scalar"))
    place = (0,) if not index else index[0] if len(index) == 1 else index
    one = self[place] if isinstance(place, tuple) and len(index) > 1 else flat(self)[place]
    return call(float, (one,), {}) if one.type.is_float else as_python(reshape_value(one, ()))


def _tolist(self: Tracer) -> Any:
    return [_tolist(x) for x in self] if self.shape else _item(self)


def _deepcopy(self: Tracer, memo: Any = None) -> Tracer:
    return self if self.scalar else copied(self, contiguous=False)


def _flat(self: Tracer, *values: Any) -> Any:
    """``x.flat``, and with a value ``x.flat = value``."""
    return set_flat(self, *values) if values else flat(self)


_METHODS: dict[Any, Function] = {
    np.ndarray.copy: _copy,
    np.ndarray.flatten: _flatten,
    np.ndarray.astype: _astype,
    np.ndarray.sort: _in_order,
    np.ndarray.partition: _partition,
    np.ndarray.view: _view,
    np.ndarray.item: _item,
    np.ndarray.tolist: _tolist,
    np.ndarray.flat: _flat,
    np.ndarray.conj: lambda self: self,
    np.ndarray.conjugate: lambda self: self,
    np.ndarray.__copy__: _deepcopy,
    np.ndarray.__deepcopy__: _deepcopy,
    np.ndarray.real: view,
    np.ndarray.imag: np.imag,
}
for _key, _method in _METHODS.items():
    put(_key, _method)


_FOR_EVERY_KIND: dict[Any, Function] = {
    np.ndarray.reshape: _reshape,
    np.ndarray.transpose: _transpose,
    np.ndarray.T: _transpose,
    np.ndarray.mT: np.matrix_transpose,
}
for _key, _method in _FOR_EVERY_KIND.items():
    put(_key, _method, EVERY)
put(np.ndarray.fill, _fill, (*ANY, SHORT))


class Flat(Tracer):
    """An iterator in NumPy; here a one-dimensional view whose parts are copies, as in NumPy."""

    __slots__ = ("is_begun",)

    def __init__(self, storage: Storage, path: Path) -> None:
        super().__init__(storage, path)
        self.is_begun = False

    def all_items(self) -> Tracer:
        """The elements, which are taken once."""
        if self.is_begun or self.storage.trace is not current():
            raise UnrecordableError.here(
                "the iterator x.flat is run over again, or in a loop or branch that it was "
                "made outside of. Write x.flat there, or x.ravel(), an array."
            )
        self.is_begun = True
        return Tracer(self.storage, self.path)

    def __getitem__(self, index: Any) -> Any:
        part = call(operator.getitem, (self, index), {})
        return part if part.scalar else copied(part)

    def __setitem__(self, index: Any, value: Any) -> None:
        new = reshape_value(lift(value), (lift(value).size,))
        if new.size == 1:
            call(operator.setitem, (self, index, reshape_value(new, ())), {})
        else:
            size = np.arange(self.size)[index].size
            call(operator.setitem, (self, index, repeated(new, size)), {})

    def __iter__(self) -> Iterator[Any]:
        self.all_items()
        return (self[k] for k in range(self.size))


def _next(iterator: Any, *default: Any) -> Any:
    if type(iterator) is Flat:
        raise UnsupportedFunctionError.here(
            "next() of x.flat is not followed. Take its items by next(iter(x.flat))."
        )
    return next(iterator, *default)


put(next, _next)


def flat(x: Tracer) -> Flat:
    x = localise(x)
    path = x.path if x.ndim == 1 else (*x.path, ReshapeView((x.size,)))
    return Flat(x.storage, path)


def set_flat(x: Tracer, value: Any) -> None:
    """``x.flat = value``"""
    flat(x)[:] = value


# --- bytes ---------------------------------------------------------------------------------------


def _of_bytes(reader: Any) -> Function:
    def refuse(*args: Any, **options: Any) -> NoReturn:
        raise UnsupportedFunctionError.here(
            f"{reader.__name__}() looks at the bytes of an array, whose numbers are not known "
            "while the program is recorded. Views show the same memory: x.reshape(-1), x[i:j]."
        )

    return refuse


for _reader in (np.frombuffer, memoryview, bytes, bytearray):
    put(_reader, _of_bytes(_reader))
