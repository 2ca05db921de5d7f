"""The files of one store: made, written, read and counted; called by the program and by threads."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from itertools import islice

from ckad.checkpoint.store import files
from ckad.checkpoint.store.directory import PrivateDirectory
from ckad.checkpoint.store.faults import told
from ckad.checkpoint.store.format.slots import SlotFormat, Stored
from ckad.errors import CheckpointError

#: Files that are made before they are asked for, and how many of them after each state that is
#: written: more than one, so that there come to be some.
AHEAD, AT_ONCE = 6, 2


class SlotFiles:
    """States in the files of a private directory."""

    def __init__(
        self,
        directory: PrivateDirectory,
        format: SlotFormat,
        durable: bool,
        cached: bool,
        n_ahead: int = 0,
    ) -> None:
        self.directory, self.format = directory, format
        self.durable, self.cached = durable, cached
        self.n_ahead = n_ahead  # files of lower numbers are made before they are asked for
        self._making = threading.Lock()
        self.bytes_written = self.bytes_read = 0
        self._made: set[int] = set()

    def adopt(self, numbers: set[int]) -> None:
        """Files that are there already."""
        self._made |= numbers

    @property
    def bytes_on_disk(self) -> int:
        return len(self._made) * self.format.layout.file_bytes

    def make(self, stored: Stored) -> None:
        """The file with all of its room, before anything is handed over to be written."""
        if stored.file in self._made:
            return
        n_bytes = self.format.layout.file_bytes
        with told(self._path(stored), self.directory.opened, n_bytes, stored.slot):
            self._make(stored.file)

    def _make(self, file: int) -> None:
        with self._making:
            if file in self._made:
                return
            with suppress(FileNotFoundError):  # one that Ctrl-C left before it was noted
                os.unlink(str(file), dir_fd=self.directory.opened)
            size = self.format.layout.file_bytes
            os.close(files.create(self.directory.opened, str(file), size))
            self._made.add(file)

    def _make_next(self, file: int) -> None:
        """To make a file takes longer than to write a small state: the program need not wait for
        it. What the disk refuses, it refuses again when the file is asked for."""
        missing = (k for k in range(file, min(file + AHEAD, self.n_ahead)) if k not in self._made)
        for k in islice(missing, AT_ONCE):
            with suppress(OSError):
                self._make(k)

    def save(self, stored: Stored, data: memoryview) -> None:
        n_bytes = self.format.layout.file_bytes
        with told(self._path(stored), self.directory.opened, n_bytes, stored.slot):
            opened = files.open_existing(self.directory.opened, str(stored.file), write=True)
            try:
                self.format.write(opened, stored.place(self.format.run), data)
                if self.durable:
                    files.sync(opened)
                if not self.cached:
                    files.forget(opened)
            finally:
                os.close(opened)
        self.bytes_written += n_bytes
        self._make_next(stored.file + 1)

    def load(self, stored: Stored, into: memoryview) -> None:
        n_bytes = self.format.layout.file_bytes
        path = self._path(stored)
        with told(path, self.directory.opened, 0, stored.slot):
            opened = files.open_existing(self.directory.opened, str(stored.file))
            try:
                self.format.read(opened, stored.place(self.format.run), into, path)
                if not self.cached:
                    files.forget(opened)
            finally:
                os.close(opened)
        self.bytes_read += n_bytes

    def remove_others(self, names: set[str]) -> None:
        """What a killed process has left beside the files of those names."""
        for name in self.directory.names():
            if name not in names:
                with suppress(OSError):
                    os.unlink(name, dir_fd=self.directory.opened)

    def _path(self, stored: Stored) -> str:
        return os.path.join(self.directory.path, str(stored.file))


def lost(path: str, slot: int, step: int, held: Stored | None) -> CheckpointError:
    there = "nothing that could be read" if held is None else f"step {held.step}"
    return CheckpointError(f"{path}: slot {slot} holds {there}, not step {step}.", path, slot=slot)
