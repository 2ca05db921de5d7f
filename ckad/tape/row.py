"""One row of a tape, and the place in the user's program that it comes from."""

from __future__ import annotations

from typing import NamedTuple

from ckad.tape.ops import Op
from ckad.tape.types import Type


class Source(NamedTuple):
    """A place in the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else "<ckad>"


#: The place of rows that no line of the user's made.
NOWHERE = Source("", 0)


class Row(NamedTuple):
    """One row, unpacked from the arrays."""

    op: Op
    operands: tuple[int, ...]
    attrs: tuple[int, ...]
    type: Type
    source: int
