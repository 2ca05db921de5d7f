"""How long a program may become by loops that are written out."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ckad.errors import CkadError, UnrolledLoopWarning
from ckad.place import at_place
from ckad.trace.memory.context import current
from ckad.trace.source.control import notes
from ckad.trace.source.names.frame import Frame

#: Rows of loops that are written out because they cannot be recorded: without a warning, and at
#: most.
QUIET, MOST_ROWS = 2_000, 100_000


@contextmanager
def limited(
    frame: Frame, node: ast.For | ast.While, error: CkadError
) -> Iterator[Callable[[], None]]:
    """A check for each step of a loop that ``error`` keeps from being recorded once."""
    rows = current().builder.rows
    before, warned = len(rows), False
    reason = str(error).partition("\n")[0].removeprefix(f"{frame.place}: ")
    frame.line = node.lineno
    notes.note(frame.place, f"written out: {reason}", "each")

    def check() -> None:
        nonlocal warned
        made = len(rows) - before
        if made > MOST_ROWS:
            raise error
        if made > QUIET and not warned:
            warned = True
            frame.line = node.lineno
            message = at_place(
                "this loop is recorded step by step, which makes a long program, because it "
                f"cannot be recorded once for all its steps: {reason}"
            )
            warnings.warn(message, UnrolledLoopWarning, stacklevel=2)

    yield check
