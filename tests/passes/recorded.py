"""Programs as tapes that no pass but `simplify` has seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ckad.passes.simplify import simplify
from ckad.tape.tape import Tape
from ckad.trace.arguments import take_apart
from ckad.trace.record import record


def recorded(program: Callable[..., Any], inputs: Sequence[Any]) -> Tape:
    """The tape of a program, its loops as they were written."""
    return simplify(raw(program, inputs))


def raw(program: Callable[..., Any], inputs: Sequence[Any]) -> Tape:
    """What the program records, row by row."""
    return record(program, take_apart(inputs), {}).tape
