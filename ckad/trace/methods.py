"""The methods of arrays, on tracers: each is the NumPy function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.apply import astype, reshape_value, tape_dtype
from ckad.trace.flat import flat, set_flat
from ckad.trace.functions import shape
from ckad.trace.functions.creation import converted
from ckad.trace.functions.register import reject
from ckad.trace.functions.scalars import BUILTINS, as_python
from ckad.trace.functions.select import copyto
from ckad.trace.functions.shape import copied, view
from ckad.trace.memory.context import current, mark_place
from ckad.trace.tracer import FUNCTIONS, Tracer

Method = Callable[..., Any]


def _from_function(function: Any) -> Method:
    def method(self: Tracer, *args: Any, **options: Any) -> Any:
        mark_place(current())
        return FUNCTIONS[function](self, *args, **options)

    method.__name__ = function.__name__
    return method


for _name in """sum prod mean var std max min any all argmax argmin cumsum cumprod dot ravel
    swapaxes squeeze repeat take diagonal trace clip round searchsorted compress
    argsort argpartition nonzero put choose""".split():
    setattr(Tracer, _name, _from_function(getattr(np, _name)))


def _refusing(name: str) -> Method:
    def method(self: Tracer, *args: Any, **options: Any) -> Any:
        reject(True, f"the method .{name} of a traced array")

    return method


for _name in """byteswap tobytes tofile dump dumps setflags resize getfield setfield""".split():
    setattr(Tracer, _name, _refusing(_name))
for _name in ("strides", "ctypes", "data", "base"):
    setattr(Tracer, _name, property(_refusing(_name)))


def _as_tuple(args: tuple[Any, ...]) -> Any:
    """``x.reshape(2, 3)`` and ``x.reshape((2, 3))`` mean the same."""
    return args[0] if len(args) == 1 and (args[0] is None or np.ndim(args[0])) else args


def _reshape(self: Tracer, *dims: Any, order: str = "C", copy: Any = None) -> Tracer:
    mark_place(current())
    return shape.reshape(self, dims[0] if len(dims) == 1 else dims, order, copy=copy)


def _transpose(self: Tracer, *axes: Any) -> Tracer:
    mark_place(current())
    return shape.transpose(self, _as_tuple(axes) if axes else None)


def _copy(self: Tracer, order: str = "C") -> Tracer:
    reject(order not in ("C", "K"), f".copy(order={order!r})")
    return view(self) if self.scalar else copied(self, contiguous=order == "C")


def _flatten(self: Tracer, order: str = "C") -> Tracer:
    reject(order not in ("C", "F"), f".flatten(order={order!r})")
    return copied(shape.ravel(copied(self if order == "C" else shape.transpose(self))))


def _astype(
    self: Tracer,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Tracer:
    reject(order == "F", ".astype(order='F')")
    if not np.can_cast(self.dtype, dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {self.dtype} to {dtype} according to {casting!r}"
        )
    mark_place(current())
    if not copy and tape_dtype(dtype) == self.type.dtype:
        return self
    return view(astype(self, dtype)) if self.scalar else converted(self, dtype, order == "C")


def _fill(self: Tracer, value: Any) -> None:
    mark_place(current())
    copyto(self, value, "unsafe")


def _in_order(self: Tracer, *args: Any, **options: Any) -> None:
    """``x.sort()`` and ``x.partition(k)`` change the array itself."""
    mark_place(current())
    axis = options.get("axis", args[0] if args else -1)
    copyto(self, FUNCTIONS[np.sort](self, axis))


def _partition(self: Tracer, kth: Any, axis: int = -1, **options: Any) -> None:
    _in_order(self, axis)


def _view(self: Tracer, dtype: Any = None) -> Tracer:
    reject(dtype is not None and dtype != self.dtype, "the method .view with another dtype")
    return view(self)


# --- single numbers ----------------------------------------------------------------------------


def _item(self: Tracer, *index: Any) -> Tracer:
    """The element as a Python number; it stays traced."""
    if not index and self.size != 1:
        raise ValueError(at_place("can only convert an array of size 1 to a Python scalar"))
    place = (0,) if not index else index[0] if len(index) == 1 else index
    one = self[place] if isinstance(place, tuple) and len(index) > 1 else flat(self)[place]
    return BUILTINS[float](one) if one.type.is_float else as_python(reshape_value(one, ()))


def _tolist(self: Tracer) -> Any:
    mark_place(current())
    return [_tolist(x) for x in self] if self.shape else _item(self)


def _floor(self: Tracer) -> Tracer:
    return BUILTINS[int](np.floor(self))


def _deepcopy(self: Tracer, memo: Any = None) -> Tracer:
    return self if self.scalar else copied(self, contiguous=False)


for _name, _method in {
    "reshape": _reshape,
    "transpose": _transpose,
    "copy": _copy,
    "flatten": _flatten,
    "astype": _astype,
    "fill": _fill,
    "sort": _in_order,
    "partition": _partition,
    "view": _view,
    "item": _item,
    "tolist": _tolist,
    "flat": property(flat, set_flat),
    "__round__": lambda self, digits=None: BUILTINS[round](self, digits),
    "__trunc__": lambda self: BUILTINS[int](self),
    "__floor__": _floor,
    "__ceil__": lambda self: -_floor(-self),
    "conj": lambda self: self,
    "conjugate": lambda self: self,
    "__copy__": _deepcopy,
    "__deepcopy__": _deepcopy,
    "T": property(lambda self: _transpose(self)),
    "mT": property(lambda self: shape.matrix_transpose(self)),
    "real": property(lambda self: view(self)),
    "imag": property(lambda self: np.imag(self)),
}.items():
    setattr(Tracer, _name, _method)
