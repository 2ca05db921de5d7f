"""What was done with each loop of a program, for `ckad.explain`; how long it may be written out.

Recorders of loops call `note`; who asks has opened `noting`.
"""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ckad.errors import CkadError, UnrolledLoopWarning
from ckad.place import Source, at_place
from ckad.tape.control import UNBOUNDED, UNGUARDED
from ckad.trace.memory.context import Given, current
from ckad.trace.memory.storage import Storage
from ckad.trace.source.control.carried.findings import Findings
from ckad.trace.source.memory.aliases import names_of
from ckad.trace.source.memory.counts import full_deques
from ckad.trace.source.names.frame import RETURN, Frame, Ledger


class LoopNote(NamedTuple):
    """How one loop was recorded: in what way, how many steps, which names go from step to step."""

    place: Source
    way: str
    steps: str
    state: tuple[str, ...]


class _Noting(threading.local):
    def __init__(self) -> None:
        self.notes: dict[Source, LoopNote] | None = None


_noting = _Noting()


@contextmanager
def noting() -> Iterator[dict[Source, LoopNote]]:
    """Collect the notes of what is recorded meanwhile, by the loops' places."""
    before, _noting.notes = _noting.notes, {}
    try:
        yield _noting.notes
    finally:
        _noting.notes = before


def is_noting() -> bool:
    return _noting.notes is not None


def note(place: Source, way: str, steps: str, state: Sequence[str] = ()) -> None:
    """Say how the loop at ``place`` was recorded; what is said last counts."""
    if _noting.notes is not None:
        _noting.notes[place] = LoopNote(place, way, steps, tuple(dict.fromkeys(state)))


def note_recorded(place: Source, found: Findings, adopted: Sequence[Storage]) -> None:
    """Say what a loop carries that was recorded once for all its steps."""
    if not is_noting():
        return
    state = [name for _, name in found.carried if name not in (RETURN, Ledger.CHECKS)]
    state += [f"{name}[...]" for x in adopted if x.writes for name in names_of(x.root)]
    length = found.length
    known = found.guard == UNGUARDED
    steps = f"{length:,}" if known else "unknown" if length >= UNBOUNDED else f"≤ {length:,}"
    note(place, "recorded once", steps, state)


# --- loops that are written out -------------------------------------------------------------------

#: Rows of loops that are written out because they cannot be recorded: without a warning, and at
#: most.
QUIET, MOST_ROWS = 2_000, 100_000


@contextmanager
def limited(
    frame: Frame, node: ast.For | ast.While, error: CkadError
) -> Iterator[Callable[[], bool]]:
    """A check of each step that is written out: may the others be one, now that deques are full?"""
    rows = current().builder.rows
    before, warned, n_full = len(rows), False, full_deques()
    reason = str(error).partition("\n")[0].removeprefix(f"{frame.place}: ")
    frame.line = node.lineno
    note(frame.place, f"written out: {reason}", "each")

    def check() -> bool:
        nonlocal warned
        made = len(rows) - before
        if made > MOST_ROWS:
            raise error
        if made > QUIET and not warned and current().decides < Given.DECISIONS:
            warned = True
            frame.line = node.lineno
            message = at_place(
                "this loop is recorded step by step, which makes a long program, because it "
                f"cannot be recorded once for all its steps: {reason}"
            )
            warnings.warn(message, UnrolledLoopWarning, stacklevel=2)
        return full_deques() > n_full

    yield check
