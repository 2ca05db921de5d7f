"""Files of a private directory: opened by name within it alone, never through a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence

from ckad.errors import CheckpointError

# What Linux offers and macOS may not: without it less is checked ahead, and nothing is wrong.
_fallocate = getattr(os, "posix_fallocate", None)
_advise = getattr(os, "posix_fadvise", None)
_DONT_NEED = getattr(os, "POSIX_FADV_DONTNEED", 0)
_sync_data = getattr(os, "fdatasync", os.fsync)

_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
MODE = 0o600


def create(directory: int, name: str, n_bytes: int) -> int:
    """A new file with room for ``n_bytes``: a full disk is found here. Closed by the caller."""
    opened = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, MODE, dir_fd=directory)
    try:
        os.ftruncate(opened, n_bytes)
        _reserve(opened, n_bytes)
    except BaseException:
        os.close(opened)
        os.unlink(name, dir_fd=directory)
        raise
    return opened


def _reserve(opened: int, n_bytes: int) -> None:
    if _fallocate is None or not n_bytes:
        return
    try:
        _fallocate(opened, 0, n_bytes)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise


def open_existing(directory: int, name: str, write: bool = False) -> int:
    """A regular file of this user; what else lies there is not waited for, as a pipe is."""
    flags = os.O_RDWR if write else os.O_RDONLY
    opened = os.open(name, flags | _SAFE | os.O_NONBLOCK, dir_fd=directory)
    found = os.fstat(opened)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
        return opened
    os.close(opened)
    raise OSError(errno.EINVAL, "it is not a file that ckad wrote, but of another kind or others")


def write_all(opened: int, parts: Sequence[bytes | bytearray | memoryview]) -> int:
    """Write the parts one after the other, whatever the system takes at a time."""
    left = [memoryview(part).cast("B") for part in parts if len(part)]
    total = 0
    while left:
        n = os.writev(opened, left)
        total += n
        while left and n >= left[0].nbytes:
            n -= left.pop(0).nbytes
        if n:
            left[0] = left[0][n:]
    return total


def read_all(opened: int, parts: Sequence[bytearray | memoryview], path: str) -> int:
    """Fill the parts one after the other; CheckpointError if the file ends before."""
    left = [memoryview(part).cast("B") for part in parts if len(part)]
    total = 0
    while left:
        n = os.readv(opened, left)
        if n == 0:
            missing = sum(part.nbytes for part in left)
            raise CheckpointError(
                f"{path} is damaged: it ends {missing:,} bytes before its blocks do.", path
            )
        total += n
        while left and n >= left[0].nbytes:
            n -= left.pop(0).nbytes
        if n:
            left[0] = left[0][n:]
    return total


def sync(opened: int) -> None:
    """What was written is on the disk when this returns, as far as the system can tell."""
    _sync_data(opened)


def forget(opened: int) -> None:
    """The system's own copy of the file is not worth memory."""
    if _advise is not None:
        _advise(opened, 0, 0, _DONT_NEED)
