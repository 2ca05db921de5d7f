"""One-dimensional arrays of objects: lists of a length that stays, and noted as such.

What tells such an array from a list, arithmetic by elements and parts that are views, is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.place import at_place
from ckad.trace.source.libraries import is_hashable
from ckad.trace.source.memory.contents import read, read_deep
from ckad.trace.source.names.frame import ledger
from ckad.trace.source.names.instances import is_passing
from ckad.trace.values.array import Array
from ckad.trace.values.tracer import Tracer

_OBJECT = np.dtype(object)
_FILLED: dict[Any, Any] = {np.empty: None, np.zeros: 0, np.ones: 1}
_MAKERS: frozenset[Any] = frozenset({*_FILLED, np.array, np.asarray})


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


def maker(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Callable[..., Any] | None:
    """What makes such an array in place of a function of NumPy; None for any other."""
    if not is_hashable(callee) or callee not in _MAKERS or len(args) + len(options) != 2:
        return None
    if not args or not _is_object(options.get("dtype", args[-1])):
        return None
    if callee in _FILLED and _length(args[0]) is not None:
        return lambda shape, dtype: _noted([_FILLED[callee]] * (_length(shape) or 0))
    if callee in _FILLED and isinstance(args[0], (tuple, list)) and len(args[0]) > 1:
        raise UnrecordableError.here(
            "an array of objects (dtype=object) of several axes is made. Keep the objects in "
            "a list of lists, grid[i][j], or in a dict, grid[i, j], and numbers in an array."
        )
    if callee not in _FILLED and type(args[0]) in (list, tuple):
        read(args[0])
        if all(is_passing(x) or hasattr(x, "__dict__") for x in args[0]):
            return lambda items, dtype: _noted(list(items))
    return None


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


def condition(x: Any) -> Any:
    """What decides of ``if xs``: of such an array its only item, as of any."""
    if not is_object_array(x):
        return x
    if len(x) != 1:
        raise ValueError(
            at_place(
                "the truth value of an array of objects that has not one item is ambiguous. "
                "Use len(xs) > 0, or any(...) of the items."
            )
        )
    return x[0]


def called(callee: Any, given: Sequence[Any]) -> None:
    """An error where the result of a call is another for a list."""
    if not ledger().object_arrays or not given:
        return
    if callee is isinstance or callee is type:
        refuse("the class", given[0])
    elif callee in (np.asarray, np.append, np.asanyarray) and not _holds_others(given[0]):
        refuse(f"np.{callee.__name__}", given[0])


def _holds_others(items: Any) -> bool:
    """Whether a list of numbers is none of such arrays, for those of its length hold objects."""
    if type(items) is not list or not all(map(_is_number, items)):
        return False
    alike = (x for x in ledger().object_arrays.values() if len(x) == len(items))
    return not any(_is_number(item) for x in alike for item in x)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex, np.generic, np.ndarray, Array))


def looked_into(owner: Any, index: Any) -> None:
    """Note that ``owner[index]`` is read."""
    check_item(owner, index)
    read(owner)


def check_item(owner: Any, index: Any) -> None:
    """An error where ``owner[index]`` is a part, which would be a view."""
    if is_object_array(owner) and not isinstance(index, (int, np.integer, Tracer)):
        raise _refused("a part")


def check_deleted(owner: Any) -> None:
    if is_object_array(owner):
        raise ValueError(at_place("an array keeps its length: its elements cannot be deleted."))


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
    return UnrecordableError.here(
        f"{what} of an array of objects (dtype=object) is asked for; items alone are. Make a "
        "list of the objects, and arrays of the numbers that are computed with."
    )
