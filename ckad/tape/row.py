"""One row of a tape."""

from __future__ import annotations

from typing import NamedTuple

from ckad.tape.ops import Op
from ckad.tape.types import Type


class Row(NamedTuple):
    """One row, unpacked from the arrays."""

    op: Op
    operands: tuple[int, ...]
    attrs: tuple[int, ...]
    type: Type
    source: int
