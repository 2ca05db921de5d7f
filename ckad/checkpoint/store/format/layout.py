"""How the bytes of a state are cut into blocks, and what its file takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ckad.checkpoint.store.format.checksum import ALIGNMENT, seed_of
from ckad.checkpoint.store.format.head import UNIT

BLOCK = 2**20  # bytes of a state in one block: summed while it lies in the cache
FRAME = ALIGNMENT  # bytes before each block
CLUSTER = 4096  # bytes that file systems give at a time


class Field(NamedTuple):
    """A part of a state with one kind of elements: bytes ``[start, stop)`` of it."""

    start: int
    stop: int
    itemsize: int = 8
    codec: str | None = None  # "float32" for float64s alone


@dataclass(frozen=True)
class Layout:
    """The fields of a state, in order and without gaps; what follows from them is found once."""

    fields: tuple[Field, ...]

    @property
    def slot_bytes(self) -> int:
        return self.fields[-1].stop if self.fields else 0

    @cached_property
    def file_bytes(self) -> int:
        """Head, frames and blocks, none of which grows when it is encoded."""
        framed = (FRAME + padded(stop - start) for start, stop, *_ in self.blocks)
        return UNIT + sum(framed)

    @cached_property
    def digest(self) -> str:
        return f"{seed_of(*map(repr, self.fields)):016x}"

    @cached_property
    def blocks(self) -> tuple[Field, ...]:
        return tuple(
            field._replace(start=start, stop=min(start + BLOCK, field.stop))
            for field in self.fields
            for start in range(field.start, field.stop, BLOCK)
        )


def layout(slot_bytes: int, codec: str | None = None, fields: Sequence[Field] = ()) -> Layout:
    """What lies between ``fields`` is kept without loss: as it is, or by ``codec="zstd"``."""
    if codec == "float32":
        raise ValueError("which bytes of a state are float64s? float32 is for fields alone")
    whole: list[Field] = []
    at = 0
    for field in sorted(fields):
        if field.start < at or field.stop < field.start:
            raise ValueError(f"{field} overlaps what is before it, which ends at {at}")
        if field.codec == "float32" and (field.stop - field.start) % 8:
            raise ValueError(f"{field} holds no float64s: its bytes are not a multiple of 8")
        whole += [Field(at, field.start, codec=codec), field]
        at = field.stop
    if at > slot_bytes:
        raise ValueError(f"fields end at {at}, and a state has {slot_bytes} bytes")
    whole.append(Field(at, slot_bytes, codec=codec))
    return Layout(tuple(field for field in whole if field.stop > field.start))


def padded(n_bytes: int, unit: int = ALIGNMENT) -> int:
    return -(-n_bytes // unit) * unit
