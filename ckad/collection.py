"""Garbage collection put off while tapes are made: their rows are many, and few of them garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from ckad import locks

#: New objects after which Python looks for garbage meanwhile; by default it does after hundreds,
#: and now and then goes through all that there are, a third of what recording takes.
SELDOM = 200_000
_lock = locks.lock()
_before: list[tuple[int, int, int]] = []  # one per thread that makes tapes, what was asked for


@contextmanager
def rare_collection() -> Iterator[None]:
    """Within, Python looks for garbage rarely; a program that has it switched off keeps that."""
    with _lock:
        found = gc.get_threshold()
        _before.append(_before[0] if _before else found)
        if 0 < found[0] < SELDOM:
            gc.set_threshold(SELDOM, *found[1:])
    try:
        yield
    finally:
        with _lock:
            asked = _before.pop()
            if not _before and gc.get_threshold()[0] == SELDOM:
                gc.set_threshold(*asked)


@contextmanager
def kept_for_good() -> Iterator[None]:
    """What is made within is kept, and no garbage: Python need not look through it once it is made.

    It would at the next new object, a sixth of what an import takes.
    """
    with rare_collection():
        yield
        if not gc.get_freeze_count():  # else a program has said itself what is not looked through
            gc.freeze()  # out of all generations at once,
            gc.unfreeze()  # and into the oldest
