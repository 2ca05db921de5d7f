"""The bodies of loops and branches that are being recorded, one in the other.

While a body is recorded, a `Region` notes which names from outside of it are bound, so that they
can be put back, and which are read before: those carry from step to step.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ckad.errors import UnrecordableError
from ckad.trace.memory.storage import restore_spoilt, spoilt_so_far
from ckad.trace.source.names.region import Key as Key
from ckad.trace.source.names.region import Region as Region
from ckad.trace.source.outside.watch import watch


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
