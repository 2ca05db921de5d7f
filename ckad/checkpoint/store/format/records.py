"""The record of a run's progress: where it stands, what its slots hold, and blocks of its own.

It is replaced in one piece, and the one before it is kept: whenever the run is killed, one that is
whole is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ckad.checkpoint.store import files
from ckad.checkpoint.store.faults import told
from ckad.checkpoint.store.format.blocks import Place, read_block, write_block
from ckad.checkpoint.store.format.codecs import Codec
from ckad.checkpoint.store.format.head import UNIT, Fields, encode
from ckad.checkpoint.store.format.layout import BLOCK, FRAME, padded
from ckad.checkpoint.store.format.slots import Stored, check_head, read_head
from ckad.errors import CheckpointError

Position = Mapping[str, int | str]

NEW = "journal-new"
NAMES = "journal-0", "journal-1"
MOST_SLOTS = 2**14  # so that a table of them stays small
_ROW = len(Stored._fields)


class Record(NamedTuple):
    """What is about to be written; the head of the file is made from it."""

    run: str
    sequence: int
    layout: str
    key: Mapping[str, str]
    position: Position
    slots: tuple[Stored, ...]

    @property
    def place(self) -> Place:
        return Place(self.run, "journal", self.sequence)


class Journal(NamedTuple):
    """A run's progress as it was recorded last: where it stands, and which slots hold which step.

    Its blocks are read into memory of the caller, who knows how large they have to be.
    """

    position: Position
    sizes: tuple[int, ...]  # bytes of each block
    slots: dict[int, int]  # slot -> step
    found: Found

    def read(self, blocks: Sequence[memoryview]) -> None:
        """Fill ``blocks`` with what was recorded; CheckpointError if it is damaged or replaced."""
        self.found.read(blocks)


class Found(NamedTuple):
    """A record on the disk whose head and table are sound."""

    directory: int
    path: str
    fields: Fields
    record: Record

    def journal(self) -> Journal:
        slots = {stored.slot: stored.step for stored in self.record.slots}
        return Journal(self.record.position, tuple(self.fields["sizes"]), slots, self)

    def read(self, blocks: Sequence[memoryview]) -> None:
        sizes = [block.nbytes for block in blocks]
        if sizes != self.fields["sizes"]:
            raise CheckpointError(
                f"{self.path} holds blocks of {self.fields['sizes']} bytes, not of {sizes}.",
                self.path,
            )
        with told(self.path, self.directory):
            opened = files.open_existing(self.directory, os.path.basename(self.path))
            try:
                check_head(opened, self.fields, self.path)
                _read_table(opened, self.record.place, len(self.record.slots), self.path)
                parts = (part for block in blocks for part in _parts(block))
                for index, part in enumerate(parts, 1):
                    read_block(opened, self.record.place, index, part, _PLAIN, self.path)
            finally:
                os.close(opened)


_PLAIN = Codec(0, lambda block, _: block, lambda stored, into: None)


def file_bytes(n_head: int, n_slots: int, sizes: Sequence[int]) -> int:
    table = FRAME + padded(n_slots * _ROW * 8)
    blocks = (padded(n) + FRAME * -(-n // BLOCK) for n in sizes)
    return n_head + table + sum(blocks)


def head_of(record: Record, sizes: Sequence[int]) -> bytes:
    """The head of the file; CheckpointError if key and position are too long for it."""
    fields = record.place._asdict() | {
        "layout": record.layout,
        "key": dict(record.key),
        "position": dict(record.position),
        "n_slots": len(record.slots),
        "sizes": [*sizes],
    }
    head = b""
    n_head = UNIT
    while len(head) != n_head:  # the head says how long the file is, and is itself part of it
        n_head = max(n_head, len(head))
        head = encode(fields | {"file_bytes": file_bytes(n_head, len(record.slots), sizes)})
    return head


def write_record(
    directory: int, path: str, record: Record, name: str, blocks: Sequence[memoryview]
) -> int:
    """Put a record in place of the one of that name, which stays if this fails. Its bytes."""
    sizes = [block.nbytes for block in blocks]
    head = head_of(record, sizes)
    n_bytes = file_bytes(len(head), len(record.slots), sizes)
    with told(os.path.join(path, name), directory, n_bytes):
        with suppress(FileNotFoundError):
            os.unlink(NEW, dir_fd=directory)
        opened = files.create(directory, NEW, n_bytes)
        try:
            files.write_all(opened, [head])
            table = np.array(record.slots, np.int64).tobytes()
            write_block(opened, record.place, 0, memoryview(table), _PLAIN)
            parts = (part for block in blocks for part in _parts(block))
            for index, part in enumerate(parts, 1):
                write_block(opened, record.place, index, part, _PLAIN)
            files.sync(opened)
        finally:
            os.close(opened)
        os.fsync(directory)  # files that the record names have their names before it has
        os.replace(NEW, name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)
    return n_bytes


def find_records(directory: int, path: str) -> list[Found]:
    """The sound records, the oldest first. CheckpointError if there are some, and none is sound."""
    found, faults = [], []
    for name in NAMES:
        try:
            with told(os.path.join(path, name), directory):
                found.append(_found(directory, path, name))
        except CheckpointError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                faults.append(error)
    if faults and not found:
        raise CheckpointError(
            f"no progress record in {path} can be used: {' '.join(map(str, faults))} Remove the "
            "directory to start anew.",
            path,
        ) from faults[0]
    return sorted(found, key=lambda one: one.record.sequence)


def _found(directory: int, path: str, name: str) -> Found:
    opened = files.open_existing(directory, name)
    path = os.path.join(path, name)
    try:
        fields = read_head(opened, path)
        record = _record(fields, path)
        slots = _read_table(opened, record.place, fields["n_slots"], path)
        _check_blocks(opened, record.place, fields["sizes"], path)
    finally:
        os.close(opened)
    return Found(directory, path, fields, record._replace(slots=slots))


def _record(fields: Fields, path: str) -> Record:
    """Who can write a checksum can write anything else into the fields, so each is looked at."""
    expected: dict[str, Any] = {"run": str, "kind": str, "sequence": int, "slot": int, "step": int}
    expected |= {"layout": str, "key": dict, "position": dict, "n_slots": int, "sizes": list}
    expected["file_bytes"] = int
    if {name: type(value) for name, value in fields.items()} != expected:
        raise CheckpointError(f"{path} is damaged: its head has other fields.", path)
    sizes, n_slots = fields["sizes"], fields["n_slots"]
    values = fields["position"].values()
    sound = (
        fields["kind"] == "journal"
        and 0 <= n_slots <= MOST_SLOTS
        and all(type(n) is int and n >= 0 for n in sizes)
        and all(type(value) in (int, str) for value in values)
        and all(type(value) is str for value in fields["key"].values())
        and fields["file_bytes"] - file_bytes(0, n_slots, sizes) >= 0
    )
    if not sound:
        raise CheckpointError(f"{path} is damaged: its head makes no sense.", path)
    run, sequence, layout = fields["run"], fields["sequence"], fields["layout"]
    return Record(run, sequence, layout, fields["key"], fields["position"], ())


def _read_table(opened: int, place: Place, n_slots: int, path: str) -> tuple[Stored, ...]:
    table = bytearray(n_slots * _ROW * 8)
    read_block(opened, place, 0, memoryview(table), _PLAIN, path)
    rows = np.frombuffer(table, np.int64).reshape(n_slots, _ROW)
    slots = tuple(Stored(*map(int, row)) for row in rows)
    unique = {stored.slot for stored in slots}, {stored.file for stored in slots}
    numbers_fit = all(0 <= stored.file < 10**9 for stored in slots)
    if not numbers_fit or any(len(one) != n_slots for one in unique):
        raise CheckpointError(f"{path} is damaged: two slots in one place.", path)
    return slots


def _check_blocks(opened: int, place: Place, sizes: Sequence[int], path: str) -> None:
    """So that the record before it is taken if one block is damaged."""
    memory = memoryview(bytearray(min(BLOCK, max(sizes, default=0))))
    index = 1
    for size in sizes:
        for at in range(0, size, BLOCK):
            read_block(opened, place, index, memory[: min(BLOCK, size - at)], _PLAIN, path)
            index += 1


def _parts(block: memoryview) -> list[memoryview]:
    return [block[at : at + BLOCK] for at in range(0, block.nbytes, BLOCK)]
