"""What a run may take: memory, disk, and where and how checkpoints lie on it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass

from ckad.checkpoint.store.faults import free_bytes
from ckad.checkpoint.store.format.codecs import CODECS
from ckad.errors import BudgetError
from ckad.memory import format_bytes, parse_bytes

DURABILITIES = ("scratch", "resume")


@dataclass(frozen=True)
class Budget:
    """Bytes of memory and of disk that a run may take; given wherever ``memory=`` is.

    Args:
        memory: bytes as an int, or text such as ``"2 GiB"``: checkpoints, residuals, work arrays
            and the disk's buffers at their peak. None for a part of what is free.
        disk: bytes of checkpoints on disk, in the same form. None for memory alone.
        directory: where they lie, in a directory of their own that nobody else can read. None for
            the system's temporary one, which may be small, or itself in memory.
        durability: ``"scratch"``: removed when the run ends; what a killed one leaves is removed
            by the next. ``"resume"``: what a killed run needs to go on is safe on the disk.
        codec: None: checkpoints are written as they are. ``"zstd"``: compressed without loss, by
            the package blosc2. ``"float32"``: rounded, which changes the gradient; by how much is
            reported.
        fallback: None: a checkpoint that cannot be written or read ends the run with a
            `CheckpointError`. ``"recompute"``: a warning names it, and the run goes on from the
            nearest sound one before it, with the same bits.

    Raises:
        BudgetError: an amount that cannot be read or is not positive, a durability, a codec or a
            fallback that does not exist, a directory without a disk budget.

    >>> import ckad
    >>> budget = ckad.Budget(memory="2 GiB", disk="50 GiB", directory="/scratch")
    >>> print(budget)  # doctest: +ELLIPSIS
    2.0 GiB of memory; 50.0 GiB of disk in /scratch..., for this run
    >>> budget.disk_bytes
    53687091200
    """

    memory: int | str | None = None
    disk: int | str | None = None
    directory: str | os.PathLike[str] | None = None
    durability: str = "scratch"
    codec: str | None = None
    fallback: str | None = None

    def __post_init__(self) -> None:
        try:
            self._check()
        except BudgetError as error:
            raise BudgetError.here(str(error)) from None
        if self.directory is not None:  # where it is now, wherever the program goes
            path = os.path.abspath(os.path.expanduser(os.fspath(self.directory)))
            object.__setattr__(self, "directory", path)

    @property
    def memory_bytes(self) -> int | None:
        return None if self.memory is None else parse_bytes(self.memory)

    @property
    def disk_bytes(self) -> int | None:
        return None if self.disk is None else parse_bytes(self.disk, "disk")

    def __str__(self) -> str:
        memory = self.memory_bytes
        text = "memory as it is free" if memory is None else f"{format_bytes(memory)} of memory"
        disk = self.disk_bytes
        if disk is None:
            return text
        where = os.fspath(self.directory or tempfile.gettempdir())
        free = free_bytes(where)
        room = "" if free is None else f" ({format_bytes(free)} free)"
        codec = f", {self.codec}" if self.codec else ""
        ends = {"scratch": "for this run", "resume": "to be resumed"}[self.durability]
        return f"{text}; {format_bytes(disk)} of disk in {where}{room}{codec}, {ends}"

    def _check(self) -> None:
        if self.memory is not None:
            parse_bytes(self.memory)
        if self.disk is not None:
            parse_bytes(self.disk, "disk")
        directory = self.directory
        if directory is not None and path_of(directory, "directory") and self.disk is None:
            raise BudgetError(
                f"directory={os.fspath(directory)!r} is for checkpoints on disk, and no disk= is "
                'given; add disk="50 GiB", say.'
            )
        if self.durability not in DURABILITIES:
            known = " or ".join(map(repr, DURABILITIES))
            raise BudgetError(f"durability={self.durability!r} is not known; pass {known}.")
        if self.durability == "resume" and directory is None:
            raise BudgetError(
                'durability="resume" needs directory=: a place that is still there after a kill.'
            )
        if self.codec is not None and self.codec not in CODECS:
            known = ", ".join(map(repr, (None, *CODECS)))
            raise BudgetError(f"codec={self.codec!r} is not known; pass one of {known}.")
        if self.fallback not in (None, "recompute"):
            raise BudgetError(f'fallback={self.fallback!r} is not known; pass None or "recompute".')
        if self.fallback is not None and self.durability == "resume":
            raise BudgetError(
                'fallback="recompute" is for durability="scratch": a run that is resumed begins '
                "where all its checkpoints are sound."
            )


def path_of(given: object, name: str) -> str:
    """A path that can be one of a directory; BudgetError for anything else."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str) or not path or "\0" in path:
        raise BudgetError(f"{name}={given!r} is no path; pass a str or a Path.")
    return path
