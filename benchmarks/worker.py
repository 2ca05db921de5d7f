"""One form of one peer in a process of its own: its memory and its threads are its own.

The parent sends a command's name and its arguments; the answer is ("ok", result) or
("error", text). An end of the connection ends the process.
"""

from __future__ import annotations

import importlib
import math
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.connection import Connection
from types import MappingProxyType
from typing import Any

from benchmarks.case import Inputs, Settings
from benchmarks.memory import peak_growth
from benchmarks.peers import PEERS

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class FormError(RuntimeError):
    """A form could not be built or run; the text says why."""


class Form:
    """What runs inside the process."""

    def __init__(self, case: str, peer: str, form: str, settings: Settings, options: Any) -> None:
        os.environ.update(PEERS[peer].environment)
        start = time.perf_counter()
        importlib.import_module(PEERS[peer].module)
        self.import_seconds = time.perf_counter() - start
        from benchmarks.cases import CASES

        self.build = partial(CASES[case].builder(peer, form), **options)
        self.settings = settings
        self.inputs = CASES[case].inputs(settings)

    def first(self) -> dict[str, Any]:
        """Build, compile and run once."""
        growth = peak_growth(self._build_and_run)
        return {
            "import_seconds": self.import_seconds,
            "first_seconds": self.first_seconds,
            "first_peak_growth": growth,
        }

    def _build_and_run(self) -> None:
        start = time.perf_counter()
        self.gradient = self.build(self.settings)
        self.last: tuple[float, Inputs] | float | None = self.gradient(self.inputs)
        self.first_seconds = time.perf_counter() - start

    def result(self) -> tuple[float, Inputs] | float | None:
        return self.last

    def steady_memory(self) -> int | None:
        self.last = None
        return peak_growth(lambda: self.gradient(self.inputs))

    def turn(self, seconds: float, processor: bool = False) -> float:
        """Mean seconds per call, over as many calls as fill about `seconds` (at least one).

        With `processor` the seconds are those of processors, of all threads together.
        """
        clock = time.process_time if processor else time.perf_counter
        elapsed = self._timed(1, clock)
        calls = math.ceil(seconds / elapsed)
        return elapsed if calls <= 1 else self._timed(calls, clock) / calls

    def _timed(self, calls: int, clock: Callable[[], float]) -> float:
        start = clock()
        for _ in range(calls):
            self.gradient(self.inputs)
        return clock() - start


def serve(connection: Connection, *work: Any) -> None:
    # A tiny size may be outside a peer's comfort; its warnings would break the table up.
    warnings.simplefilter("ignore")
    try:
        served = Form(*work)
        connection.send(("ok", None))
        while True:
            command, *arguments = connection.recv()
            connection.send(("ok", getattr(served, command)(*arguments)))
    except (EOFError, KeyboardInterrupt):
        return
    except Exception as error:  # every failure of a peer is a line in the report
        connection.send(("error", f"{type(error).__name__}: {error}"))


class Worker:
    """The parent's end: `ask` runs one of Form's methods over there.

    `options` are keywords for the form's builder. No answer may take longer than `limit_seconds`.
    """

    def __init__(
        self,
        case: str,
        peer: str,
        form: str,
        settings: Settings,
        options: Mapping[str, Any] = NO_OPTIONS,
        limit_seconds: float | None = None,
    ) -> None:
        self.limit_seconds = limit_seconds
        context = multiprocessing.get_context("spawn")
        self.connection, there = context.Pipe()
        arguments = (there, case, peer, form, dict(settings), dict(options))
        self.child = context.Process(target=serve, args=arguments, daemon=True)
        self.child.start()
        there.close()
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(self, command: str, *arguments: Any) -> Any:
        self.connection.send((command, *arguments))
        return self._answer()

    def _answer(self) -> Any:
        try:
            if not self.connection.poll(self.limit_seconds):
                self.child.kill()
                raise FormError(f"it took more than {self.limit_seconds:g} s")
            status, result = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.child.join()
            msg = f"the process ended with exit code {self.child.exitcode}"
            raise FormError(msg) from None
        if status == "error":
            raise FormError(result)
        return result

    def close(self) -> None:
        self.connection.close()
        self.child.join(timeout=10)
        if self.child.is_alive():
            self.child.kill()
