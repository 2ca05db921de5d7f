"""Recordings that are used again, for as long as recording anew would give the same.

That is so if the function reads nothing but its arguments and what its `Guard` watches, if all of
that is as it was, and if recording it changed nothing of it.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import pack
from types import FunctionType, MethodType, NoneType
from typing import Any

import numpy as np

from ckad import locks, trees
from ckad.patterns import attributes_of, is_sparse
from ckad.tape.tape import Tape
from ckad.trace.arguments import Arguments
from ckad.trace.given import computes
from ckad.trace.handling import handling
from ckad.trace.memory.context import ALL, Most
from ckad.trace.memory.opened import is_tracing
from ckad.trace.overlap import sharing
from ckad.trace.record import Recording
from ckad.trace.source.control.notes import is_noting
from ckad.trace.source.libraries import is_library
from ckad.trace.source.outside.guard import Guard
from ckad.trace.source.outside.purity import is_harmless_text
from ckad.trace.source.outside.watch import Watch
from ckad.trace.values.tracer import Tracer
from ckad.transforms.repeated.calls import forget

Function = Callable[..., Any]

#: Recordings that are kept.
KEPT = 32
#: So many courses of one program are kept.
COURSES = 4
#: Older ones go when all together hold more than this, constants and copies, in bytes.
KEPT_BYTES = 2**26
#: Tapes above this size, in bytes, are recorded anew: that takes a small part of what they run.
LARGEST_TAPE = 2**24
#: The same of those recorded as they run, each operation by itself.
LARGEST_COURSE = 2**25
FLOATS = {float, complex, *(t for t in np.sctypeDict.values() if np.dtype(t).kind in "fc")}
STATIC = {int, bool, NoneType, *(t for t in np.sctypeDict.values() if np.dtype(t).kind in "iub")}
#: Functions are what they are, methods those of one object.
_BY_IDENTITY = (FunctionType, MethodType, functools.partial)
_OWN = tuple(str(Path(file).parent) + os.sep for file in (Path(__file__).parent, np.__file__))
_kept: OrderedDict[Hashable, Recorded] = OrderedDict()
_lock = locks.lock()


@dataclass(frozen=True, eq=False)
class Recorded:
    """A function recorded on arguments of one kind, and what was derived from that."""

    form: Arguments  # without the leaves, which may be large
    recording: Recording
    tape: Tape  # simplified
    guard: Guard | None
    anew: str  # why the next call records anew; empty if it does not
    refusal: Exception | None = None  # why it holds for the numbers of one call alone
    most: Most = ALL  # how much of it might be recorded
    derived: dict[Any, Any] = field(default_factory=dict)
    earlier: list[Recorded] = field(default_factory=list)  # of other courses, the last one first

    def courses(self) -> Iterator[Recorded]:
        """This one and those before it that recording anew would still give."""
        yield self
        for other in self.earlier:
            if other.guard is not None and other.guard.holds():
                yield other

    def results(self, leaves: Sequence[Any]) -> Any:
        """The function's result from the tape's outputs: its structure, scalars as scalars."""
        recording = self.recording
        shown = finished(leaves, recording.out_scalars)
        return shown[0] if recording.gives_leaf else trees.unflatten(recording.out_tree, shown)

    def repeat(self) -> None:
        """Do again what the recording has shown to the user."""
        if self.guard is not None:
            self.guard.repeat()


def finished(xs: Sequence[Any], scalars: Sequence[bool]) -> list[Any]:
    """Results as NumPy would give them: scalars, or arrays."""
    return [x[()] if s and type(x) is not Tracer else x for x, s in zip(xs, scalars, strict=True)]


class _Same:
    """An object that stands for itself alone."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __hash__(self) -> int:
        return id(self.owner)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.owner is other.owner


class Transformed:
    """A function that a transformation has made of ``fun``; `asked` is all that it was told."""

    fun: Callable[..., Any]

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """Whose signature it has."""
        return self.fun

    @property
    def __name__(self) -> str:
        return name_of(self.fun)

    @property
    def asked(self) -> Hashable:
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __get__(self, owner: Any, of: type | None = None) -> Any:
        """A method where it stands in a class, as a function is."""
        return self if owner is None else MethodType(self, owner)


def name_of(fun: Callable[..., Any]) -> str:
    return getattr(fun, "__name__", None) or type(fun).__name__


@dataclass(frozen=True, eq=False)
class Titled(Transformed):
    """``compute``, which a transformation makes of ``fun``, shown as ``what`` of it."""

    compute: Function
    what: str
    fun: Function
    argnums: Any
    again: functools.partial[Any]  # makes it, in another process, too

    @property
    def asked(self) -> Hashable:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.compute(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.what} of {self.__name__} by argument {self.argnums}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return self.again, ()


def shown_as(title: str, fun: Callable[..., Any], made: Function) -> Function:
    """``made``, which ``print`` shows by ``title`` with the name of ``fun`` in it."""
    made.__name__ = name_of(fun)
    made.__qualname__ = title.format(made.__name__)
    return made


class Alone(Exception):
    """A call has a recording of its own: its arguments or its function are of such a kind."""


