"""What the processor notes by itself: that an operation gave an infinity or was invalid.

Each thread has a register with a flag for each exception of IEEE 754 (clause 7), which stays set
until it is cleared: invalid operation (a NaN from numbers), division by zero, overflow. So a
program can be watched without a word of code in it. Engines call `begin` and `note` around what
they run; that does nothing unless their caller is `watching`.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: The bits of the C library's FE_INVALID, FE_DIVBYZERO and FE_OVERFLOW.
_BITS = {"x86_64": 0x0D, "amd64": 0x0D, "aarch64": 0x07, "arm64": 0x07}


def _library() -> Any:
    """The C library, if its flags are known here."""
    if sys.platform == "win32" or platform.machine().lower() not in _BITS:
        return None
    library = ctypes.PyDLL(None)  # keeps the GIL: a call takes a tenth of a microsecond
    return library if hasattr(library, "fetestexcept") else None


_C = _library()
_MASK = _BITS.get(platform.machine().lower(), 0)
AVAILABLE = _C is not None


class Watch:
    """Whether an exception was noted while it watched."""

    def __init__(self) -> None:
        self.seen = False

    def begin(self) -> None:
        _C.feclearexcept(_MASK)

    def note(self) -> None:
        # only ever set, so that threads may note at once
        if _C.fetestexcept(_MASK):
            self.seen = True


class _Local(threading.local):
    watch: Watch | None = None


_local = _Local()


@contextmanager
def watching() -> Iterator[Watch]:
    """Watch what engines run in this thread, and in the helpers that they start for it."""
    before, _local.watch = _local.watch, Watch()
    try:
        yield _local.watch
    finally:
        _local.watch = before


def is_watching() -> bool:
    return _local.watch is not None


def begin() -> None:
    """What follows is watched."""
    if _local.watch is not None:
        _local.watch.begin()


def note() -> None:
    """What came before was watched: remember what the processor noted."""
    if _local.watch is not None:
        _local.watch.note()


def helping(function: Callable[[int], None]) -> Callable[[int], None]:
    """``function`` for another thread, watched if this one is."""
    watch = _local.watch
    if watch is None:
        return function

    def watched(argument: int) -> None:
        watch.begin()
        function(argument)
        watch.note()

    return watched
