"""How values lie one after the other in a restart state or in the residuals of a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ckad.engines.native.ir.element import nbytes
from ckad.engines.native.values.registers import is_small
from ckad.tape.types import Type

WORD, LINE = 8, 64


def rounded_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def room(type: Type) -> int:
    """Bytes that a value takes: vectors of large ones begin at lines of the cache."""
    return rounded_up(max(1, nbytes(type)), WORD if is_small(type) else LINE)


def offsets(types: Iterable[Type]) -> list[int]:
    """Where each value begins; large ones come first, so that they are aligned."""
    types = list(types)
    order = sorted(range(len(types)), key=lambda k: is_small(types[k]))
    found, at = [0] * len(types), 0
    for k in order:
        found[k] = at
        at += room(types[k])
    return found


def record_bytes(types: Sequence[Type]) -> int:
    """Bytes of all values together."""
    total = sum(room(t) for t in types)
    return total if all(is_small(t) for t in types) else rounded_up(total, LINE)
