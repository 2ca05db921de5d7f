"""Two threads between a program and its files: one writes behind it, the other reads ahead of it.

What a thread meets is raised by the next call from outside. Threads hold no reference to the store,
so that one that is forgotten goes, and ends them.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from ckad.checkpoint.store.buffers import Buffer, Buffers, State
from ckad.checkpoint.store.format.slots import Stored
from ckad.checkpoint.store.interrupts import POLL, answer
from ckad.errors import CheckpointError


class Job:
    """What the thread that writes is asked to do."""

    def __init__(self, run: Callable[[], None]) -> None:
        self.run = run
        self.begun = self.done = False


class Traffic:
    """Buffers, jobs and threads of one store.

    ``save`` and ``load`` move a state to and fro; ``lost`` is told of one that was not written.
    With ``lossy`` a state is read from its file alone: its bits do not depend on who is faster.
    """

    LONGEST_END = 60.0  # seconds that the end of a process waits for a disk

    def __init__(
        self,
        buffers: Buffers,
        save: Callable[[Stored, memoryview], None],
        load: Callable[[Stored, memoryview], None],
        lost: Callable[[Stored], None],
        lossy: bool,
    ) -> None:
        self.buffers, self._save, self._load, self._lost = buffers, save, load, lost
        self._passing = {State.LOADING, State.WRITING} if lossy else {State.LOADING}
        self.seconds_waited = self.seconds_busy = 0.0
        self.changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._doing: Job | None = None
        self._ahead: deque[Stored] = deque()
        self._fault: BaseException | None = None
        self._ending = False
        self._threads: dict[str, threading.Thread] = {}
        self._owner = os.getpid()

    def is_here(self) -> bool:
        """Whether this process has its threads, and did not inherit their locks by a fork."""
        return os.getpid() == self._owner

    def check(self) -> None:
        """Raise what a thread has met since the last call."""
        if not self.is_here():
            raise CheckpointError(
                f"these checkpoints belong to process {self._owner}, of which this one was forked; "
                "make its own."
            )
        if self._ending:
            raise CheckpointError("these checkpoints are closed.")
        with self.changed:
            fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def write(self, stored: Stored, data: memoryview) -> None:
        """Copy ``data`` and return; it is written later."""
        if not self.buffers.all:
            self.now(lambda: self._save(stored, data))
            return
        buffer: Buffer | None = None
        job = Job(lambda: None)
        try:
            with self.changed:
                buffer = self._wait_for(self.buffers.for_writing)
                self.buffers.take(buffer, State.WRITING, stored)
            job.run = partial(self._write_behind, buffer, stored)
            _copy(data, buffer.memory)
            self.later(job)
        except BaseException:  # Ctrl-C at any place
            with self.changed:
                if buffer is not None and not job.begun and job not in self._jobs:
                    buffer.clear()
                    self.changed.notify_all()
            raise

    def later(self, job: Job) -> None:
        """Do it in the thread that writes, after what was asked of it before."""
        with self.changed:
            self._start("writes", self._write_on)
            self._jobs.append(job)
            self.changed.notify_all()

    def now(self, run: Callable[[], None]) -> None:
        """Do it here, after what was asked of the thread that writes."""
        self.flush()
        with self.timed_wait(), self._timed_work():
            run()

    def wait(self, job: Job) -> None:
        with self.changed:
            while not job.done:
                self._wait()

    def read(self, stored: Stored, into: memoryview) -> None:
        with self.changed:
            if stored in self._ahead:  # not begun
                self._ahead.remove(stored)
            buffer = self.buffers.holding(stored)
            while buffer is not None and buffer.state in self._passing:
                self._wait()
                buffer = self.buffers.holding(stored)
            if buffer is not None:
                buffer.users += 1
        if buffer is None:
            with self.timed_wait(), self._timed_work():
                self._load(stored, into)
            return
        try:
            _copy(buffer.memory, into)
        finally:
            with self.changed:
                buffer.users -= 1
                if buffer.state is State.AHEAD:
                    self.buffers.take(buffer, State.KEPT, stored)
                self.changed.notify_all()

    def prefetch(self, stored: Stored) -> None:
        with self.changed:
            if self.buffers.all and stored not in self._ahead and not self.buffers.holding(stored):
                self._start("reads", self._read_on)
                self._ahead.append(stored)
                self.changed.notify_all()

    def forget(self, stored: Stored) -> None:
        with self.changed:
            if stored in self._ahead:
                self._ahead.remove(stored)
            self.buffers.forget(stored)
            self.changed.notify_all()

    def flush(self) -> None:
        """Wait until the thread that writes has nothing left to do; raise what it has met."""
        with self.changed:
            while self._jobs or self._doing:
                self._wait()
        self.check()

    def faulty(self) -> bool:
        return self._fault is not None

    def is_under_way(self) -> bool:
        """Whether this is one of its threads, in which the garbage collector runs as anywhere."""
        return threading.current_thread() in self._threads.values()

    def end(self) -> bool:
        """End the threads, whatever is left to do. Whether they have ended."""
        if not self.is_here():
            return False
        with self.changed:
            self._ending = True
            self.changed.notify_all()
        until = time.monotonic() + self.LONGEST_END
        for thread in self._threads.values():
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads.values())

    def _wait_for(self, free: Callable[[], Buffer | None]) -> Buffer:
        found = free()
        while found is None:
            self._wait()
            found = free()
        return found

    def _wait(self) -> None:
        """Until something has changed, or for a moment, after which Ctrl-C is answered."""
        with self.timed_wait():
            self.changed.wait(POLL)
        answer()

    @contextmanager
    def _timed_work(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            with self.changed:
                self.seconds_busy += time.perf_counter() - start

    @contextmanager
    def timed_wait(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds_waited += time.perf_counter() - start

    def _start(self, name: str, work: Callable[[], None]) -> None:
        if name not in self._threads:
            thread = threading.Thread(target=work, name=f"ckad {name} checkpoints", daemon=True)
            thread.start()
            self._threads[name] = thread

    def _write_on(self) -> None:
        while True:
            with self.changed:
                while not self._jobs and not self._ending:
                    self.changed.wait()
                if self._ending:
                    return
                job = self._doing = self._jobs.popleft()
                job.begun = True
            try:
                with self._timed_work():
                    job.run()
            except BaseException as fault:  # for the next call from outside
                with self.changed:
                    self._fault = self._fault or fault
            with self.changed:
                job.done, self._doing = True, None
                self.changed.notify_all()
            del job  # with what it refers to

    def _write_behind(self, buffer: Buffer, stored: Stored) -> None:
        kept = False
        try:
            self._save(stored, buffer.memory)
            kept = True
        finally:
            with self.changed:
                if kept and State.WRITING not in self._passing:
                    self.buffers.take(buffer, State.KEPT, stored)
                else:
                    buffer.clear()
                if not kept:
                    self._lost(stored)
                self.changed.notify_all()

    def _read_on(self) -> None:
        while True:
            with self.changed:
                buffer = None
                while not self._ending and buffer is None:
                    buffer = self.buffers.for_reading() if self._ahead else None
                    if buffer is None:
                        self.changed.wait()
                if buffer is None:
                    return
                stored = self._ahead.popleft()
                self.buffers.take(buffer, State.LOADING, stored)
            self._read_ahead(buffer, stored)

    def _read_ahead(self, buffer: Buffer, stored: Stored) -> None:
        sound = False
        try:
            with self._timed_work():
                self._load(stored, buffer.memory)
            sound = True
        except Exception:
            pass  # whoever asks for it reads it again, and meets it then
        finally:
            with self.changed:
                if sound:
                    self.buffers.take(buffer, State.AHEAD, stored)
                else:
                    buffer.clear()
                self.changed.notify_all()


def _copy(source: memoryview, into: memoryview) -> None:
    """As NumPy copies, which lets other threads run meanwhile."""
    np.copyto(np.frombuffer(into, np.uint8), np.frombuffer(source, np.uint8))
