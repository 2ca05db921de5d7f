"""What the system refuses, in words: path, bytes needed and free, and what helps."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ckad.errors import CheckpointError
from ckad.memory import format_bytes

if sys.platform != "win32":
    import resource

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_GONE = (errno.ENOENT, errno.ESTALE)


@contextmanager
def told(path: str, at: int | str, needed: int = 0, slot: int | None = None) -> Iterator[None]:
    """Turn an OSError within into a CheckpointError; ``at`` is what free bytes are asked of."""
    try:
        yield
    except CheckpointError as error:
        if slot is not None:
            error.slot = slot
        error.path = error.path or path
        raise
    except OSError as error:
        raise checkpoint_error(error, path, at, needed, slot) from error


def checkpoint_error(
    error: OSError, path: str, at: int | str, needed: int, slot: int | None
) -> CheckpointError:
    free = free_bytes(at)
    code = error.errno
    if code in _FULL:
        left = "" if free is None else f", where {format_bytes(free)} are free"
        fact = "the disk is full" if code == errno.ENOSPC else "the disk quota is used up"
        message = (
            f"{fact}: {path} needs {format_bytes(needed)}{left}. Make room, name another "
            "directory= in ckad.Budget, or lower its disk=."
        )
    elif code == errno.EFBIG:
        message = (
            f"{path} needs {format_bytes(needed)}, above the limit on the size of a file"
            f"{_file_limit()}. Raise it (`ulimit -f unlimited`), or give less disk= in ckad.Budget."
        )
    elif code in _REFUSED:
        message = (
            f"{path} cannot be written: {error.strerror}. Name a directory= in ckad.Budget that "
            "you may write into."
        )
    elif code in _GONE:
        message = (
            f"{path} is not there: its directory has been removed, or does not exist. Name one "
            "that stays until the run ends."
        )
    elif code == errno.ENOTDIR:
        message = f"{path} is not a directory; name one in directory= of ckad.Budget."
    elif code == errno.ELOOP:
        message = f"{path} is a symbolic link, which is not followed; remove it."
    else:
        message = f"{path} failed: {error.strerror or error}."
    return CheckpointError(message, path, needed or None, free, slot)


def free_bytes(at: int | str) -> int | None:
    """What this user may still write at a path or into an open directory, if the system says."""
    if sys.platform == "win32":
        return None
    try:
        found = os.statvfs(at)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _file_limit() -> str:
    if sys.platform == "win32":
        return ""
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return "" if soft == resource.RLIM_INFINITY else f" of {format_bytes(soft)}"
