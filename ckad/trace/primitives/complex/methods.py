"""The methods of complex arrays, and their elements."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.trace.dispatch import COMPLEX, Function, call, cell, put
from ckad.trace.memory.views import PartView
from ckad.trace.primitives.shape import view
from ckad.trace.values.complex import (
    ComplexTracer,
    as_complex,
    discarded,
    halves,
    part_type,
)
from ckad.trace.values.tracer import Tracer


def _by_parts(key: Any) -> Callable[..., ComplexTracer]:
    name = key.__name__

    def method(self: ComplexTracer, *args: Any, **options: Any) -> ComplexTracer:
        return ComplexTracer(*(getattr(part, name)(*args, **options) for part in self.parts))

    return method


def _astype(self: Any, dtype: Any, *args: Any, **options: Any) -> Any:
    if not isinstance(self, ComplexTracer):
        return _as_complex(self, dtype)
    if np.dtype(dtype).kind == "c":
        part = part_type(dtype)
        return ComplexTracer(*(x.astype(part, *args, **options) for x in self.parts))
    if np.dtype(dtype) == bool:
        return np.not_equal(self, 0)
    return discarded(self).astype(dtype, *args, **options)


def _as_complex(x: Any, dtype: Any) -> Any:
    """A real array where a complex one is asked for."""
    whole = as_complex(x, part_type(dtype))
    return whole if x.scalar else whole.copy()


def _shown(part: Any) -> Any:
    """A part of an array is a view of it; one of a number of Python's is such a number."""
    return view(part, PartView()) if isinstance(part, Tracer) and not part.weak else part


def _conjugate(self: ComplexTracer) -> Any:
    real, imag = self.parts
    is_python = getattr(imag, "weak", False)
    return ComplexTracer(real, call(float, (-imag,), {})) if is_python else np.conjugate(self)


def _own(key: Any, x: Any) -> Callable[..., Any]:
    """What is done with ``x`` where nothing else is complex."""
    function = cell(key, x.kind)
    assert function is not None
    return function


def _getitem(x: Any, index: Any) -> Any:
    if not isinstance(x, ComplexTracer):
        return _own(operator.getitem, x)(x, index)
    return ComplexTracer(*(part[index] for part in x.parts))


def _setitem(x: Any, index: Any, new: Any) -> None:
    if not isinstance(x, ComplexTracer):
        _own(operator.setitem, x)(x, index, discarded(new))
        return
    for part, half in zip(x.parts, halves(new), strict=True):
        part[index] = half


for _key in (np.ndarray.copy, np.ndarray.flatten, np.ndarray.__copy__, np.ndarray.__deepcopy__):
    put(_key, _by_parts(_key), COMPLEX)
_METHODS: dict[Any, Function] = {
    np.ndarray.astype: _astype,
    np.ndarray.real: lambda self: _shown(self.parts[0]),
    np.ndarray.imag: lambda self: _shown(self.parts[1]),
    np.ndarray.conj: _conjugate,
    np.ndarray.conjugate: _conjugate,
    operator.getitem: _getitem,
    operator.setitem: _setitem,
}
for _key, _method in _METHODS.items():
    put(_key, _method, COMPLEX)
