"""Threads that help with one run, and which runs have them."""

from __future__ import annotations

import _thread
from collections.abc import Callable

#: Seconds of a run that is always shared: it is no place to try anything out.
LONG = 0.5
#: The way that is not taken is timed again after so many runs, then after ever more.
SOON, MOST = 4, 64
#: How much a run counts beside those before it.
WEIGHT = 0.25


class Sharing:
    """Whether the runs of a program are shared among threads: as has been faster lately.

    Where other programs want the processors, a helper that is halted with a part in its hands holds
    up a short run for longer than it takes alone. Both ways give the same bits.
    """

    def __init__(self) -> None:
        self.seconds: dict[bool, float] = {}
        self.began = False
        self.wait = self.left = SOON

    @property
    def is_faster(self) -> bool:
        return self.seconds[True] <= self.seconds[False]

    def next(self) -> bool:
        if True not in self.seconds or self.seconds[True] > LONG:
            return True
        if False not in self.seconds:
            return False
        self.left -= 1
        if self.left > 0:
            return self.is_faster
        self.wait = self.left = min(2 * self.wait, MOST)
        return not self.is_faster

    def note(self, shared: bool, seconds: float) -> None:
        if not self.began:  # the first run finds its memory for the first time
            self.began = True
            return
        known = len(self.seconds) == 2 and self.is_faster
        last = self.seconds.get(shared, seconds)
        self.seconds[shared] = last + WEIGHT * (seconds - last)
        if len(self.seconds) == 2 and self.is_faster is not known:
            self.wait = self.left = SOON


def started(worker: Callable[[int], None], address: int) -> _thread.LockType:
    """A lock that a thread holds until ``worker`` has ended in it.

    A ``threading.Thread`` would be waited for until it runs, twice the time of the start.
    """
    busy = _thread.allocate_lock()
    busy.acquire()

    def run() -> None:
        try:
            worker(address)
        finally:
            busy.release()

    _thread.start_new_thread(run, ())
    return busy
