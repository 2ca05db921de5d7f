"""The methods and operators of complex arrays, on their tracers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ckad.trace.complex_functions
import ckad.trace.complex_linalg
import ckad.trace.complex_products
import ckad.trace.complex_scalars
import ckad.trace.fourier
import ckad.trace.methods  # noqa: F401  (the imports fill the tables)
from ckad.trace.complex_numbers import HANDLERS, ComplexTracer, as_complex, discarded, part_type
from ckad.trace.functions.register import reject
from ckad.trace.memory.context import current, mark_place
from ckad.trace.tracer import Tracer

Method = Callable[..., Any]


def _from_function(function: Any) -> Method:
    def method(self: ComplexTracer, *args: Any, **options: Any) -> Any:
        mark_place(current())
        return HANDLERS[function](self, *args, **options)

    return method


for _name in """sum prod mean var std any all cumsum dot ravel swapaxes squeeze repeat take
    diagonal trace round""".split():
    setattr(ComplexTracer, _name, _from_function(getattr(np, _name)))


def _by_parts(name: str) -> Method:
    def method(self: ComplexTracer, *args: Any, **options: Any) -> ComplexTracer:
        return ComplexTracer(*(getattr(part, name)(*args, **options) for part in self.parts))

    return method


for _name in ("reshape", "transpose", "copy", "flatten", "compress", "__copy__", "__deepcopy__"):
    setattr(ComplexTracer, _name, _by_parts(_name))
for _name in ("T", "mT"):
    setattr(
        ComplexTracer,
        _name,
        property(lambda self, name=_name: ComplexTracer(*(getattr(x, name) for x in self.parts))),
    )


def _refusing(name: str) -> Method:
    def method(self: ComplexTracer, *args: Any, **options: Any) -> Any:
        reject(True, f"the method .{name} of a traced complex array")

    return method


for _name in """put sort argsort partition argpartition choose byteswap tobytes tofile dump dumps
    setflags resize getfield setfield view max min argmax argmin cumprod clip searchsorted nonzero
    """.split():
    setattr(ComplexTracer, _name, _refusing(_name))
for _name in ("flat", "strides", "ctypes", "data", "base"):
    setattr(ComplexTracer, _name, property(_refusing(_name)))


def _astype(self: ComplexTracer, dtype: Any, *args: Any, **options: Any) -> Any:
    if np.dtype(dtype).kind == "c":
        part = part_type(dtype)
        return ComplexTracer(*(x.astype(part, *args, **options) for x in self.parts))
    if np.dtype(dtype) == bool:
        return np.not_equal(self, 0)
    return discarded(self).astype(dtype, *args, **options)


def _fill(self: ComplexTracer, value: Any) -> None:
    self[...] = value


def _conjugated(self: ComplexTracer) -> ComplexTracer:
    return np.conjugate(self)


for _name, _method in {
    "astype": _astype,
    "fill": _fill,
    "conj": _conjugated,
    "conjugate": _conjugated,
}.items():
    setattr(ComplexTracer, _name, _method)


# --- Python's operators ------------------------------------------------------------------------


def _operator(ufunc: Any, turned: bool = False) -> Method:
    def method(self: ComplexTracer, other: Any) -> Any:
        return ufunc(other, self) if turned else ufunc(self, other)

    return method


def _in_place(ufunc: Any) -> Method:
    def method(self: ComplexTracer, other: Any) -> Any:
        return ufunc(self, other) if self.scalar else ufunc(self, other, out=self)

    return method


for _name, _ufunc in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
}.items():
    setattr(ComplexTracer, f"__{_name}__", _operator(_ufunc))
    setattr(ComplexTracer, f"__r{_name}__", _operator(_ufunc, turned=True))
    setattr(ComplexTracer, f"__i{_name}__", _in_place(_ufunc))

for _name, _ufunc in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}.items():
    setattr(ComplexTracer, f"__{_name}__", _operator(_ufunc))

for _name, _ufunc in {"neg": np.negative, "pos": np.positive, "abs": np.absolute}.items():
    setattr(ComplexTracer, f"__{_name}__", lambda self, f=_ufunc: f(self))

ComplexTracer.__hash__ = object.__hash__  # type: ignore[method-assign]


# --- a real array where a complex one is asked for ---------------------------------------------


def _real_astype(self: Tracer, dtype: Any, *args: Any, **options: Any) -> Any:
    if np.dtype(dtype).kind != "c":
        return _convert(self, dtype, *args, **options)
    whole = as_complex(self, part_type(dtype))
    return whole if self.scalar else whole.copy()


_convert = Tracer.astype  # type: ignore[attr-defined]
Tracer.astype = _real_astype  # type: ignore[attr-defined]