def key_of(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hashable:
    """What calls have in common that may use one recording; Alone if there are none."""
    if is_tracing():
        raise Alone("it is itself being recorded, and may hold traced values")
    if not _is_users(function):
        raise Alone("it is no function of the user's")
    arrays: list[np.ndarray] = []
    kinds = tuple([_kind(x, arrays) for x in args])
    options = tuple([(k, _constant(x)) for k, x in kwargs.items()]) if kwargs else ()
    if len(arrays) > 1 and share_memory(arrays):
        raise Alone("arguments share memory")
    # constants are computed while recording, with errors handled as asked for
    return _own(function), kinds, options, handling()


def _own(function: Any) -> Hashable:
    """What a function is known by."""
    if type(function) is FunctionType:
        return function
    if isinstance(function, Transformed):
        try:
            hash(function.asked)
        except TypeError:  # a list or a dict of axes
            raise Alone("what it was told of can change") from None
        return type(function), _own(function.fun), function.asked
    return function if type(function) in _BY_IDENTITY else _Same(function)


def _is_users(function: Any) -> bool:
    """Whether a function is one of the user's, or an object of a class of the user."""
    if type(function) is not FunctionType:
        while isinstance(function, (Transformed, functools.partial)):
            function = function.fun if isinstance(function, Transformed) else function.func
        if type(function) is MethodType:
            function = function.__func__
    if type(function) is FunctionType:  # rows recorded in ckad's code name the place of its caller
        return not function.__code__.co_filename.startswith(_OWN)
    return not is_library(type(function).__module__) and not isinstance(function, type)


def _kind(x: Any, arrays: list[np.ndarray]) -> object:
    """What a recording knows of an argument; the numbers in arrays and of floats it does not."""
    kind = type(x)
    if kind in FLOATS:
        return kind
    if kind is np.ndarray:
        arrays.append(x)
        flags = x.flags
        return x.dtype, x.shape, flags.c_contiguous or x.strides, flags.writeable
    if kind is tuple or kind is list:
        return kind, tuple([_kind(item, arrays) for item in x])
    if kind is dict:
        return kind, tuple([(_constant(k), _kind(item, arrays)) for k, item in x.items()])
    if isinstance(x, tuple) and hasattr(kind, "_fields"):
        return kind, tuple([_kind(item, arrays) for item in x])
    if dataclasses.is_dataclass(kind):
        if computes(x):
            raise Alone(f"an argument is, or holds, a {kind.__qualname__}, with a __post_init__")
        names = attributes_of(x)
        return kind, names, tuple([_kind(getattr(x, name, None), arrays) for name in names])
    if is_sparse(x):
        numbers, pattern = trees.matrix_of(x)
        return pattern, _kind(numbers, arrays)
    return _constant(x)


def _constant(x: Any) -> object:
    """The value itself, with its type: a number that a recording takes as it is."""
    kind = type(x)
    if kind in STATIC or (kind is str and is_harmless_text(x)):
        return kind, x
    if kind is float:
        return kind, pack("d", x)  # tells -0.0 from 0.0; a NaN is equal to itself
    if kind in _BY_IDENTITY:
        return x
    if is_library(kind.__module__) or isinstance(x, (tuple, list, dict, np.ndarray)):
        raise Alone(f"an argument is, or holds, a {kind.__qualname__}")
    return _Same(x)


def share_memory(arrays: Sequence[np.ndarray]) -> bool:
    owners = [x if x.flags.owndata else x.base for x in arrays]
    if len({id(x) for x in owners}) == len(arrays) and all(map(_owns, owners)):
        return False
    return bool(sharing(arrays))


def _owns(x: Any) -> bool:
    return type(x) is np.ndarray and x.flags.owndata


def find(key: Hashable) -> Recorded | None:
    """The recording kept under ``key``, if recording anew would give the same."""
    if is_noting():
        return None
    with _lock:
        found = _kept.get(key)
        if found is not None:
            _kept.move_to_end(key)
    if found is None or found.guard is None or not found.guard.holds():
        return None
    return found


def kept(key: Hashable) -> Guard | None:
    """The guard of what is kept under ``key``, whether it holds or not."""
    found = _kept.get(key)
    return None if found is None else found.guard


def anew(recording: Recording, watched: Watch) -> str:
    """Why a recording cannot be used again; empty if it can."""
    if watched.reason is not None:
        return watched.reason
    counted = watched.guard.counters.values()
    is_looked_at = any(watched.is_noted(counter.owner, counter.key) for counter in counted)
    if is_looked_at or not watched.guard.holds():
        return "it changes what it reads"
    nbytes = recording.tape.nbytes
    largest = LARGEST_TAPE if recording.course is None else LARGEST_COURSE
    return f"its tape takes {nbytes:,} bytes" if nbytes > largest else ""


def keep(key: Hashable, recorded: Recorded) -> None:
    """Keep a recording under ``key``."""
    forget()
    with _lock:
        before = _kept.get(key)
        if before is not None and recorded.recording.course is not None:
            recorded.earlier[:] = [before, *before.earlier][: COURSES - 1]
            before.earlier.clear()
            while recorded.earlier and _bytes_of(recorded) > KEPT_BYTES:
                recorded.earlier.pop()
        _kept[key] = recorded
        _kept.move_to_end(key)
        while len(_kept) > KEPT or (len(_kept) > 1 and _bytes_held() > KEPT_BYTES):
            _kept.popitem(last=False)


def _bytes_held() -> int:
    return sum(map(_bytes_of, _kept.values()))


def _bytes_of(kept: Recorded) -> int:
    held = kept, *kept.earlier
    tapes = sum(found.recording.tape.nbytes for found in held)
    return tapes + sum(found.guard.nbytes for found in held if found.guard is not None)


def clear() -> None:
    """Forget all recordings."""
    forget()
    with _lock:
        _kept.clear()
