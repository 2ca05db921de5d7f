"""Whether two of Python's numbers are one object, which ``is`` asks."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ckad.errors import ConcreteValueError
from ckad.trace.integers.affine import range_of
from ckad.trace.source.memory.twins import is_one
from ckad.trace.source.values import is_weak, undecided_truth
from ckad.trace.values.tracer import Tracer

#: The integers of which CPython makes one object each.
_SMALL = range(-5, 257)


def are_one_object(one: Any, other: Any) -> Any:
    """``one is other``; an error where a loop, a branch or a traced value decides it."""
    if one is other or Tracer not in (type(one), type(other)):
        return is_one(one, other)
    kinds = _kind(one), _kind(other)
    if "" in kinds or kinds[0] != kinds[1]:
        return is_one(one, other)
    if any(type(x) is Tracer and x.classes for x in (one, other)):
        undecided_truth()
    if kinds[0] == "f" or not (_is_small(one) or _is_small(other)):
        _refuse()
    return np.equal(one, other)


def are_one_item(one: Any, other: Any) -> Any:
    """The same of items that are compared by == next, which says it of numbers."""
    return False if _kind(one) == _kind(other) != "" else are_one_object(one, other)


def _kind(x: Any) -> str:
    if type(x) is Tracer:
        return x.dtype.kind if x.scalar and is_weak(x) and x.dtype.kind in "if" else ""
    return {int: "i", float: "f"}.get(type(x), "")


def _is_small(x: Any) -> bool:
    least, greatest = range_of(x)
    return least in _SMALL and greatest in _SMALL


def _refuse() -> NoReturn:
    raise ConcreteValueError.here(
        "whether two of Python's numbers are one object depends here on traced values, and "
        "`is` asks that. Compare them by ==."
    )
