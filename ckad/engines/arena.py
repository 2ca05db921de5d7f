"""The memory that values lie in during a run.

Fresh memory comes in pages that the system clears one by one when they are first written, which can
take as long as the run itself. So what a run has used is kept for the next one, within a limit.
"""

from __future__ import annotations

import numpy as np

from ckad import locks
from ckad.engines.heap import too_much

LINE = 64  # bytes of a line of the cache
#: Bytes that are kept between runs at most; less than the least is not worth it.
MOST, LEAST = 2**26, 2**16
_lock = locks.lock()
_kept: list[np.ndarray] = []


def take(nbytes: int) -> np.ndarray:
    """Memory for a run, at least ``nbytes``; what it holds is not defined."""
    if LEAST <= nbytes <= MOST:
        with _lock:
            if _kept and _kept[0].size >= nbytes:
                return _kept.pop()
            _kept.clear()  # before there is more
    return aligned(nbytes)


def give(memory: np.ndarray) -> None:
    """Take back what a run has used."""
    if LEAST <= memory.size <= MOST:
        with _lock:
            if not _kept or _kept[0].size < memory.size:
                _kept[:] = [memory]


def clear() -> None:
    """Give what is kept back to the system."""
    with _lock:
        _kept.clear()


def aligned(nbytes: int) -> np.ndarray:
    """Fresh memory that begins at a line of the cache."""
    try:
        raw = np.empty(nbytes + LINE, np.uint8)
    except (MemoryError, ValueError):  # ValueError: more than NumPy can count
        raise MemoryError(too_much(nbytes)) from None
    skip = -raw.__array_interface__["data"][0] % LINE  # in half the time of raw.ctypes
    return raw[skip : skip + nbytes]
