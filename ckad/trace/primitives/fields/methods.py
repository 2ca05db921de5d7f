"""The methods and functions that do the same with every field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.trace.dispatch import FIELDS, call, put, reject
from ckad.trace.primitives.fields.creation import with_attributes
from ckad.trace.values.fields import Fields


def _by_fields(key: Any, whole: bool = False) -> Callable[..., Any]:
    """``whole`` says that it does not matter how many axes there are."""

    def function(x: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(x, Fields):
            x = call(np.asarray, (x,), {})
        axes = any(map(x.inner, x.names)) and not whole
        reject(axes, f"np.{key.__name__} of an array with a field that has axes of its own")
        return Fields(x.record, tuple(call(key, (f, *args), options) for f in x.fields))

    return function


for _key in (np.ndarray.copy, np.ndarray.__copy__, np.ndarray.__deepcopy__, np.copy):
    put(_key, _by_fields(_key, whole=True), FIELDS)
_BY_FIELDS: list[Any] = [
    *(np.ndarray.reshape, np.ndarray.transpose, np.ndarray.flatten, np.ndarray.T),
    *(np.reshape, np.ravel, np.transpose, np.squeeze, np.roll, np.flip, np.repeat, np.take),
]
for _own in _BY_FIELDS:
    put(_own, _by_fields(_own), FIELDS)


def _concatenate(arrays: Any, axis: int = 0) -> Fields:
    """Along the first axis, of arrays of one dtype."""
    first, *others = (call(np.asarray, (x,), {}) for x in arrays)
    alike = axis == 0 and all(x.dtype == first.dtype for x in others)
    reject(not alike, "np.concatenate of arrays with other fields, or along another axis")
    columns = zip(*(x.fields for x in (first, *others)), strict=True)
    return Fields(first.record, tuple(np.concatenate(x) for x in columns))


def _view(x: Any, dtype: Any = None, type: Any = None) -> Any:
    wanted = dtype if type is None else type
    if wanted in (None, np.ndarray, np.recarray):
        return with_attributes(x, wanted is np.recarray) if wanted else x
    reject(True, ".view of an array with named fields (np.stack([a['x'], a['y']], -1) copies them)")
    return None


def _tolist(x: Any, *index: Any) -> Any:
    """Of an element: what it holds."""
    reject(index or not x.record.is_item, ".tolist() of an array with named fields")
    return tuple(x)


put(np.concatenate, _concatenate, FIELDS)
put(np.ndarray.view, _view, FIELDS)
put(np.ndarray.tolist, _tolist, FIELDS)
put(np.ndarray.item, _tolist, FIELDS)
put(np.shape, lambda a: a.shape, FIELDS)
put(np.ndim, lambda a: a.ndim, FIELDS)
put(np.size, lambda a, axis=None: a.size if axis is None else a.shape[axis], FIELDS)
