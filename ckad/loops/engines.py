"""The engines, and which of them a tape is run with."""

from __future__ import annotations

import importlib
from typing import cast

from ckad.engines.engine import Engine
from ckad.loops.work import compile_seconds, native_seconds, vm_seconds
from ckad.tape.tape import Tape

AUTO = "auto"
ENGINES = ("vm", "native")
#: How often a program is thought to be run: that often its time is held against the compiler's.
RUNS = 10


def engine_named(name: str) -> Engine:
    """An engine, imported when a program first asks for it."""
    return cast(Engine, importlib.import_module(f"ckad.engines.{name}.engine"))


def chosen(tape: Tape, engine: str, check_finite: bool) -> str:
    """The name of the engine that runs ``tape``.

    "auto" takes the native engine where the time it is predicted to save in RUNS runs exceeds that
    of compilation. The prediction reads the tape alone, never a budget, a schedule or a cache: one
    program gives the same bits under all of them.
    """
    if engine != AUTO:
        return engine
    if check_finite:
        return "vm"
    saved = RUNS * (vm_seconds(tape) - native_seconds(tape))
    return "native" if saved > compile_seconds(tape) else "vm"
