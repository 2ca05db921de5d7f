"""A state in a file: a head that says whose it is, then its blocks."""

from __future__ import annotations

import os
from typing import NamedTuple

from ckad.checkpoint.store import files
from ckad.checkpoint.store.format.blocks import Place, read_block, write_block
from ckad.checkpoint.store.format.codecs import Codec
from ckad.checkpoint.store.format.head import (
    LARGEST,
    PREAMBLE,
    UNIT,
    Fields,
    announced_bytes,
    decode,
    encode,
)
from ckad.checkpoint.store.format.layout import Layout
from ckad.errors import CheckpointError


class Stored(NamedTuple):
    """A state in a file; no two ever written have the same sequence number."""

    slot: int
    step: int
    file: int
    sequence: int

    def place(self, run: str) -> Place:
        return Place(run, "slot", self.sequence, self.slot, self.step)


class SlotFormat(NamedTuple):
    """How the states of one store lie in files."""

    run: str
    layout: Layout
    codecs: dict[str | None, Codec]

    def head(self, place: Place) -> Fields:
        layout = self.layout
        return place._asdict() | {"layout": layout.digest, "file_bytes": layout.file_bytes}

    def write(self, opened: int, place: Place, data: memoryview) -> None:
        head = encode(self.head(place))
        assert len(head) == UNIT
        files.write_all(opened, [head])
        for index, (start, stop, itemsize, name) in enumerate(self.layout.blocks):
            write_block(opened, place, index, data[start:stop], self.codecs[name], itemsize)

    def read(self, opened: int, place: Place, into: memoryview, path: str) -> None:
        check_head(opened, self.head(place), path)
        for index, (start, stop, _, name) in enumerate(self.layout.blocks):
            read_block(opened, place, index, into[start:stop], self.codecs[name], path)


def read_head(opened: int, path: str) -> Fields:
    """The head of any file of ckad, whose length has to be what it says."""
    start = os.read(opened, PREAMBLE.size)
    n_bytes = announced_bytes(start, path)
    assert n_bytes <= LARGEST
    rest = bytearray(n_bytes - len(start))
    files.read_all(opened, [rest], path)
    fields = decode(start + rest, path)
    there = os.fstat(opened).st_size
    if fields.get("file_bytes") != there:
        raise CheckpointError(
            f"{path} is damaged: it has {there:,} bytes, and {fields.get('file_bytes')} were "
            "written.",
            path,
        )
    return fields


def check_head(opened: int, expected: Fields, path: str) -> None:
    head = encode(expected)
    there = os.fstat(opened).st_size
    if os.pread(opened, len(head), 0) == head and there == expected["file_bytes"]:
        os.lseek(opened, len(head), os.SEEK_SET)
        return
    found = read_head(opened, path)  # and what is wrong with it
    if found == expected:
        return
    wrong = [
        f"{name} {found.get(name)!r} instead of {value!r}"
        for name, value in expected.items()
        if found.get(name) != value
    ]
    raise CheckpointError(
        f"{path} is not what was written there: it has {', '.join(wrong) or 'fields of others'}.",
        path,
    )
