"""Parts looked at in another arrangement, new ones, and the methods of arrays on parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.trace import arrays
from ckad.trace.arrays import Array
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import PART, Function, implements, put
from ckad.trace.primitives.part.access import write_part
from ckad.trace.primitives.shape import copied
from ckad.trace.values.apply import astype, tape_dtype
from ckad.trace.values.part import Part, unsupported
from ckad.trace.values.tracer import fresh, value

# --- shape and creation ------------------------------------------------------------------------


@implements(np.copy, np.ascontiguousarray, np.asarray, np.array, np.asanyarray, kind=PART)
def copy(a: Any, dtype: Any = None, copy: Any = True, **options: Any) -> Array:
    if isinstance(a, (list, tuple)):
        rows: Any = unsupported("an option of np.array") if options else np.stack(a)
        return rows if dtype is None else rows.astype(dtype)
    turned = a.ndim > 1 and options.get("order", "K") not in ("K", "C")
    if turned or options.get("ndmin", 0) > a.ndim or options.get("subok"):
        unsupported("an option of np.array")
    return a.over(copied(a.base if dtype is None else astype(a.base, tape_dtype(dtype))))


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


_METHODS: dict[Any, Function] = {
    np.ndarray.copy: copy,
    np.ndarray.flatten: lambda self: copy(ravel(self)),
    np.ndarray.astype: lambda self, dtype, **options: copy(self, dtype),
    np.ndarray.real: lambda self: self,
    np.ndarray.conj: lambda self: self,
    np.ndarray.conjugate: lambda self: self,
}
for _key, _method in _METHODS.items():
    put(_key, _method, PART)
