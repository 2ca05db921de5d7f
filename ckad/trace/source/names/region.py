"""The bodies of loops and branches that are being recorded, one in the other.

While a body is recorded, a `Region` notes which names from outside of it are bound, so that they
can be put back, and which are read before: those carry from step to step; and the lists that it
makes longer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ckad.errors import UnrecordableError
from ckad.trace.memory.opened import stack
from ckad.trace.memory.storage import Storage, restore_spoilt, spoilt_so_far
from ckad.trace.source.outside.watch import watch

Key = tuple[Any, str]  # a frame, and one of its names


class Growth:
    """By how much a list has grown: at most now, and at most meanwhile; what was appended."""

    def __init__(self) -> None:
        self.now = self.peak = self.pushed = 0.0
        self.is_monotonic = True  # whether nothing is taken away

    def add(self, now: float, peak: float, pushed: float) -> None:
        self.peak = max(self.peak, self.now + peak)
        self.now += now
        self.pushed += pushed
        self.is_monotonic &= now >= 0


class Region:
    """What the recording of one body has changed and read of the names around it."""

    def __init__(self, outer: Region | None) -> None:
        self.outer = outer
        self.depth: int = outer.depth + 1 if outer else 1
        self.changed: dict[Key, Any] = {}  # the values before
        self.read: set[Key] = set()  # read before they were changed, or handed on by a branch
        self.asked: set[Key] = set()  # those that were read
        self.unsure: set[Key] = set()  # read where they may not be bound
        self.made: dict[int, Any] = {}  # lists, dicts and sets made here, by identity
        self.copies: dict[int, Any] = {}  # containers that stand for what a step starts with
        self.altered: set[int] = set()  # those of them that it changes
        self.spoilt: list[Storage] = []  # once it is closed: what was spoilt
        self.n_spoilt = 0  # how many storages were spoilt before it was opened
        self.is_trial = False  # whether all that is done here will be undone
        self.takes_appends = False  # a loop's body, whose steps may append to lists
        self.appends: dict[int, tuple[list[Any], list[Any]]] = {}  # lists, and what is appended
        self.new_lists: dict[int, list[Any]] = {}  # those of which that was not known yet
        self.grown: set[int] = set()  # lists that are appended to here, and not looked at
        self.may_be_written_out = False  # a loop's body: whether steps may be recorded one by one
        self.ends_unknown = False  # a loop's body, of which it is not known how often it runs
        self.whole: dict[int, Any] = {}  # lists of which the body does more than append to them
        self.growth: dict[int, Growth] = {}  # by how much lists have grown here
        self.housed: set[int] = set()  # lists with space in buffers for what is appended here
        self.filled: set[int] = set()  # those without space, for items at traced places
        self.wanted: list[Any] = []  # lists that are to have some when it is recorded again
        self.unhoused: set[int] = set()  # those for which it is not known how much that is
        self.looked: set[int] = set()  # lists in buffers with which more is done than appending
        self.probed: set[int] = set()  # empty lists of whose items nothing is known yet
        self.keyed: dict[int, Any] = {}  # dicts, and what was put into them by the step's number
        self.shelved: list[Any] = []  # memory of arrays that lists got here, and of the lists
        self.kept: list[Any] = []  # of these, what was not in such a list before
        self.trace = stack()[-1] if stack() else None  # what is recorded into
        self.index: Any = None  # of a loop's body: the number of the step,
        self.steps = 0  # and how many steps there are
        self.solver = ""  # what calls the function that is recorded, an unknown number of times
        self.draws: list[Any] = []  # what is drawn here of random numbers
        self.undo: dict[int, Callable[[], None]] = {}  # what else is put back, by what it is of

    @property
    def has_effects(self) -> bool:
        """Whether more is done here than that rows are recorded."""
        done = (self.changed, self.undo, self.growth, self.appends, self.keyed, self.draws)
        return any(done)

    def roll_back(self) -> None:
        for (frame, name), value in self.changed.items():
            frame.restore(name, value)
        for undo in self.undo.values():
            undo()


class _Regions(threading.local):
    def __init__(self) -> None:
        self.innermost: Region | None = None


_regions = _Regions()


def region() -> Region | None:
    """The body being recorded now; None in straight code."""
    return _regions.innermost


def enclosing(depth: int = 0) -> Iterator[Region]:
    """The bodies being recorded that are deeper than ``depth``, the innermost first."""
    inner = _regions.innermost
    while inner is not None and inner.depth > depth:
        yield inner
        inner = inner.outer


def in_loops() -> bool:
    """Whether all bodies being recorded are those of loops, or only tried."""
    return all(inner.index is not None or inner.is_trial for inner in enclosing())


@contextmanager
def open_region() -> Iterator[Region]:
    """Note what is changed from here on; at the end everything is as it was."""
    outer = _regions.innermost
    _regions.innermost = opened = Region(outer)
    opened.n_spoilt = spoilt_so_far()
    try:
        yield opened
    finally:
        _regions.innermost = outer
        opened.roll_back()
        for root, keepers in opened.kept:
            root.kept = [x for x in root.kept if x not in keepers]
        opened.spoilt = restore_spoilt(opened.n_spoilt)


def made(container: Any) -> Any:
    """Note a list, dict or set that the body being recorded has made: it may be changed there."""
    if watched := watch():
        watched.adopt(container)
    if _regions.innermost is not None:
        _regions.innermost.made[id(container)] = container
    return container


def depth_of(owner: Any) -> int:
    """The depth of the body that has made an object; 0 for straight code, or from outside."""
    return next((inner.depth for inner in enclosing() if id(owner) in inner.made), 0)


def check_changeable(container: Any) -> None:
    """A container from outside must not be changed by a body: that would happen only once."""
    inner = _regions.innermost
    if inner is None or id(container) in inner.made:
        return
    kind = type(container).__name__
    raise UnrecordableError.here(
        f"the body of a loop or branch changes a {kind} that was made outside of it, and is "
        "recorded once for all its steps. Write into an element of an array "
        "(history[k] = x, made before by np.zeros), or return the values from ckad.scan."
    )


def check_iterated(x: Any) -> None:
    """An iterator from outside must not be advanced by a body: it would be only once."""
    if isinstance(x, Iterator):
        check_changeable(x)
