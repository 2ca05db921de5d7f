"""Parts looked at in another arrangement, new ones, and the methods of arrays on parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.trace import arrays
from ckad.trace.arrays import Array
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import PART, Function, implements, put
from ckad.trace.memory.layout import contiguity
from ckad.trace.primitives.part.access import write_part
from ckad.trace.primitives.shape import copied, view_or_copy
from ckad.trace.values.apply import astype
from ckad.trace.values.complex import as_complex, part_type
from ckad.trace.values.part import Mask, Part, unsupported
from ckad.trace.values.tracer import fresh, value

# --- shape and creation ------------------------------------------------------------------------


@implements(np.copy, kind=PART)
def copy(a: Any, order: str = "K", subok: bool = False) -> Array:
    return _copied(a, None, order)


@implements(np.array, kind=PART)
def array(a: Any, dtype: Any = None, *, copy: Any = True, **options: Any) -> Array:
    if isinstance(a, (list, tuple)):
        rows: Any = unsupported("an option of np.array") if options else np.stack(a)
        return rows if dtype is None else rows.astype(dtype)
    if options.get("ndmin", 0) > a.ndim or options.get("subok"):
        unsupported("an option of np.array")
    order = options.get("order", "K")
    return _copied(a, dtype, order) if copy is True else _asarray(a, dtype, order)


@implements(np.asarray, np.asanyarray, kind=PART)
def _asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None
) -> Array:
    if isinstance(a, (list, tuple)):
        return array(a, dtype)
    if copy or (dtype is not None and np.dtype(dtype) != a.dtype):
        return _copied(a, dtype, order)
    return a if order in (None, "A", "K") or isinstance(a.where, Mask) else _lying_in(a, order)


@implements(np.real, kind=PART)
def real(val: Any) -> Any:
    return val


@implements(np.ascontiguousarray, kind=PART)
def _contiguous(a: Any, dtype: Any = None) -> Array:
    return _asarray(a, dtype, "C")


def _copied(a: Any, dtype: Any, order: Any) -> Array:
    if a.ndim > 1 and order not in (None, "K", "C"):
        unsupported("an option of np.array")
    if dtype is not None and np.dtype(dtype).kind == "c":
        return as_complex(_copied(a, part_type(dtype), None))
    return a.over(copied(a.base if dtype is None else astype(a.base, dtype)))


def _lying_in(a: Part, order: str) -> Array:
    """``a`` itself where it surely lies row by row; with too few elements it may anyway."""
    if a.ndim > 1 and order != "C":
        unsupported("an option of np.array")
    cut = [k for k, extent in enumerate(a.where) if extent is not None]
    rows_alone = cut in ([], [0])
    return a.over(view_or_copy(a.base, a.base, (rows_alone and contiguity(a.base)) or None))


@implements(np.transpose, np.permute_dims, kind=PART)
def transpose(a: Any, axes: Any = None) -> Part:
    order = range(a.ndim)[::-1] if axes is None else [axis_of(k, a.ndim) for k in axes]
    where, base_order = a.where.transposed(order)
    return Part(np.transpose(a.base, tuple(base_order)), where, a.tame)


@implements(np.expand_dims, kind=PART)
def expand_dims(a: Any, axis: Any) -> Any:
    k = axis_of(axis, a.ndim + 1)
    return a[(*[slice(None)] * k, None)]


def _at_least(rank: int, function: Any, *indices: Any) -> None:
    """``indices``: by which a part gets its axes, for each smaller number of them."""

    def raised(*xs: Any) -> Any:
        found = [_raised(x) if isinstance(x, Part) else function(x) for x in xs]
        return found[0] if len(found) == 1 else tuple(found)

    def _raised(x: Part) -> Any:
        return x if x.ndim >= rank else x[indices[x.ndim - 1]]

    put(function, raised, PART)


_ALL = slice(None)
_at_least(1, np.atleast_1d)
_at_least(2, np.atleast_2d, (None, _ALL))
_at_least(3, np.atleast_3d, (None, _ALL, None), (_ALL, _ALL, None))


@implements(np.ravel, kind=PART)
def ravel(a: Any, order: str = "C") -> Any:
    return a if a.ndim == 1 else unsupported("np.ravel of a matrix")


@implements(np.reshape, kind=PART)
def reshape(a: Any, /, shape: Any = None, order: str = "C", **options: Any) -> Any:
    dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if a.ndim == 1 and sum(d == 1 for d in dims) == len(dims) - 1:
        return a[tuple(None if d == 1 else slice(None) for d in dims)]
    return unsupported("np.reshape to this shape")


for _function in (np.zeros_like, np.ones_like, np.empty_like):

    @implements(_function, kind=PART)
    def _filled_like(a: Any, dtype: Any = None, f: Any = _function, **options: Any) -> Part:
        return Part(f(a.base, dtype, **options), a.where, tame=True)


@implements(np.full_like, kind=PART)
def full_like(a: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    like = np.empty_like(a, dtype, **options)
    write_part(like, fill_value)
    return like


def _retyped(x: Part, dtype: Any) -> Part:
    base = astype(x.base, dtype)
    return x if base is x.base else x.over(base)


put(arrays.retyped, _retyped, PART)
put(arrays.own, lambda x: x.over(fresh(value(x.base), scalar=False)), PART)
put(arrays.copied, copy, PART)

# --- methods of arrays -------------------------------------------------------------------------


def _astype(self: Any, dtype: Any, *, copy: bool = True, **options: Any) -> Any:
    return _copied(self, dtype, None) if copy else _asarray(self, dtype)


_METHODS: dict[Any, Function] = {
    np.ndarray.copy: copy,
    np.ndarray.flatten: lambda self: copy(ravel(self)),
    np.ndarray.astype: _astype,
    np.ndarray.real: lambda self: self,
    np.ndarray.conj: lambda self: self,
    np.ndarray.conjugate: lambda self: self,
}
for _key, _method in _METHODS.items():
    put(_key, _method, PART)
