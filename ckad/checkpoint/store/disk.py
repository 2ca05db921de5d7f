"""Slots on disk, written behind the program and read ahead of it."""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from operator import index

from ckad.checkpoint.store.buffers import Buffers
from ckad.checkpoint.store.capacity import capacity
from ckad.checkpoint.store.directory import PrivateDirectory, resume_directory, scratch_directory
from ckad.checkpoint.store.format import codecs
from ckad.checkpoint.store.format.checksum import ALIGNMENT, checksum
from ckad.checkpoint.store.format.codecs import Rounding, Tally
from ckad.checkpoint.store.format.layout import Field, layout
from ckad.checkpoint.store.format.records import Journal, Position
from ckad.checkpoint.store.format.slots import SlotFormat
from ckad.checkpoint.store.interrupts import deferred
from ckad.checkpoint.store.recorder import Recorder
from ckad.checkpoint.store.slot_files import SlotFiles, lost
from ckad.checkpoint.store.table import Table
from ckad.checkpoint.store.traffic import Traffic
from ckad.errors import CheckpointError
from ckad.memory import free_memory

CACHED_PART = 4  # of the free memory, which the system's copies of the files may take


class DiskStore:
    """Restart states in files of a private directory, one slot each.

    Args:
        directory: the user's, None for the system's temporary one. A scratch store makes a
            directory of its own in it and removes it; a resumed one has ``ckad-resume`` there.
        limit: bytes of disk, which decide ``n_slots``.
        slot_bytes: bytes of a state.
        durability: "scratch" is gone when the process ends; with "resume" the run goes on after a
            kill at its last ``journal``.
        codec: None or "zstd", for what is in none of ``fields``.
        fields: parts of a state with codecs of their own; "float32" is for those of float64s.
        key: what must not have changed since the run was killed, by name.
        n_buffers: states in memory on their way; 0 makes the program wait for each.
        journal_bytes: bytes of blocks that are journalled in the background; larger ones are
            written while the caller waits.
        replaced: slots that are written anew between two journals, at most.

    Raises CheckpointError, from any method, for what the disk or the system refuses, also what a
    thread has met since the call before. The call that raises has not been done; the error's
    ``slot`` is lost, everything else is as it was, and the store stays usable. Called by one thread
    at a time.

    >>> store = DiskStore(None, 2**20, 8)
    >>> store.write(0, step=100, data=memoryview(bytes(range(8))))
    >>> into = bytearray(8)
    >>> store.read(0, step=100, into=memoryview(into))
    >>> into == bytes(range(8))
    True
    >>> store.close()
    """

    @deferred()
    def __init__(
        self,
        directory: str | os.PathLike[str] | None,
        limit: int,
        slot_bytes: int,
        *,
        durability: str = "scratch",
        codec: str | None = None,
        fields: Sequence[Field] = (),
        key: Mapping[str, str] | None = None,
        n_buffers: int = 3,
        journal_bytes: int = 0,
        replaced: int = 1,
    ) -> None:
        checksum(memoryview(bytes(ALIGNMENT)), 0)  # compiled here and not in a thread
        self.slot_bytes = slot_bytes
        self.tally = Tally()
        room = capacity(
            limit,
            slot_bytes,
            durability=durability,
            codec=codec,
            fields=fields,
            n_buffers=n_buffers,
            journal_bytes=journal_bytes,
            replaced=replaced,
        )
        self.n_slots, self.buffer_bytes = room.n_slots, room.buffer_bytes
        how = layout(slot_bytes, codec, fields)
        coded = {name: codecs.codec(name, self.tally) for name in {None, *_names(how.fields)}}
        resume = durability == "resume"
        opened = _directory(directory, resume)
        try:
            recorder = Recorder(opened, how.digest, key or {}) if resume else None
            run = recorder.run if recorder else os.urandom(16).hex()
            cached = limit <= free_memory() // CACHED_PART
            n_ahead = room.n_files if n_buffers else 0
            self._files = SlotFiles(opened, SlotFormat(run, how, coded), resume, cached, n_ahead)
            self._table = Table(room.n_files)
            if recorder:
                recorder.restore(self._table, self._files)
        except BaseException:
            opened.close(remove=not resume)
            raise
        self._recorder = recorder
        self._traffic = Traffic(
            Buffers(n_buffers, slot_bytes),
            self._files.save,
            self._files.load,
            self._table.lose,
            lossy="float32" in _names(how.fields),
        )
        self._journal_memory = memoryview(mmap.mmap(-1, max(journal_bytes, 1)))[:journal_bytes]
        self._end = weakref.finalize(self, _end, self._traffic, opened, not resume)

    @property
    def path(self) -> str:
        """The private directory."""
        return self._files.directory.path

    @property
    def is_open(self) -> bool:
        return self._end.alive

    @property
    def bytes_written(self) -> int:
        journals = self._recorder.bytes_written if self._recorder else 0
        return self._files.bytes_written + journals

    @property
    def bytes_read(self) -> int:
        return self._files.bytes_read

    @property
    def bytes_on_disk(self) -> int:
        """Of the slots' files, those not in use at the moment included."""
        return self._files.bytes_on_disk

    @property
    def seconds_waited(self) -> float:
        """How long the program has waited for the disk."""
        return self._traffic.seconds_waited

    @property
    def seconds_busy(self) -> float:
        """How long the disk, checksums and codecs have taken, in the program or beside it."""
        return self._traffic.seconds_busy

    @property
    def rounding(self) -> Rounding:
        """What a lossy codec has changed so far."""
        return self.tally.rounding

    @deferred()
    def write(self, slot: int, step: int, data: memoryview) -> None:
        """Put a state into a slot; ``data`` may change as soon as this returns."""
        self._traffic.check()
        slot, step = index(slot), index(step)
        if not 0 <= slot < self.n_slots:
            raise CheckpointError(
                f"{self.path} has room for {self.n_slots} slots, and slot {slot} is asked for; "
                "raise disk= in ckad.Budget.",
                self.path,
            )
        data = _bytes(data, self.slot_bytes)
        with self._traffic.changed:
            before = self._table.slots.get(slot)
            stored = self._table.place(slot, step)
        if before is not None:
            self._traffic.forget(before)
        if stored is None:
            self._traffic.flush()  # records on their way hold files too
            with self._traffic.changed:
                stored = self._table.place(slot, step)
        if stored is None:
            raise CheckpointError(
                f"{self.path} is used up: what slots held when the last record was made is still "
                "kept. Journal more often, or raise disk= in ckad.Budget.",
                self.path,
                slot=slot,
            )
        try:
            with self._traffic.timed_wait():
                self._files.make(stored)
            self._traffic.write(stored, data)
        except BaseException:
            self.drop(slot)
            raise

    @deferred()
    def read(self, slot: int, step: int, into: memoryview) -> None:
        """Fill ``into`` with what was written; CheckpointError with ``slot`` if it is lost."""
        self._traffic.check()
        into = _bytes(into, self.slot_bytes)
        stored = self._table.slots.get(slot)
        if stored is None or stored.step != step:
            raise lost(self.path, slot, step, stored)
        self._traffic.read(stored, into)

    @deferred()
    def prefetch(self, slot: int, step: int) -> None:
        """Begin to read a slot that will be read soon."""
        self._traffic.check()
        stored = self._table.slots.get(slot)
        if stored is not None and stored.step == step:
            self._traffic.prefetch(stored)

    @deferred()
    def drop(self, slot: int) -> None:
        """The slot is not needed any more."""
        if not self._traffic.is_here():
            return
        with self._traffic.changed:
            stored = self._table.slots.get(slot)
            self._table.drop(slot)
        if stored is not None:
            self._traffic.forget(stored)

    @deferred()
    def journal(self, position: Position, blocks: Sequence[memoryview] = ()) -> None:
        """Replace the run's progress record; what the slots hold now is part of it.

        ``blocks`` may change as soon as this returns. A run that is killed goes on from here once
        ``flush`` has returned, and from here or from the journal before until then.
        """
        if self._recorder is None:
            raise ValueError('journals are for durability="resume"')
        self._traffic.check()
        blocks = [_bytes(block) for block in blocks]
        fits = sum(block.nbytes for block in blocks) <= self._journal_memory.nbytes
        self._recorder.record(
            self._traffic, self._table, position, blocks, self._journal_memory if fits else None
        )

    def read_journal(self) -> Journal | None:
        """The progress record that was there when the store was made, if there was one."""
        return self._recorder.found.journal() if self._recorder and self._recorder.found else None

    @deferred()
    def flush(self) -> None:
        """Wait until everything that was handed over is in its file."""
        self._traffic.check()
        self._traffic.flush()

    @deferred()
    def close(self, keep: bool = False) -> None:
        """End the threads and remove the files, or keep them so that the run can be resumed."""
        if self._end.detach() is None:
            return
        _end(self._traffic, self._files.directory, not keep or self._recorder is None)


def _end(traffic: Traffic, directory: PrivateDirectory, remove: bool) -> None:
    if traffic.is_under_way():  # it cannot wait for itself
        threading.Thread(target=_end, args=(traffic, directory, remove), daemon=True).start()
        return
    if traffic.end():  # else a thread still uses the directory
        directory.close(remove)


def _directory(base: str | os.PathLike[str] | None, resume: bool) -> PrivateDirectory:
    if not resume:
        return scratch_directory(base)
    if base is None:
        raise CheckpointError("a run that can be resumed needs a directory of its own; name one.")
    return resume_directory(base)


def _names(fields: Sequence[Field]) -> set[str | None]:
    return {field.codec for field in fields}


def _bytes(data: memoryview, n_bytes: int | None = None) -> memoryview:
    data = memoryview(data).cast("B")
    if n_bytes is not None and data.nbytes != n_bytes:
        raise ValueError(f"{data.nbytes} bytes for a slot of {n_bytes}")
    return data
