"""Recordings that are used again, for as long as recording anew would give the same.

That is so if the function reads nothing but its arguments and what its `Guard` watches, if all of
that is as it was, and if recording it changed nothing of it.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import pack
from types import FunctionType, NoneType
from typing import Any

import numpy as np

from ckad import locks
from ckad.tape.tape import Tape
from ckad.trace.memory.opened import is_tracing
from ckad.trace.record import Arguments, Recording, sharing
from ckad.trace.source.control.notes import is_noting
from ckad.trace.source.purity import is_harmless_text
from ckad.transforms.guard import Guard, Unwatchable

#: Recordings that are kept.
KEPT = 32
#: Tapes above this size, in bytes, are recorded anew: that takes a small part of what they run.
LARGEST_TAPE = 2**20
_FLOATS = {float, complex, *(t for t in np.sctypeDict.values() if np.dtype(t).kind in "fc")}
_STATIC = {int, bool, NoneType, *(t for t in np.sctypeDict.values() if np.dtype(t).kind in "iub")}
_kept: OrderedDict[Hashable, Recorded] = OrderedDict()
_lock = locks.lock()


@dataclass(frozen=True, eq=False)
class Recorded:
    """A function recorded on arguments of one kind, and what was derived from that."""

    form: Arguments  # without the leaves, which may be large
    recording: Recording
    tape: Tape  # simplified
    guard: Guard | None
    derived: dict[Any, Any] = field(default_factory=dict)


class _Unkeyable(Exception):
    """An argument is of a kind whose recordings are not told apart."""


def key_of(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hashable | None:
    """What calls have in common that may use one recording; None for one that has its own.

    A call that is itself being recorded has its own: its arguments or its function may hold traced
    values. So has one whose recording is to be noted.
    """
    if type(function) not in (FunctionType, functools.partial) or is_tracing() or is_noting():
        return None
    arrays: list[np.ndarray] = []
    try:
        kinds = tuple([_kind(x, arrays) for x in args])
        options = tuple([(k, _constant(x)) for k, x in kwargs.items()]) if kwargs else ()
    except _Unkeyable:
        return None
    if len(arrays) > 1 and _share_memory(arrays):
        return None
    # constants are computed while recording, with errors handled as asked for
    return function, kinds, options, tuple(np.geterr().values())


def _kind(x: Any, arrays: list[np.ndarray]) -> object:
    """What a recording knows of an argument; the numbers in arrays and of floats it does not."""
    kind = type(x)
    if kind in _FLOATS:
        return kind
    if kind is np.ndarray:
        arrays.append(x)
        return x.dtype, x.shape, x.flags.c_contiguous or x.strides
    if kind is tuple or kind is list:
        return kind, tuple([_kind(item, arrays) for item in x])
    if kind is dict:
        return kind, tuple([(_constant(k), _kind(item, arrays)) for k, item in x.items()])
    return _constant(x)


def _constant(x: Any) -> object:
    """The value itself, with its type: a number that a recording takes as it is."""
    kind = type(x)
    if kind in _STATIC or (kind is str and is_harmless_text(x)):
        return kind, x
    if kind is float:
        return kind, pack("d", x)  # tells -0.0 from 0.0; a NaN is equal to itself
    raise _Unkeyable


def _share_memory(arrays: Sequence[np.ndarray]) -> bool:
    if all(x.flags.owndata for x in arrays) and len({id(x) for x in arrays}) == len(arrays):
        return False
    return bool(sharing(arrays))


def find(key: Hashable) -> Recorded | None:
    """The recording kept under ``key``, if recording anew would give the same."""
    with _lock:
        found = _kept.get(key)
        if found is not None:
            _kept.move_to_end(key)
    return found if found and found.guard and found.guard.holds() else None


def guard_of(function: Any) -> Guard | None:
    """What to hold a recording of ``function`` against; None if that cannot be told."""
    try:
        return Guard(function)
    except (Unwatchable, RecursionError):
        return None


def keep(key: Hashable, recorded: Recorded) -> None:
    """Keep a recording under ``key``, unless recording it changed what its guard watches."""
    if recorded.guard is None or not recorded.guard.holds():
        return
    if recorded.recording.tape.nbytes > LARGEST_TAPE:
        return
    with _lock:
        _kept[key] = recorded
        _kept.move_to_end(key)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)


def clear() -> None:
    """Forget all recordings."""
    with _lock:
        _kept.clear()
