"""One-dimensional arrays of objects: lists of a length that stays, and noted as such.

What tells such an array from a list, arithmetic by elements and parts that are views, is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.place import at_place
from ckad.trace import dispatch
from ckad.trace.source.memory.contents import read, read_deep
from ckad.trace.source.names.frame import ledger
from ckad.trace.source.names.instances import is_passing
from ckad.trace.values.tracer import Tracer

_OBJECT = np.dtype(object)


def _is_object(dtype: Any) -> bool:
    try:
        return dtype is not None and np.dtype(dtype) == _OBJECT
    except TypeError:
        return False


def _length(shape: Any) -> int | None:
    """That of an array with one axis, as far as it is known."""
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    if len(sizes) != 1 or isinstance(sizes[0], Tracer):
        return None
    return operator.index(sizes[0])


def _noted(items: list[Any]) -> list[Any]:
    ledger().object_arrays[id(items)] = items
    return items


def _filled(
    plain: Callable[..., Any], first: Any, shape: Any, dtype: Any = None, *rest: Any, **options: Any
) -> Any:
    """``np.empty`` and its like."""
    n = _length(shape) if _is_object(dtype) and not rest and not options else None
    return plain(shape, dtype, *rest, **options) if n is None else _noted([first] * n)


def _of_items(plain: Callable[..., Any], x: Any, dtype: Any = None, **options: Any) -> Any:
    """``np.array`` of objects of the user's classes."""
    of_objects = _is_object(dtype) and type(x) in (list, tuple) and not options
    if of_objects:
        read(x)
        of_objects = all(is_passing(item) or hasattr(item, "__dict__") for item in x)
    return _noted(list(x)) if of_objects else plain(x, dtype, **options)


for _function, _first in ((np.empty, None), (np.zeros, 0), (np.ones, 1)):
    dispatch.put(_function, partial(_filled, dispatch.plain(_function), _first))
for _maker in (np.array, np.asarray):
    dispatch.put(_maker, partial(_of_items, dispatch.plain(_maker)))


def is_object_array(x: Any) -> bool:
    return type(x) is list and id(x) in ledger().object_arrays


def attribute(owner: list[Any], name: str) -> Any:
    """``owner.name`` of an array of objects."""
    n = len(owner)
    known = {"size": n, "shape": (n,), "ndim": 1, "dtype": _OBJECT}
    if name in known:
        return known[name]
    if name in ("copy", "tolist"):
        return lambda: _noted([*owner]) if name == "copy" else [*owner]
    raise _refused(f".{name}")


def called(callee: Any, given: Sequence[Any]) -> None:
    """An error where the result of a call is another for a list."""
    if not ledger().object_arrays or not given:
        return
    if callee is isinstance or callee is type:
        refuse("the class", given[0])
    elif callee in (np.asarray, np.append, np.asanyarray):
        refuse(f"np.{callee.__name__}", given[0])


def looked_into(owner: Any, index: Any) -> None:
    """Note that ``owner[index]`` is read."""
    if is_object_array(owner) and not isinstance(index, (int, np.integer, Tracer)):
        raise _refused("a part")
    read(owner)


def operands(*given: Any) -> None:
    """Note that operands are looked into; an error where elements are meant."""
    refuse("an operator", *given)
    read_deep(given)


def may_be(*given: Any) -> bool:
    """Whether one of these is a list that is such an array, or may be what a loop or branch has
    made of one: one as long as such an array is."""
    known = ledger().object_arrays
    if not known or not any(type(x) is list for x in given):
        return False
    lengths = {len(x) for x in known.values()}
    return any(type(x) is list and len(x) in lengths for x in given)


def refuse(what: str, *given: Any) -> None:
    """An error where a list may be such an array, for what is otherwise with lists."""
    if may_be(*given):
        raise _refused(what)


def _refused(what: str) -> UnrecordableError:
    return UnrecordableError(
        at_place(
            f"{what} of an array of objects (dtype=object) is asked for; items alone are. Make a "
            "list of the objects, and arrays of the numbers that are computed with."
        )
    )
