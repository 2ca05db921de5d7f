"""A process that judges programs: what crashes or hangs there does so alone."""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.connection import Connection

from .judge import FAILED, Verdict
from .program import Program

#: Seconds of the processor that a program may take, and of the clock before the worker is ended.
SECONDS, PATIENCE = 30, 300
#: Programs after which a worker makes room for a new one.
MOST = 2000


class Worker:
    """Judges one program after the other; started anew when it crashed or did not answer."""

    def __init__(self) -> None:
        self._process: multiprocessing.process.BaseProcess | None = None
        self._done = 0

    def judge(self, program: Program, last_stage: str = "") -> tuple[Verdict, float]:
        """The verdict, and the seconds of the processor that it took."""
        if self._process is None or self._done >= MOST:
            self._start()
        self._done += 1
        try:
            self._connection.send((program, last_stage))
            if self._connection.poll(PATIENCE):
                return self._connection.recv()  # type: ignore[no-any-return]
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return self._ended(), 0.0
        self.stop()
        return Verdict(FAILED, "hang", f"no answer after {PATIENCE} s"), float(PATIENCE)

    def _start(self) -> None:
        self.stop()
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def _ended(self) -> Verdict:
        """What a worker that is no more leaves to say."""
        assert self._process is not None
        self._process.join()
        code = self._process.exitcode
        self.stop()
        return Verdict(FAILED, "crash", f"the process ended with {code}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
        self._process, self._done = None, 0


def serve(connection: Connection) -> None:
    """Judge what comes until nothing comes any more."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from .judge import judge

    while True:
        try:
            program, last_stage = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        start = time.process_time()
        verdict = judge(program, last_stage, SECONDS)
        connection.send((verdict, time.process_time() - start))
