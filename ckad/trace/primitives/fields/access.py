"""``Z["U"]``, ``Z[i]``, and what is written into them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import UnsupportedFunctionError
from ckad.place import at_place
from ckad.trace.dispatch import FIELDS, put
from ckad.trace.memory.views import PartView
from ckad.trace.primitives.shape import view
from ckad.trace.values.fields import Fields
from ckad.trace.values.tracer import Tracer

# --- one field -----------------------------------------------------------------------------------


def field(x: Fields, name: str) -> Any:
    """``x[name]``: a view, or of an element what it holds."""
    whole = x.fields[_place(x, name)]
    if x.record.is_item and not isinstance(whole, Fields) and not whole.shape:
        return whole[()]
    return _shown(whole, x.inner(name), x.itemsize)


def _place(x: Fields, name: str) -> int:
    if name not in x.names:
        raise ValueError(at_place(f"no field of name {name}; there are {', '.join(x.names)}"))
    return x.names.index(name)


def _shown(whole: Any, inner: int, itemsize: int) -> Any:
    """A field as it lies between the others in NumPy's memory."""
    if isinstance(whole, Fields):
        return whole
    parts = getattr(whole, "parts", None)
    if parts is not None:
        return type(whole)(*(_shown(part, inner, itemsize) for part in parts))
    if not isinstance(whole, Tracer):
        return whole
    size = whole.itemsize * prod(whole.shape[whole.ndim - inner :])
    return view(whole, PartView(size, itemsize, inner))


def _several(x: Fields, names: Sequence[str]) -> Fields:
    fields = tuple(x.fields[_place(x, name)] for name in names)
    return Fields(x.record._replace(dtype=x.dtype[list(names)]), fields)


# --- elements ------------------------------------------------------------------------------------


def _getitem(x: Any, index: Any) -> Any:
    if not isinstance(x, Fields):
        _refuse("an array with named fields is an index")
    if isinstance(index, str):
        return field(x, index)
    if _is_names(index):
        return _several(x, index)
    if x.record.is_item:
        return field(x, x.names[operator.index(index)])
    entries, picks_one = _entries(x, index)
    found = tuple(
        whole[_within(whole, entries, x.inner(name), picks_one)]
        for name, whole in zip(x.names, x.fields, strict=True)
    )
    return Fields(x.record._replace(is_item=picks_one), found)


def _is_names(index: Any) -> bool:
    return isinstance(index, list) and bool(index) and all(type(i) is str for i in index)


def _entries(x: Fields, index: Any) -> tuple[list[Any], bool]:
    """An index without an ellipsis, and whether it is that of an element."""
    entries = list(index) if isinstance(index, tuple) else [index]
    used = sum(map(_axes_used, entries))
    if used > x.ndim:
        raise IndexError(
            at_place(f"too many indices: the array has {x.ndim} axes, {used} were indexed")
        )
    at = next((k for k, i in enumerate(entries) if i is Ellipsis), None)
    picks_one = at is None and used == x.ndim and all(map(_is_number, entries))
    if at is not None:
        entries[at : at + 1] = [slice(None)] * (x.ndim - used)
    return entries, picks_one


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return np.ndim(item) if getattr(item, "dtype", None) == np.dtype(bool) else 1


def _is_number(item: Any) -> bool:
    if item is None or isinstance(item, (slice, list)):
        return False
    return getattr(item, "ndim", 0) == 0 and getattr(item, "dtype", None) != np.dtype(bool)


def _within(whole: Any, entries: Sequence[Any], inner: int, picks_one: bool) -> tuple[Any, ...]:
    """The same index of a field; of one element it gives a view, not a number."""
    if isinstance(whole, Fields) and picks_one:
        return tuple(entries)
    return (*entries, *[slice(None)] * inner, *[Ellipsis] * picks_one)


def _setitem(x: Any, index: Any, new: Any) -> None:
    if not isinstance(x, Fields):
        _refuse("an array with named fields is written into one without, or is an index")
    if x.record.is_item and not isinstance(index, (str, list, tuple)):
        index = x.names[operator.index(index)]
    if isinstance(index, str):
        whole = x.fields[_place(x, index)]
        whole[...] = new
        return
    if _is_names(index):
        x, index = _several(x, index), ...
    entries, _ = _entries(x, index)
    values = _values(new, x)
    for name, whole, value in zip(x.names, x.fields, values, strict=True):
        whole[_within(whole, entries, x.inner(name), False)] = value


# --- what is written -----------------------------------------------------------------------------


def _values(new: Any, x: Fields) -> Sequence[Any]:
    """What an array gives to each field: by their order, as in NumPy."""
    if isinstance(new, list):
        return columns(new, x)
    if isinstance(new, tuple) or trees.is_record(new):
        found = new if isinstance(new, tuple) else trees.record_of(new)[1]
        if len(found) != len(x.names):
            raise ValueError(
                at_place(f"{len(found)} values are written into the fields {', '.join(x.names)}")
            )
        return found
    return [_spread(new, x.inner(name)) for name in x.names]


def _spread(new: Any, inner: int) -> Any:
    """An element for all that a field holds in its place."""
    return np.reshape(new, (*np.shape(new), *[1] * inner)) if np.ndim(new) and inner else new


def columns(rows: list[Any], x: Any) -> list[Any]:
    """Nested lists of elements as one nested list per field."""
    found = [columns(row, x) if isinstance(row, list) else _values(row, x) for row in rows]
    return [[row[k] for row in found] for k in range(len(x.names))]


def _refuse(what: str) -> NoReturn:
    raise UnsupportedFunctionError.here(
        f"{what}, which has no meaning in NumPy or none in ckad. Name its fields."
    )


put(operator.getitem, _getitem, FIELDS)
put(operator.setitem, _setitem, FIELDS)
