"""The engines, and which of them a tape is run with."""

from __future__ import annotations

import importlib
from typing import cast

from ckad.engines.engine import Engine
from ckad.engines.work import compile_seconds, nanoseconds
from ckad.tape.control import has_open_loop
from ckad.tape.tape import Tape

AUTO = "auto"
ENGINES = ("vm", "native")
#: How often a program is thought to be run, since machine code is kept on disk: that often its time
#: is held against the compiler's.
RUNS = 1000
#: About how often the time of a program its gradient takes, and how often its compilation.
GRADIENT, ITS_ROWS = 3.5, 3.0


def engine_named(name: str) -> Engine:
    """An engine, imported when a program first asks for it."""
    return cast(Engine, importlib.import_module(f"ckad.engines.{name}.engine"))


def chosen(tape: Tape, engine: str, members: int = 1) -> str:
    """The name of the engine that runs ``tape``, or the same for so many members of a batch.

    "auto" takes the native engine where the time it is predicted to save in RUNS gradients exceeds
    that of compilation, and where a loop may run longer than can be predicted. The prediction reads
    the tape alone, never a budget, a schedule or a cache: one program gives the same bits under all
    of them, and its value and its gradient are those of one engine.
    """
    if engine != AUTO:
        return engine
    if has_open_loop(tape):
        return "native"
    saved = RUNS * members * GRADIENT * (nanoseconds(tape, "vm") - nanoseconds(tape, "native"))
    return "native" if 1e-9 * saved > compile_seconds(tape, ITS_ROWS) else "vm"
