"""The memory that values lie in during a run.

Fresh memory comes in pages that the system clears one by one when they are first written, which can
take as long as the run itself. So what a run has used is kept for the next one, within a limit.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from ckad import locks
from ckad.engines.heap import too_much

LINE = 64  # bytes of a line of the cache
#: Bytes that are kept between runs at most; less than the least is not worth it.
MOST, LEAST = 2**26, 2**16
#: Bytes of each of the few small memories that are kept: to ask for new ones takes longer than a
#: small run.
SMALL, FEW = 2**14, 8
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
        raw = np.empty(nbytes + LINE, np.uint8)
    except (MemoryError, ValueError):  # ValueError: more than NumPy can count
        raise MemoryError(too_much(nbytes)) from None
    skip = -raw.__array_interface__["data"][0] % LINE  # in half the time of raw.ctypes
    return raw[skip : skip + nbytes]
