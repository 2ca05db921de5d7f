"""Locks that a forked child never finds held by a thread that it does not have."""

from __future__ import annotations

import os
import threading

_all: list[threading.RLock] = []
_taken: list[threading.RLock] = []  # by the thread that forks


def lock() -> threading.RLock:
    """A lock that forks wait for: none happens while another thread holds it."""
    made = threading.RLock()
    _all.append(made)
    return made


def _take_all() -> None:
    """Wait for one at a time, holding none: others take them in orders of their own."""
    while True:
        taken: list[threading.RLock] = []
        for one in list(_all):
            if not one.acquire(blocking=False):
                break
            taken.append(one)
        else:
            _taken[:] = taken
            return
        for other in taken:
            other.release()
        with one:
            pass


def _give_all() -> None:
    taken, _taken[:] = list(_taken), []
    for one in taken:
        one.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_give_all, after_in_child=_give_all)
