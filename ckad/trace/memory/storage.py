"""Storages: what NumPy calls the memory of an array, and memory that may have two of them.

A storage holds the row of its present value; a write gives it another.
"""

from __future__ import annotations

import threading
from typing import Any

from ckad.errors import AliasError
from ckad.place import Source, at_place, user_place
from ckad.tape.types import Type
from ckad.trace.memory.opened import is_open
from ckad.trace.memory.views import Path

_local = threading.local()
_FEW = 8
#: What `Storage.shared` says of memory that may not be written into, as in NumPy.
PROTECTED = "memory whose flags.writeable is False"


class Written(BaseException):
    """A body that is being recorded from its source writes into an array from outside of it.

    It is recorded anew, with that array among what it changes. (No Exception: code of the user's
    between must not catch it.)
    """

    def __init__(self, root: Storage, trace: Any) -> None:
        self.root = root
        self.trace = trace


class Storage:
    """The memory that one or more tracers view."""

    __slots__ = (
        "_root",
        "cache",
        "dense",
        "kept",
        "lent",
        "part",
        "plain",
        "read_only",
        "rivals",
        "room",
        "row",
        "shared",
        "spoilt",
        "trace",
        "watched",
        "writes",
    )

    def __init__(
        self,
        trace: Any,  # the ``Trace`` that it belongs to
        row: int,
        *,
        read_only: bool = False,
        plain: bool = True,
        dense: bool = True,
        root: Storage | None = None,
    ) -> None:
        self.trace = trace
        self.row = row
        self._root = root
        self.writes = 0
        self.watched = False  # seen after the function has ended, whatever its names are
        self.read_only = read_only
        self.plain = plain  # its axes are known to lie in memory in their order in NumPy
        self.dense = dense  # known to have no gaps there
        self.part: Path = ()  # which part of its root it shows, as seen from where that is
        self.shared: str | None = None  # what else may lie in the same memory in NumPy
        self.rivals: dict[Storage, None] = {}  # roots that may be this very memory in NumPy
        self.room = _FEW  # for so many of them, until those of closed traces are left out
        self.kept: list[Storage] = []  # roots with rows that are this very memory in NumPy
        self.lent: list[Storage] = []  # and the other way round: roots that are rows of this one
        self.spoilt: Source | None = None  # where it may have changed in a way that is not known
        self.cache: dict[Any, int] = {}

    @property
    def root(self) -> Storage:
        """The memory itself, of which this may be what a body sees."""
        return self._root or self

    @property
    def type(self) -> Type:
        found: Type = self.trace.builder.rows[self.row].type
        return found

    def write(self, row: int) -> None:
        """Give the storage its next value."""
        if self.trace.builder.refuse is not None:
            self.trace.builder.refuse()
        self.row = row
        self.writes += 1
        self.cache.clear()

    def read_only_error(self) -> BaseException:
        """What a write raises into what was captured; the trace around may adopt the whole."""
        if self.trace.adopts:
            return Written(self.root, self.trace)
        return AliasError.here(
            "a function that is recorded by itself, as a side of ckad.cond is or what is derived, "
            "writes into an array from around it. Hand the array over and return it, or write into "
            "a copy. A function that a solver calls makes the array itself, by np.zeros_like(y) "
            "for instance."
        )

    def _is_gathered(self) -> bool:
        """Whether the body is only recorded to its end to find out what it writes into."""
        if self.trace.gathered is None:
            return False
        self.trace.gathered[id(self.root)] = self.root
        self.read_only = False
        return True

    def check_writable(self) -> None:
        if self.read_only and not self._is_gathered():
            raise self.read_only_error()
        if self.shared is PROTECTED:
            raise ValueError(at_place("assignment destination is read-only"))
        if self.shared is not None:
            raise AliasError.here(
                f"this array and {self.shared} may share memory in NumPy, so the effect of "
                "this write is not known. Write into a .copy(), or copy the other one first."
            )
        for rival in [*self.root.rivals]:
            spoil(rival)
        for root in may_be(self):
            for keeper in root.kept:
                spoil(keeper)


# --- memory that may have two storages -----------------------------------------------------------
#
# A loop or a branch gives the arrays it has bound new storages, though in NumPy these may be memory
# that has other names too. As long as nothing writes, that does not show. A write into one of them
# spoils the others: what they hold then depends on what is only known when the program runs.


def _journal() -> list[Storage]:
    if not hasattr(_local, "spoilt"):
        _local.spoilt = []
    found: list[Storage] = _local.spoilt
    return found


def forget_spoilt() -> None:
    """No function is recorded any more."""
    _journal().clear()


def spoil(root: Storage) -> None:
    """What ``root`` holds is not known from here on: to read it is an error."""
    if root.spoilt is None and is_open(root.trace):
        root.spoilt = user_place()
        _journal().append(root)


def spoilt_so_far() -> int:
    return len(_journal())


def spoilt_since(count: int) -> list[Storage]:
    return _journal()[count:]


def restore_spoilt(count: int) -> list[Storage]:
    """Undo what was spoilt since there were ``count``; these."""
    undone = spoilt_since(count)
    del _journal()[count:]
    for root in undone:
        root.spoilt = None
    return undone


def spoilt_error(place: Source) -> AliasError:
    return AliasError.here(
        "what this array holds is not known here. In NumPy it may be the memory that is "
        f"written into at {place}, where a loop or branch may have bound a name to other "
        "memory meanwhile. Make a copy of one of them before: b = a.copy()."
    )


def may_be(storage: Storage) -> list[Storage]:
    """The storages that may be the memory of ``storage``: its root first."""
    root = storage.root
    return [root, *(x for x in root.rivals if is_open(x.trace))] if root.rivals else [root]


def are_one(one: Storage, other: Storage) -> bool:
    """Whether both may be the same memory in NumPy."""
    return one.root is other.root or other.root in one.root.rivals


def link(one: Storage, other: Storage) -> None:
    """Both may be the same memory in NumPy; nobody writes into that of a trace that is closed."""
    if one is other or not (is_open(one.trace) and is_open(other.trace)):
        return
    for root, rival in ((one, other), (other, one)):
        root.rivals[rival] = None
        if len(root.rivals) > root.room:  # seldom, so that many links cost no more than themselves
            root.rivals = {x: None for x in root.rivals if is_open(x.trace)}
            root.room = 2 * len(root.rivals) + _FEW


def watch(storage: Storage) -> None:
    """Note that what is in ``storage`` at the end of the function is wanted."""
    storage.root.watched = True
