"""Ctrl-C where nothing is half done.

Python raises KeyboardInterrupt between any two instructions, also within the few that take a lock,
which then stays locked. So a call of the store notes the signal, and answers it where it waits,
between two blocks, or at its end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

POLL = 0.05  # seconds between two looks while something is waited for


class _Noted:
    """Signals that came during a call, and what they are for."""

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self.handler, self.came = handler, False

    def note(self, number: int, frame: FrameType | None) -> None:
        self.came = True

    def answer(self) -> None:
        if self.came:
            self.came = False
            self.handler(signal.SIGINT, None)


_noted: list[_Noted] = []  # of calls within calls, all of them in the main thread


@contextmanager
def deferred() -> Iterator[None]:
    """Within, a KeyboardInterrupt comes from `answer` alone."""
    if _noted or threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        yield
        return
    noted = _Noted(handler)
    signal.signal(signal.SIGINT, noted.note)
    _noted.append(noted)
    try:
        yield
    finally:
        _noted.pop()
        signal.signal(signal.SIGINT, handler)
        noted.answer()


def answer() -> None:
    """Do what Ctrl-C asks for, if it came: mostly raise KeyboardInterrupt."""
    if _noted and threading.current_thread() is threading.main_thread():
        _noted[-1].answer()
