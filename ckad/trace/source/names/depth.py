"""Room for recursion: one call of a function run from source takes a dozen calls of Python."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ckad import locks

#: So many times as deep as the program's own limit: more could exceed the stack of C.
TIMES = 3
_lock = locks.lock()
_limits: list[int] = []  # one per recording that runs, of all threads


@contextmanager
def deeper() -> Iterator[None]:
    """Within, functions may call themselves about as deep as Python lets them."""
    with _lock:
        if not _limits:
            sys.setrecursionlimit(TIMES * sys.getrecursionlimit())
        _limits.append(sys.getrecursionlimit())
    try:
        yield
    finally:
        with _lock:
            _limits.pop()
            if not _limits:
                sys.setrecursionlimit(sys.getrecursionlimit() // TIMES)
