"""What a function read from outside when it was recorded, held against what it would read now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import is_
from struct import pack
from types import BuiltinFunctionType, CellType, EllipsisType, NoneType
from typing import Any

import numpy as np

from ckad.errors import CkadError
from ckad.place import Source
from ckad.trace.memory.changes import note
from ckad.trace.source.skipped import warn_of_skipped

ABSENT: Any = object()
#: Numbers up to here are alike for a recording that no number decides, however long it counts.
MOST_FREE = 1 << 31
NUMBERS = frozenset(t for t in np.sctypeDict.values() if np.dtype(t).kind in "fiubc")
#: What is the same wherever it is equal.
IMMUTABLE = NUMBERS | {int, float, complex, bool, str, bytes, NoneType, EllipsisType, range, slice}


class Counter:
    """A number outside of the function that a recording only adds to, and ``by`` how much.

    ``owner`` is a class, a dict of names, or the cell of a variable of a closure.
    """

    __slots__ = ("by", "name", "owner")

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name, self.by = owner, name, 0

    @property
    def key(self) -> str:
        """What a watch calls it."""
        return "cell" if type(self.owner) is CellType else self.name

    @property
    def value(self) -> Any:
        if type(self.owner) is CellType:
            return content(self.owner)
        held = vars(self.owner) if isinstance(self.owner, type) else self.owner
        return held.get(self.name, ABSENT)

    @property
    def is_number(self) -> bool:
        return type(self.value) is int

    def count(self, by: int) -> None:
        new = self.value + by
        if type(self.owner) is CellType:
            self.owner.cell_contents = new
        elif isinstance(self.owner, type):
            setattr(self.owner, self.name, new)
        else:
            self.owner[self.name] = new


def is_given_up(error: BaseException) -> bool:
    """Whether an error is not one of the program, which may be recorded in another way."""
    return isinstance(error, CkadError) or not isinstance(error, Exception)


class Guard:
    """The values that a recording depends on besides its arguments.

    They are compared by identity, numbers and text also by value; what can be changed in place is
    compared by its contents as well.
    """

    def __init__(self) -> None:
        self.names: list[tuple[Mapping[str, Any], str, Any]] = []
        self.cells: list[tuple[CellType, Any]] = []
        self.parts: list[tuple[Any, str, Any]] = []
        self.objects: list[tuple[Any, type, dict[str, Any] | None]] = []
        self.bare: list[Any] = []  # functions without attributes of their own
        self.containers: list[tuple[Any, tuple[Any, ...]]] = []
        self.arrays: list[tuple[np.ndarray, tuple[Any, ...]]] = []
        self.shown: list[Callable[[], object]] = []  # what it has done that the user can see
        self.answers: list[tuple[Callable[[], Any], Any]] = []  # what the system said of files
        self.once: dict[str, Source] = {}  # and what is not done again
        self.counters: dict[tuple[int, str], Counter] = {}  # what it has counted up
        self.leaves: list[Callable[[], object]] = []  # what it has left names bound to
        self.asked: set[tuple[int, str]] = set()  # integers that were read as they are,
        self.read: list[tuple[int, str]] = []  # or in bodies that may be recorded once more
        self.numbers: list[tuple[Any, str]] = []  # those that decide nothing

    @property
    def is_looked_into(self) -> bool:
        """Whether something is compared by what it holds."""
        objects = self.bare or self.containers or self.arrays
        return bool(objects or self.answers or self.counters or self.numbers)

    @property
    def nbytes(self) -> int:
        """Bytes of the copies of arrays."""
        return sum(array.nbytes for array, _ in self.arrays)

    def name(self, names: Mapping[str, Any], name: str) -> Any:
        """Depend on what a name is bound to; gives that."""
        value = names.get(name, ABSENT)
        self.names.append((names, name, value))
        return value

    def note(self, owner: Any, name: str, value: Any) -> None:
        """A name is looked up, by whoever it is."""
        if type(value) is int:
            self.asked.add((id(owner), name))

    def is_read(self, key: tuple[int, str]) -> bool:
        return key in self.asked or key in self.read

    def free(self, owner: Any, name: str) -> None:
        """Hold for any number that is not too large."""
        if type(owner) is CellType:
            self.cells = [x for x in self.cells if x[0] is not owner]
        else:
            self.names = [x for x in self.names if x[0] is not owner or x[1] != name]
        self.numbers.append((owner, name))

    def holds(self) -> bool:
        """Whether the function would read the same values now."""
        for names, name, value in self.names:
            found = names.get(name, ABSENT)
            if found is not value and not is_same(found, value):
                return False
        for owner, kind, attributes in self.objects:
            if type(owner) is not kind:
                return False
            if attributes is not None and owner.__dict__ is not attributes:
                return False
        for cell, value in self.cells:
            found = content(cell)
            if found is not value and not is_same(found, value):
                return False
        for owner, part, value in self.parts:
            found = getattr(owner, part, ABSENT)
            if found is not value and not is_same(found, value):
                return False
        return self.contents_hold()

    def contents_hold(self) -> bool:
        """The same of what can be changed in place."""
        for owner in self.bare:
            if owner.__dict__:
                return False
        if any(ask() != answer for ask, answer in self.answers):
            return False
        for counter in self.counters.values():
            if not counter.is_number:
                return False
        for owner, name in self.numbers:
            value = content(owner) if type(owner) is CellType else owner.get(name)
            if type(value) is not int or abs(value) > MOST_FREE:
                return False
        for container, items in self.containers:
            found = items_of(container)
            if len(items) != len(found):
                return False
            if not (all(map(is_, found, items)) or all(map(is_same, found, items))):
                return False
        if not self.arrays:  # as it mostly is, and a generator takes a part of a small call
            return True
        return all(contents(array) == before for array, before in self.arrays)

    def repeat(self) -> None:
        """Do again what the recording has shown to the user."""
        for show in self.shown:
            show()
        for counter in self.counters.values():
            counter.count(counter.by)
        self.note_counted()
        for leave in self.leaves:
            leave()
        if self.once:
            self._say_once()

    def note_counted(self) -> None:
        for counter in self.counters.values():
            note(partial(counter.count, -counter.by))

    def uncount(self, error: BaseException) -> None:
        """Take back what was counted up by a recording that is given up."""
        if not is_given_up(error):
            return
        for counter in self.counters.values():
            if counter.is_number:
                counter.count(-counter.by)
            counter.by = 0

    def _say_once(self) -> None:
        named = dict(self.once)
        self.once.clear()
        warn_of_skipped(
            named,
            "these calls change no number of the program: they were made when it was recorded, and "
            "are left out when the recording is used again",
        )


def is_same(x: Any, y: Any) -> bool:
    """Whether two values are one, or numbers or text that nothing can tell apart."""
    if x is y:
        return True
    kind = type(x)
    if kind is not type(y):
        return False
    if kind is float:
        return pack("d", x) == pack("d", y)
    if kind is tuple:
        return len(x) == len(y) and all(map(is_same, x, y))
    if kind is complex:
        return is_same(x.real, y.real) and is_same(x.imag, y.imag)
    if kind in NUMBERS:
        same: bool = x.tobytes() == y.tobytes()
        return same
    return kind in (int, bool, str, bytes) and bool(x == y)


def content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def items_of(container: Any) -> tuple[Any, ...]:
    """The items of a container; the keys and the values of a dict."""
    if isinstance(container, dict):
        return (*container, *container.values())
    if isinstance(container, set):  # in an order that is the same while its items are
        return tuple(sorted(container, key=id))
    return tuple(container)


def contents(array: np.ndarray) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.strides, array.tobytes()


#: Functions whose meaning is their identity.
BUILTIN = (BuiltinFunctionType, np.ufunc, type(np.sum))
