"""How many threads a program may use."""

from __future__ import annotations

import os

#: Looked at in this order; the usual ones of libraries that bring threads.
VARIABLES = ("CKAD_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


#: More than there are CPUs only wait for each other; that many are always allowed.
ALLOWED = 8


def n_threads(asked: int | None) -> int:
    """``threads=`` if it was given, else the environment's word, else all CPUs we may run on."""
    return min(asked or _named() or _cpus(), max(ALLOWED, _cpus()))


def _named() -> int | None:
    for name in VARIABLES:
        text = os.environ.get(name, "").split(",")[0].strip()
        if text.isdecimal() and int(text) > 0:
            return int(text)
    return None


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
