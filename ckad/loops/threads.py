"""How many threads a program may use."""

from __future__ import annotations

import os

#: Looked at in this order; the usual ones of libraries that bring threads.
VARIABLES = ("CKAD_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


def n_threads(asked: int | None) -> int:
    """``threads=`` if it was given, else the environment's word, else all CPUs we may run on."""
    if asked is not None:
        return asked
    for name in VARIABLES:
        text = os.environ.get(name, "").split(",")[0].strip()
        if text.isdecimal() and int(text) > 0:
            return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
