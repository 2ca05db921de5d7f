"""Functions recorded, and what is kept of that: with the numbers that they read from outside as
they are, or as further arguments."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from ckad import locks
from ckad.collection import rare_collection
from ckad.loops.driver import run_once
from ckad.passes import pipeline
from ckad.tape.tape import Tape
from ckad.trace.arguments import Arguments, take_apart
from ckad.trace.memory.context import Most
from ckad.trace.record import Given, record
from ckad.trace.source.outside.assigned import depend_on_left
from ckad.trace.source.outside.watch import watching
from ckad.transforms import attempts, reuse
from ckad.transforms.repeated import changing
from ckad.transforms.repeated.calls import forget
from ckad.transforms.repeated.changing import numbers_at
from ckad.transforms.reuse import Alone, Recorded

T = TypeVar("T")
#: Compiled programs, or tapes, that are remembered.
KEPT = 32
#: Older ones go when all together hold more than this, in bytes.
KEPT_BYTES = 2**26
#: Tapes by what they are made of.
tapes: OrderedDict[Any, Tape] = OrderedDict()
lock = locks.lock()


def recorded(
    fun: Callable[..., Any],
    arguments: Arguments,
    kwargs: dict[str, Any],
    key: Hashable | Alone,
    decides: Given,
    most: Most,
    refusal: Exception | None = None,
) -> Recorded:
    """Record ``fun``; what was made of its tape is kept under ``key`` where that is safe."""
    with rare_collection():
        if isinstance(key, Alone):
            watched, anew = None, str(key)
            recording = record(fun, arguments, kwargs, decides=decides, most=most)
        else:
            with watching() as watched:
                recording = record(fun, arguments, kwargs, decides=decides, most=most)
            if recording.held or recording.decides or recording.is_guarded or refusal is not None:
                depend_on_left(watched)  # it may be found not to hold after they are bound
            anew = reuse.anew(recording, watched)
            if anew and not decides:
                changing.note_large(key, watched.guard)
        raw = recording.tape
        passes = pipeline.recorded(run_once)
        tape = remember(tapes, (raw.contents, "recorded"), lambda: passes.run(raw))
    guard = watched.guard if watched is not None and not anew else None
    if refusal is not None:
        refusal.__traceback__ = None  # it is kept, and the frames hold what was recorded
    form = arguments._replace(leaves=[])
    made = Recorded(form, recording, tape, guard, anew, refusal, most)
    if not anew:
        reuse.keep(key, made)
    return made


def with_numbers(
    fun: Callable[..., Any], key: Hashable, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Recorded, Sequence[Any]] | None:
    """The recording of which numbers from outside are arguments, and all arguments; None if
    there is none."""
    found = changing.of(key)
    if found is None:
        return None
    places = found.places
    if (numbers := numbers_at(places)) is None:
        return None
    every = *args, *numbers
    try:
        names = tuple(place.key for place in places)
        own = found, names, attempts.key_of(reuse.key_of(fun, every, kwargs))
    except Alone:  # they share memory
        return None
    known = reuse.find(own)
    if known is None:
        if (before := reuse.kept(own)) is not None:
            if not found.is_of_use(before):
                found.refuse()
                return None
            found.note(before)
            if found.places != places:
                return with_numbers(fun, key, args, kwargs)
        arguments = take_apart(every)._replace(places=places)
        known = _tried(fun, arguments, kwargs, own)
    if known is None:
        found.refuse()
        return None
    return known, every


def _tried(
    fun: Callable[..., Any], arguments: Arguments, kwargs: dict[str, Any], key: Hashable
) -> Recorded | None:
    """What is recorded for all numbers and used again; None if that cannot be."""
    try:
        most = Most(in_bodies=attempts.FOR_ALL)
        made = recorded(fun, arguments, kwargs, key, Given.NOTHING, most)
    except Exception:
        return None
    return None if made.anew else made


def remember(cache: OrderedDict[Any, T], key: Any, make: Callable[[], T]) -> T:
    """``cache[key]``, made if it is not there; the least recently used entries go."""
    with lock:
        found = cache.get(key)
        if found is not None:
            cache.move_to_end(key)
            return found
    made = make()
    forget()
    with lock:
        cache[key] = made
        while len(cache) > 1 and (len(cache) > KEPT or _bytes_of(cache) > KEPT_BYTES):
            cache.popitem(last=False)
    return made


def _bytes_of(cache: OrderedDict[Any, Any]) -> int:
    """Constants are most of what a tape or a program holds."""
    return sum(entry.nbytes for entry in cache.values())
