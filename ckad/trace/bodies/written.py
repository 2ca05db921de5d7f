"""Arrays from around a loop that its body writes into.

They are carried behind what the loop was given. Which these are is known once the body has been
recorded, so that it is recorded again, until nothing new is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from ckad.trace.memory.context import Trace, current, gathering, storage_in
from ckad.trace.memory.storage import Storage

T = TypeVar("T")


class _Again(Exception):
    """The body writes into more than was known."""


class Around:
    """The arrays that a body writes into."""

    def __init__(self) -> None:
        self.roots: dict[int, Storage] = {}

    @contextmanager
    def found(self, trace: Trace) -> Iterator[None]:
        """Note what else the body writes into while it is recorded, but for what functions do that
        a solver calls (`not_carried`)."""
        trace.is_given = True
        with gathering(trace, self.roots, _Again):
            yield

    def carried(self, trace: Trace) -> list[Storage]:
        """Give the body each of them, as its next inputs."""
        return [trace.adopt(root) for root in self.roots.values()]

    @property
    def operands(self) -> list[int]:
        """What they hold before the loop."""
        return [storage_in(current(), root).row for root in self.roots.values()]

    def end(self, rows: Sequence[int]) -> None:
        """Let them hold what they do after the loop."""
        for root, row in zip(self.roots.values(), rows, strict=True):
            local = storage_in(current(), root)
            local.check_writable()
            local.write(row)


def until_known(record: Callable[[Around], T]) -> T:
    """Record a loop with the arrays around it that its body writes into."""
    around = Around()
    while True:
        try:
            return record(around)
        except _Again:
            continue
