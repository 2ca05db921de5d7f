"""Which file holds which slot, and which files a progress record still needs.

Files are never changed while a record that is on the disk refers to them: a slot that is written
again goes into another file, and the one before is free as soon as newer records have taken its
place. So whenever a run is killed, all that its record names is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush

from ckad.checkpoint.store.format.slots import Stored


class Table:
    """Slots and files of one store."""

    RECORDS = 2  # on the disk: if the newest does not survive, the one before does

    def __init__(self, n_files: int) -> None:
        self.n_files = n_files
        self.slots: dict[int, Stored] = {}
        self._sequence = 0
        self._records: list[tuple[Stored, ...]] = []  # the oldest first
        self._n_pending = 0  # of the records, at the end: not on the disk yet
        self._uses: Counter[int] = Counter()  # of each file: by slots and records
        self._free: list[int] = []  # a heap: files that were used before

    def resume(self, records: Sequence[tuple[Stored, ...]], sequence: int) -> None:
        """Go on from what lies on the disk: records, the oldest first; slots are as in the last."""
        self._sequence = sequence
        for record in records:
            self.adopt(record)
        self.slots = {stored.slot: stored for stored in records[-1]}
        self._uses.update(stored.file for stored in records[-1])
        for file in range(max(self._uses, default=-1)):
            if file not in self._uses:
                self._uses[file] = 0
                heappush(self._free, file)

    def next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence

    def place(self, slot: int, step: int) -> Stored | None:
        """Give a slot a file that nothing needs, and forget what it held. None if there is none."""
        before = self.slots.pop(slot, None)
        if before is not None:
            self._release(before)
        file = self._unused()
        if file is None:
            self._keep_records(1)
            file = self._unused()
        if file is None:
            return None
        stored = Stored(slot, step, file, self.next_sequence())
        self.slots[slot] = stored
        self._uses[file] += 1
        return stored

    def drop(self, slot: int) -> None:
        stored = self.slots.pop(slot, None)
        if stored is not None:
            self._release(stored)

    def lose(self, stored: Stored) -> None:
        """It was not written; the slot may have been given away again meanwhile."""
        if self.slots.get(stored.slot) == stored:
            self.drop(stored.slot)

    def hold(self) -> tuple[Stored, ...]:
        """What the slots hold now belongs to a record that is about to be written."""
        now = tuple(self.slots.values())
        self.adopt(now)
        self._n_pending += 1
        return now

    def adopt(self, record: tuple[Stored, ...]) -> None:
        """A record that is on the disk needs these files."""
        self._records.append(record)
        self._uses.update(stored.file for stored in record)

    def recorded(self, on_disk: bool) -> None:
        """The oldest record that was about to be written is on the disk, or never will be."""
        if not on_disk:
            self._release(*self._records.pop(-self._n_pending))
        self._n_pending -= 1
        if on_disk:
            self._keep_records(self.RECORDS)

    def used(self) -> set[int]:
        return {file for file, n in self._uses.items() if n}

    def _unused(self) -> int | None:
        if self._free:
            return heappop(self._free)
        return len(self._uses) if len(self._uses) < self.n_files else None

    def _keep_records(self, n: int) -> None:
        """The newest ``n`` of those on the disk."""
        while len(self._records) > n + self._n_pending:
            self._release(*self._records.pop(0))

    def _release(self, *record: Stored) -> None:
        for stored in record:
            self._uses[stored.file] -= 1
            if not self._uses[stored.file]:
                heappush(self._free, stored.file)
