"""How far a call raises this process's resident memory above what it held before."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def peak_growth(call: Callable[[], object]) -> int | None:
    """Bytes by which the peak during `call` exceeds the memory held before it.

    Where the kernel cannot reset a process's peak, growth below an earlier peak cannot be seen
    and the answer is None rather than too small a number.
    """
    release_freed()
    if not reset_peak():
        before = peak_bytes()
        call()
        return peak_bytes() - before or None
    before = status_bytes("VmRSS")
    call()
    return status_bytes("VmHWM") - before


def reset_peak() -> bool:
    try:
        CLEAR.write_text("5")
    except OSError:
        return False
    return STATUS.exists()


def status_bytes(field: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def peak_bytes() -> int:
    # A child starts with its parent's ru_maxrss; only the growth within this process is used.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def release_freed() -> None:
    """Give freed heap back, so that a call cannot hide its memory in what an earlier one left."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
