"""Directories that belong to one process alone, and what dead processes have left of theirs.

A directory is locked as long as its process lives, so one whose lock is free has been left behind.
It is swept only if it has the name, the owner and the mode that ckad gives and carries the marker,
and only files that ckad names are removed from it.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from ckad.checkpoint.store.faults import told
from ckad.checkpoint.store.files import open_existing
from ckad.errors import CheckpointError

if sys.platform != "win32":
    import fcntl

SCRATCH, RESUME = "ckad-scratch-", "ckad-resume"
MARKER = "ckad-marker"
OURS = re.compile(r"[0-9]{1,9}|journal-[01]|journal-new|" + MARKER)
ATTEMPTS = 20
_DIRECTORY = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY |= getattr(os, "O_CLOEXEC", 0)


class PrivateDirectory:
    """An open, locked directory; its files are reached through ``opened`` and no path."""

    def __init__(self, path: str, opened: int) -> None:
        self.path, self.opened, self.owner = path, opened, os.getpid()
        _all.add(self)

    def names(self) -> list[str]:
        """The files in it that ckad has made."""
        with told(self.path, self.path):
            return [name for name in os.listdir(self.opened) if OURS.fullmatch(name)]

    def is_there(self) -> bool:
        return os.fstat(self.opened).st_nlink > 0

    def close(self, remove: bool) -> None:
        """Give up the lock; ``remove`` takes what ckad has made, and then the empty directory."""
        if self.opened < 0 or self.owner != os.getpid():
            return
        opened, self.opened = self.opened, -1
        try:
            if remove:
                _empty(opened, self.path)
        finally:
            os.close(opened)

    def _leave(self) -> None:
        """A child that was forked does not hold the lock of its parent."""
        if self.opened >= 0:
            os.close(self.opened)
            self.opened = -1


_all: weakref.WeakSet[PrivateDirectory] = weakref.WeakSet()


def _leave_all() -> None:
    for directory in list(_all):
        directory._leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)


def scratch_directory(base: str | os.PathLike[str] | None) -> PrivateDirectory:
    """A new directory of this process within ``base``, after dead processes' were removed."""
    folder = os.path.abspath(base or tempfile.gettempdir())
    _needs_posix(folder)
    sweep(folder)
    with told(folder, folder):
        for _ in range(ATTEMPTS):
            path = tempfile.mkdtemp(prefix=SCRATCH, dir=folder)
            try:
                made = _locked(path, or_unlocked=True)
            except FileNotFoundError:  # swept before it was locked
                continue
            except BaseException:
                with suppress(OSError), _opened(path) as opened:
                    _empty(opened, path)
                raise
            if made is not None:
                return made
    raise CheckpointError(f"{folder}: directories made in it vanish at once.", folder)


def resume_directory(base: str | os.PathLike[str]) -> PrivateDirectory:
    """The directory of the run in ``base``, made if there is none. One process at a time has it."""
    folder = os.path.abspath(base)
    _needs_posix(folder)
    path = os.path.join(folder, RESUME)
    with told(path, folder):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        made = _locked(path)
    if made is None:
        raise CheckpointError(
            f"{path} is in use by {_holder(path)}; wait for it to end, or name another directory.",
            path,
        )
    return made


def sweep(folder: str) -> list[str]:
    """Remove the scratch directories of dead processes in ``folder``; their paths."""
    swept = []
    for path in _left(folder):
        # another process may do the same at the same time
        with suppress(OSError), _opened(path) as opened:
            names = os.listdir(opened)
            if _is_private(opened) and _locks(opened) and (MARKER in names or not names):
                _empty(opened, path)
                swept.append(path)
    return swept


def _left(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if re.fullmatch(SCRATCH + r"\w{8}", entry.name):
                yield entry.path


def _locked(path: str, or_unlocked: bool = False) -> PrivateDirectory | None:
    """None if another process has it, or has swept it before it was locked.

    Some file systems of clusters have no locks: what lies there is never swept, since a sweep needs
    one, and can still be used by the process that made it.
    """
    opened = os.open(path, os.O_RDONLY | _DIRECTORY)
    try:
        if not _is_private(opened):
            raise CheckpointError(
                f"{path} is not a directory of yours alone (`chmod 700`); name another one.", path
            )
        try:
            got = _locks(opened)
        except OSError as error:
            if not or_unlocked:
                raise CheckpointError(
                    f"{path} cannot be locked against other processes ({error.strerror}); name a "
                    "directory on a file system with locks.",
                    path,
                ) from error
            got = True
        if not got or os.fstat(opened).st_nlink == 0:
            os.close(opened)
            return None
        _mark(opened)
    except BaseException:
        with suppress(OSError):
            os.close(opened)
        raise
    return PrivateDirectory(path, opened)


def _locks(opened: int) -> bool:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_private(opened: int) -> bool:
    found = os.fstat(opened)
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    )


def _mark(opened: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    marker = os.open(MARKER, flags | getattr(os, "O_CLOEXEC", 0), 0o600, dir_fd=opened)
    try:
        os.write(marker, f"process {os.getpid()} of {os.uname().nodename}\n".encode())
    finally:
        os.close(marker)


def _holder(path: str) -> str:
    with suppress(OSError, UnicodeDecodeError), _opened(path) as opened:
        marker = open_existing(opened, MARKER)
        try:
            return os.read(marker, 200).decode().strip() or "another process"
        finally:
            os.close(marker)
    return "another process"


@contextmanager
def _opened(path: str) -> Iterator[int]:
    opened = os.open(path, os.O_RDONLY | _DIRECTORY)
    try:
        yield opened
    finally:
        os.close(opened)


def _empty(opened: int, path: str) -> None:
    """The marker goes last: a sweep that is cut short is taken up by the next. Records go first:
    none is found that names states which are gone."""
    names = [name for name in os.listdir(opened) if OURS.fullmatch(name)]
    remove(opened, sorted(names, key=lambda name: (name == MARKER, not name.startswith("journal"))))
    with suppress(OSError):  # someone else's files are in it, or it lies elsewhere by now
        if os.path.samestat(os.lstat(path), os.fstat(opened)):
            os.rmdir(path)


def remove(opened: int, names: Collection[str]) -> None:
    for name in names:
        with suppress(OSError):
            os.unlink(name, dir_fd=opened)


def _needs_posix(folder: str) -> None:
    if sys.platform == "win32":
        raise CheckpointError(
            "checkpoints on disk need file locks as POSIX systems have them; give memory= alone.",
            folder,
        )
