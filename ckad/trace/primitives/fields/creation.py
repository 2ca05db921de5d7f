"""New arrays with named fields: ``np.zeros(n, dtype=[("U", float)])`` and its like."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import DtypeError
from ckad.trace.dispatch import FIELDS, Traced, always, call, implements, put, reject
from ckad.trace.values.fields import Fields

#: dtype kinds of what a field may hold
_NUMBERS = "fiubc"


def of_type(
    record: trees.RecordType, make: Callable[[str, np.dtype, tuple[int, ...]], Any]
) -> Fields:
    """An array whose fields are made of their name, element type and own axes."""
    fields = []
    for name in record.dtype.names or ():
        base, inner = record.dtype[name].subdtype or (record.dtype[name], ())
        if base.kind not in _NUMBERS and base.names is None:
            raise DtypeError.here(
                f"the field {name!r} holds {base}, and ckad computes with numbers. Leave it "
                "out of the array, and keep it in a list or an array of its own."
            )
        fields.append(make(name, base, inner))
    return Fields(record, tuple(fields))


def _lengths(shape: Any) -> tuple[int, ...]:
    one = not isinstance(shape, (tuple, list))
    return tuple(map(operator.index, (shape,) if one else shape))


def _filled(key: Any, shape: Any, dtype: Any, fill: tuple[Any, ...] = ()) -> Fields:
    lengths = _lengths(shape)
    return of_type(
        trees.RecordType(np.dtype(dtype)),
        lambda name, base, inner: call(key, ((*lengths, *inner), *fill, base), {}),
    )


def _constant(key: Any) -> Callable[..., Fields]:
    def create(shape: Any, dtype: Any, order: str = "C", **options: Any) -> Fields:
        reject(order != "C", f"order={order!r} of an array with named fields")
        return _filled(key, shape, dtype)

    return create


for _key in (np.zeros, np.ones, np.empty):
    put(_key, _constant(_key), FIELDS)


def _full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Fields:
    made = _filled(np.zeros, shape, fill_value.dtype if dtype is None else dtype)
    listed = isinstance(fill_value, (tuple, list))  # no element: an array for every field
    made[...] = call(np.asarray, (fill_value,), {}) if listed else fill_value
    return made


put(np.full, _full, FIELDS)


def _ndarray(shape: Any, dtype: Any = float, *layout: Any, **options: Any) -> Fields:
    reject(any(x is not None for x in layout) or options, "an array with a buffer or strides")
    return _filled(np.zeros, shape, dtype)


def _recarray(shape: Any, dtype: Any = None, *layout: Any, **options: Any) -> Any:
    return with_attributes(_ndarray(shape, dtype, *layout, **options))


put(np.ndarray, _ndarray, FIELDS)
put(np.recarray, _recarray, FIELDS)


def with_attributes(x: Any, wanted: bool = True) -> Any:
    """The same array as ``np.recarray``, whose fields are attributes."""
    return Fields(x.record._replace(has_attributes=wanted), x.fields)


# --- *_like --------------------------------------------------------------------------------------


def _like(key: Any) -> Callable[..., Any]:
    def create(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
    ) -> Any:
        new_type = a.dtype if dtype is None else dtype
        return call(key, (np.shape(a) if shape is None else shape, new_type), {})

    return create


put(np.zeros_like, _like(np.zeros), FIELDS)
put(np.ones_like, _like(np.ones), FIELDS)
put(np.empty_like, _like(np.empty), FIELDS)


@implements(np.full_like, kind=FIELDS)
def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    new_type = a.dtype if dtype is None else dtype
    return _full(np.shape(a) if shape is None else shape, fill_value, new_type)


# --- from what there is --------------------------------------------------------------------------


def lifted(x: Any) -> Fields:
    """A plain array as one whose fields can be written."""
    record, fields = trees.record_of(x)
    values = iter(fields)
    return of_type(record, lambda name, base, inner: call(np.array, (next(values),), {}))


def _array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    ndmin: int = 0,
    order: Any = None,
    **options: Any,
) -> Any:
    reject(ndmin, "np.array with ndmin= of an array with named fields")
    reject(order not in (None, "K", "C"), "an array with named fields in another order")
    new_type = None if dtype is None else np.dtype(dtype)
    if isinstance(object, Fields) and new_type in (None, object.dtype):
        if not copy and order != "C":
            return object
        laid = np.array if copy else np.asarray
        fields = (call(laid, (field,), {"order": order}) for field in object.fields)
        return Fields(object.record, tuple(fields))
    if not _holds_traced(object):
        plain = np.array(object, new_type)
        return lifted(plain) if _is_of_numbers(plain.dtype) else plain
    if new_type is None or new_type.names is None:
        reject(True, "np.array of elements of an array with named fields, without their dtype")
    return _of_rows(object, new_type)


def _holds_traced(x: Any) -> bool:
    return any(map(_holds_traced, x)) if isinstance(x, (list, tuple)) else isinstance(x, Traced)


def _is_of_numbers(dtype: np.dtype) -> bool:
    base = dtype.base
    if base.names is not None:
        return all(_is_of_numbers(base[name]) for name in base.names)
    return base.kind in _NUMBERS


def _of_rows(rows: Any, dtype: Any) -> Fields:
    """An array of nested lists of elements, or of another array."""
    shape: tuple[int, ...] = () if isinstance(rows, (tuple, list)) else rows.shape
    first = rows
    while isinstance(first, list) and first:
        shape, first = (*shape, len(first)), first[0]
    made = _filled(np.zeros, shape, dtype)
    made[...] = rows
    return made


def _asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None) -> Any:
    return _array(a, dtype, copy=bool(copy), order=order)


put(np.array, _array, FIELDS)
for _same in (np.asarray, np.asanyarray):
    put(_same, _asarray, FIELDS)
put(np.ascontiguousarray, lambda a, dtype=None: _asarray(a, dtype, "C"), FIELDS)


# --- records -------------------------------------------------------------------------------------


def _record_array(obj: Any, dtype: Any = None, **options: Any) -> Any:
    reject(options, f"np.rec.array with {min(options, default='')}=")
    return with_attributes(_array(obj, dtype))


def _from_arrays(arrays: Any, dtype: Any = None, names: Any = None) -> Any:
    """``np.rec.fromarrays``."""
    listed = names.split(",") if isinstance(names, str) else names
    columns_ = [call(np.asarray, (x,), {}) for x in arrays]
    if dtype is None:
        listed = listed or [f"f{k}" for k in range(len(columns_))]
        dtype = [(n.strip(), x.dtype) for n, x in zip(listed, columns_, strict=True)]
    made = _filled(np.zeros, columns_[0].shape[: columns_[0].ndim], dtype)
    made[...] = tuple(columns_)
    return with_attributes(made)


put(np.rec.array, _record_array, FIELDS)
for _kind in (0, FIELDS):
    put(np.rec.fromarrays, _from_arrays, _kind)
always(np.recarray, np.rec.array, np.rec.fromarrays)
