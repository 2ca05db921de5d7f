"""Integers from outside that a loop goes on with, as counters are, and that decide nothing.

The first of a loop's steps starts with such a number as an input of the recording. If nothing that
the function gives is computed from it, the recording holds for any such number; else it is put back
into what was recorded. Whoever reads it otherwise has it as it is, and the recording depends on it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, NamedTuple

from ckad import locks
from ckad.passes.dce import dce
from ckad.tape.builder import Builder
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type
from ckad.trace.memory.context import current
from ckad.trace.source.outside.assigned import key_of
from ckad.trace.source.outside.guard import MOST_FREE
from ckad.trace.source.outside.watch import Watch, watch
from ckad.trace.values.tracer import Tracer, fresh

INTEGER = Type(DType.I64, ())
#: Names of numbers that matter, which are remembered: their modules, or functions, and they.
KEPT = 1024
_matter: OrderedDict[tuple[Any, str], None] = OrderedDict()
_lock = locks.lock()


class Number(NamedTuple):
    """One of them: a name of a module or function, or a variable of a closure."""

    owner: Any  # a dict of names, or a cell
    name: str
    value: int

    @property
    def known_as(self) -> tuple[Any, str]:
        """The same in each recording."""
        is_named = type(self.owner) is dict and "__name__" in self.owner
        return (self.owner["__name__"] if is_named else "", self.name)


class _Recording(threading.local):
    def __init__(self) -> None:
        self.numbers: dict[int, Number] = {}  # by their inputs


_recording = _Recording()


def clear() -> None:
    """Forget which numbers matter."""
    with _lock:
        _matter.clear()


@contextmanager
def tracked(watched: Watch, owner: Any, name: str, is_tracked: bool) -> Iterator[None]:
    """A name is looked up, or bound, by who tells of it himself if its number is read."""
    key = key_of(owner, name)
    was_read = key in watched.guard.asked
    yield
    if is_tracked and not was_read:
        watched.guard.asked.discard(key)


def note_read(watched: Watch, owner: Any, name: str, value: Any) -> None:
    """A number is read as it is, in a body that may be recorded once more."""
    if type(value) is int:
        watched.guard.read.append(key_of(owner, name))


def look_up(watched: Watch, owner: Any, name: str, is_tracked: bool = True) -> None:
    """The attribute of an object is looked up, or bound: ``tracked``, if it is a function's."""
    if type(owner) is FunctionType and not hasattr(FunctionType, name):
        with tracked(watched, vars(owner), name, is_tracked):
            watched.attribute(owner, name)
    else:
        watched.attribute(owner, name)


def mark() -> int:
    """How often such numbers were read so far,"""
    watched = watch()
    return 0 if watched is None else len(watched.guard.read)


def forget(first: int) -> None:
    """and forget those reads: what was recorded with them is given up."""
    if watched := watch():
        del watched.guard.read[first:]


def started(owner: Any, name: str, value: Any) -> Tracer | None:
    """The number that a loop starts with as an input; None if it has to be what it is."""
    watched, trace = watch(), current()
    if watched is None or type(value) is not int:
        return None
    number = Number(owner, name, value)
    is_plain = trace.parent is not None or trace.decides or abs(value) > MOST_FREE
    if is_plain or watched.guard.is_read(key_of(owner, name)) or number.known_as in _matter:
        note_read(watched, owner, name, value)
        return None
    row = trace.builder.input(INTEGER)
    _recording.numbers[row] = number
    found = fresh(row, scalar=True)
    found.weak = True
    return found


def begin() -> None:
    """Nothing is recorded yet."""
    _recording.numbers = {}


def give_up() -> bool:
    """Let all these numbers be what they are when the function is recorded again; whether there
    were any."""
    found, _recording.numbers = list(_recording.numbers.values()), {}
    _note_matter(found)
    return bool(found)


def _note_matter(numbers: Sequence[Number]) -> None:
    with _lock:
        for number in numbers:
            _matter[number.known_as] = None
        while len(_matter) > KEPT:
            _matter.popitem(last=False)


def settled(tape: Tape) -> Tape:
    """What was recorded, with the numbers in place of these inputs; if nothing is computed from
    one of them, it holds for any."""
    numbers, watched = _recording.numbers, watch()
    _recording.numbers = {}
    if not numbers:
        return tape
    read = _read(tape)
    _note_matter([x for row, x in numbers.items() if row in read])
    for row, (owner, name, _) in numbers.items():
        if watched and row not in read and not watched.guard.is_read(key_of(owner, name)):
            watched.guard.free(owner, name)
    return _with_numbers(tape, numbers)


def _read(tape: Tape) -> set[int]:
    """The inputs of which something is computed that the function gives."""
    slim = dce(tape)
    read = {x for row in slim.rows for x in row.operands}.union(slim.outputs.tolist())
    pairs = zip(tape.inputs.tolist(), slim.inputs.tolist(), strict=True)
    return {row for row, x in pairs if x in read}


def _with_numbers(tape: Tape, numbers: dict[int, Number]) -> Tape:
    b, env = Builder(), dict[int, int]()
    for k in range(len(tape)):
        if k in numbers:
            env[k] = b.number(numbers[k].value, DType.I64)
        else:
            env[k] = b.copy_row(tape, k, env)
    return b.tape([env[k] for k in tape.outputs.tolist()])
