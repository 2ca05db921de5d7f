"""The journal of one store: what was found of a killed run, and what is recorded of this one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ckad.checkpoint.store.directory import MARKER, PrivateDirectory
from ckad.checkpoint.store.format.records import (
    NAMES,
    Position,
    Record,
    find_records,
    head_of,
    write_record,
)
from ckad.checkpoint.store.slot_files import SlotFiles
from ckad.checkpoint.store.table import Table
from ckad.checkpoint.store.traffic import Job, Traffic
from ckad.errors import CheckpointError

LAYOUT = "layout of the state"
EPOCH = 2**40  # more numbers than a process gives, so that no two processes give the same


class Recorder:
    """Progress records of one run, the newer of the two on the disk found or written last."""

    def __init__(self, directory: PrivateDirectory, layout: str, key: Mapping[str, str]) -> None:
        self.directory, self.layout, self.key = directory, layout, dict(key)
        self.bytes_written = 0
        self._sound = find_records(directory.opened, directory.path)
        self.found = self._sound[-1] if self._sound else None
        if self.found is not None:
            self._refuse_others(self.found.record)
        self.run = self.found.record.run if self.found else os.urandom(16).hex()
        self._newest = os.path.basename(self.found.path) if self.found else NAMES[1]
        self._last: Job | None = None

    def restore(self, table: Table, files: SlotFiles) -> None:
        """The slots as they were recorded; everything else that a killed process has left goes."""
        sound = [found for found in self._sound if found.record.run == self.run]
        if sound:
            newest = sound[-1].record.sequence
            table.resume([found.record.slots for found in sound], newest // EPOCH * EPOCH + EPOCH)
        files.adopt(table.used())
        journals = {os.path.basename(found.path) for found in sound}
        files.remove_others({MARKER, *journals, *map(str, table.used())})

    def record(
        self,
        traffic: Traffic,
        table: Table,
        position: Position,
        blocks: Sequence[memoryview],
        memory: memoryview | None,
    ) -> None:
        """Write a record in the background, out of ``memory``, or here if there is none."""
        if not all(type(one) is str for one in position):
            raise TypeError(f"position={position!r} has names that are not str")
        if not all(type(one) in (int, str) for one in position.values()):
            raise TypeError(f"position={position!r} has values that are neither int nor str")
        if memory is None:
            traffic.flush()
        else:
            if self._last is not None:
                traffic.wait(self._last)  # it reads that memory
            blocks = _copied(blocks, memory)
        with traffic.changed:
            slots = tuple(table.slots.values())
            sequence = table.next_sequence()
            record = Record(self.run, sequence, self.layout, self.key, dict(position), slots)
            head_of(record, [block.nbytes for block in blocks])  # too long: nothing has happened
            table.hold()
        if memory is None:
            traffic.now(lambda: self._write(traffic, table, record, blocks))
            return
        self._last = Job(lambda: self._write(traffic, table, record, blocks))
        traffic.later(self._last)

    def _write(
        self, traffic: Traffic, table: Table, record: Record, blocks: Sequence[memoryview]
    ) -> None:
        on_disk = False
        try:
            if traffic.faulty():  # a slot that the record names was not written
                return
            name = NAMES[1 - NAMES.index(self._newest)]
            path = self.directory.path
            self.bytes_written += write_record(self.directory.opened, path, record, name, blocks)
            self._newest, on_disk = name, True
        finally:
            with traffic.changed:
                table.recorded(on_disk)

    def _refuse_others(self, record: Record) -> None:
        """A run goes on only with what it was begun with; what differs is named."""
        before = {**record.key, LAYOUT: record.layout}
        now = {**self.key, LAYOUT: self.layout}
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if names:
            wrong = [f"{name} (was {before.get(name)}, is {now.get(name)})" for name in names]
            path = self.directory.path
            raise CheckpointError(
                f"{path} holds a run that differs in {', '.join(wrong)}. Call it as it was begun, "
                "name another directory, or remove this one to start anew.",
                path,
                was={name: before.get(name) for name in names},
            )


def _copied(blocks: Sequence[memoryview], memory: memoryview) -> list[memoryview]:
    copies, at = [], 0
    for block in blocks:
        copies.append(memory[at : at + block.nbytes])
        copies[-1][:] = block
        at += block.nbytes
    return copies
