"""The memory that values lie in during a run.

Fresh memory comes in pages that the system clears one by one when they are first written, which can
take as long as the run itself. So what a run has used is kept for the next one, within a limit.
"""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import suppress

import numpy as np

from ckad import locks
from ckad.engines.heap import too_much

LINE = 64  # bytes of a line of the cache
#: Bytes that are kept between runs at most; less than the least is not worth it.
MOST, LEAST = 2**28, 2**16
#: Bytes of each of the few small memories that are kept: to ask for new ones takes longer than a
#: small run.
SMALL, FEW = 2**14, 8
#: Memory of so many bytes has pages of its own; from so many on they may be huge ones.
PAGES, HUGE = 2**16, 2**22
_lock = locks.lock()
_kept: list[np.ndarray] = []
_small: list[np.ndarray] = []  # changed by single operations of the list alone, without the lock


def take(nbytes: int) -> np.ndarray:
    """Memory for a run, at least ``nbytes``; what it holds is not defined."""
    if nbytes <= SMALL:
        with suppress(IndexError):
            return _small.pop()
        return aligned(SMALL)
    if LEAST <= nbytes <= MOST:
        with _lock:
            if _kept and _kept[0].size >= nbytes:
                return _kept.pop()
            _kept.clear()  # before there is more
    return aligned(nbytes)


def give(memory: np.ndarray) -> None:
    """Take back what a run has used."""
    if memory.size == SMALL:
        if len(_small) < FEW:
            _small.append(memory)
        return
    if LEAST <= memory.size <= MOST:
        with _lock:
            if not _kept or _kept[0].size < memory.size:
                _kept[:] = [memory]


def clear() -> None:
    """Give what is kept back to the system."""
    with _lock:
        _kept.clear()
        _small.clear()


def aligned(nbytes: int) -> np.ndarray:
    """Fresh memory that begins at a line of the cache."""
    try:
        if nbytes >= PAGES:
            return _pages(nbytes)
        raw = np.empty(nbytes + LINE, np.uint8)
    except (MemoryError, ValueError, OverflowError, OSError):  # more than there is, or can be
        raise MemoryError(too_much(nbytes)) from None
    skip = -raw.__array_interface__["data"][0] % LINE  # in half the time of raw.ctypes
    return raw[skip : skip + nbytes]


def _pages(nbytes: int) -> np.ndarray:
    """Pages of its own, which the system gets back when the array goes.

    The C library's heap keeps where large arrays have been, and there NumPy has asked for huge
    pages: a small array that comes to lie there would take 2 MiB.
    """
    private = {} if os.name == "nt" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
    pages = mmap.mmap(-1, nbytes, **private)
    if sys.platform == "linux" and nbytes >= HUGE:
        with suppress(OSError):  # a system without huge pages
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)
