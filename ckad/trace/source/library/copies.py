"""``copy.copy`` and ``copy.deepcopy`` in a body: what a step copies is made by this step."""

from __future__ import annotations

import copy
import enum
from collections import defaultdict, deque
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import UnrecordableError
from ckad.trace.source.choices import Choice
from ckad.trace.source.libraries import is_library
from ckad.trace.source.memory import objects
from ckad.trace.source.memory.contents import is_in_buffers, read
from ckad.trace.source.names.closures import Closure
from ckad.trace.source.names.frame import ledger, made, region
from ckad.trace.source.outside.guard import ABSENT
from ckad.trace.source.outside.kinds import CONTAINERS, MAPPINGS, STATELESS, users
from ckad.trace.values.array import Array

#: What cannot change is its own copy, and functions and classes are by Python's rule.
_SHARED = (
    *(int, float, complex, str, bytes, type(None), range, frozenset, np.generic, np.dtype),
    *(type, FunctionType, BuiltinFunctionType, Closure, Choice, enum.Enum),
)
_OWN_WAYS = ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__")


_UNDERWAY = object()


class _Unknown(Exception):
    """It is not known how something is copied."""


def copied(callee: Any, args: Sequence[Any]) -> Any:
    """``callee(*args)`` of the two functions in a body; NotImplemented of any other, or where
    Python alone knows how."""
    deep = callee is copy.deepcopy
    if not (deep or callee is copy.copy) or len(args) != 1:
        return NotImplemented
    _check_one(args[0])
    if region() is None:
        return NotImplemented
    try:
        return _deep(args[0], {}) if deep else _one(args[0], lambda part: part)
    except _Unknown:
        return NotImplemented


def _check_one(x: Any) -> None:
    if type(x) is Choice and any(hasattr(known, "__dict__") for known in x.objects):
        raise UnrecordableError.here(
            "a copy is made of one of several objects, and which that is depends on a loop or "
            "a traced condition. Make a new object of what it holds."
        )


def _deep(x: Any, known: dict[int, Any]) -> Any:
    if id(x) not in known:
        known[id(x)] = _UNDERWAY
        known[id(x)] = _one(x, lambda part: _deep(part, known))
    found = known[id(x)]
    if found is _UNDERWAY:  # it holds itself
        raise _Unknown
    return found


def _one(x: Any, part: Any) -> Any:
    kind = type(x)
    _check_one(x)
    if isinstance(x, (Array, np.ndarray)):
        return copy.copy(x)
    if isinstance(x, _SHARED):
        return x
    if isinstance(x, tuple):
        return trees.with_items(x, [part(item) for item in x])
    return _of_container(x, part) if kind in CONTAINERS else _of_object(x, part)


def _of_container(x: Any, part: Any) -> Any:
    if is_in_buffers(x):
        raise _Unknown
    read(x)
    if type(x) in MAPPINGS:
        found = type(x)(x.default_factory) if type(x) is defaultdict else type(x)()
        for key, item in x.items():  # update() of a Counter would count them
            found[key] = part(item)
    elif type(x) is deque:
        found = deque(map(part, x), x.maxlen)
    else:
        found = type(x)(map(part, x))
    return made(found)


def _of_object(x: Any, part: Any) -> Any:
    """An object whose attributes are all that it is."""
    kind = type(x)
    plain = not is_library(kind.__module__) and type(getattr(x, "__dict__", None)) is dict
    slots = any(vars(base).get("__slots__") for base in kind.__mro__[:-1])
    if not plain or slots or any(users(kind, name) is not ABSENT for name in _OWN_WAYS):
        raise _Unknown
    if any(base not in STATELESS and is_library(base.__module__) for base in kind.__mro__):
        raise _Unknown
    found = object.__new__(kind)
    ledger().made[id(found)] = made(found)
    for name in vars(x):
        vars(found)[name] = part(objects.read(x, name))
    return found
