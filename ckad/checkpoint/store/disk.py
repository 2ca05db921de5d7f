"""Slots on disk, written behind and read ahead by threads."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ckad.errors import CheckpointError

Position = Mapping[str, int | str]


class Journal(NamedTuple):
    """A run's progress as it was recorded last: where it stands, and which slots hold which step.

    Its blocks are read into memory of the caller, who knows how large they have to be.
    """

    position: Position
    sizes: tuple[int, ...]  # bytes of each block
    slots: dict[int, int]  # slot -> step
    path: str

    def read(self, blocks: Sequence[memoryview]) -> None:
        """Fill ``blocks`` with what was recorded; CheckpointError if it is damaged."""
        with open(self.path, "rb") as file:
            file.readline()
            for block in blocks:
                file.readinto(block)


class DiskStore:
    """Restart states in files of a private directory, one slot each.

    ``directory`` is the user's, None for the system's temporary one; ``limit`` is in bytes and
    decides ``n_slots``. With ``durability="resume"`` the run continues after a kill at its last
    ``journal``; ``key`` names what must not have changed since. ``journal_bytes`` is how many bytes
    of blocks are journalled in the background; larger ones are written while the caller waits.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None,
        limit: int,
        slot_bytes: int,
        *,
        durability: str = "scratch",
        codec: str | None = None,
        key: Mapping[str, str] | None = None,
        n_buffers: int = 3,
        journal_bytes: int = 0,
    ) -> None:
        self.slot_bytes, self.durability = slot_bytes, durability
        self.n_slots = limit // (slot_bytes + 4096)
        self.buffer_bytes = 0
        self.bytes_written = self.bytes_read = 0
        self.seconds_waited = self.seconds_busy = 0.0
        base = Path(directory or tempfile.gettempdir())
        if durability == "resume":
            self.path = base / "ckad-resume"
            self.path.mkdir(mode=0o700, exist_ok=True)
        else:
            self.path = Path(tempfile.mkdtemp(prefix="ckad-", dir=base))
        self._steps: dict[int, int] = {}

    def write(self, slot: int, step: int, data: memoryview) -> None:
        """Put a state into a slot; ``data`` may change as soon as this returns."""
        (self.path / str(slot)).write_bytes(data)
        self._steps[slot] = step
        self.bytes_written += data.nbytes

    def read(self, slot: int, step: int, into: memoryview) -> None:
        """Fill ``into`` with what was written; CheckpointError with ``slot`` if it is lost."""
        if self._steps.get(slot) != step:
            raise CheckpointError(f"slot {slot} does not hold step {step}", slot=slot)
        with open(self.path / str(slot), "rb") as file:
            self.bytes_read += file.readinto(into)

    def prefetch(self, slot: int, step: int) -> None:
        """Begin to read a slot that will be read soon."""

    def drop(self, slot: int) -> None:
        """The slot is not needed any more."""
        self._steps.pop(slot, None)

    def journal(self, position: Position, blocks: Sequence[memoryview]) -> None:
        """Replace the run's progress record; what the slots hold now is part of it."""
        head = json.dumps(
            {
                "position": dict(position),
                "sizes": [block.nbytes for block in blocks],
                "slots": [*self._steps.items()],
            }
        )
        new = self.path / "journal.new"
        new.write_bytes(b"".join([head.encode(), b"\n", *blocks]))
        os.replace(new, self.path / "journal")

    def read_journal(self) -> Journal | None:
        """The run's last progress record, if there is one; the slots are as they were then."""
        path = self.path / "journal"
        if not path.exists():
            return None
        with open(path, "rb") as file:
            head = json.loads(file.readline())
        self._steps = dict(head["slots"])
        return Journal(head["position"], tuple(head["sizes"]), dict(self._steps), str(path))

    def flush(self) -> None:
        """Wait until everything that was handed over is in its file."""

    def close(self, keep: bool = False) -> None:
        """Remove the files, or keep them so that the run can be resumed."""
        if not keep:
            shutil.rmtree(self.path, ignore_errors=True)
