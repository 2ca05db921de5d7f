"""Loops that could not be recorded once for all steps when their function was recorded before.

It may take many rounds to find that out. When the function is recorded again for arguments of the
same kinds, such a loop is taken to fail again: what is done instead is right in any case.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TypeGuard

from ckad import locks
from ckad.errors import CkadError

#: A loop: its source and turn, behind those of the loops around it; None if it has no such path.
Path = Hashable
#: Recordings of which that is remembered, and loops of each.
KEPT, MOST = 256, 256

_known: OrderedDict[Hashable, dict[Path, CkadError]] = OrderedDict()
_lock = locks.lock()


class _Recording(threading.local):
    """What failed in this recording, and what did when its like was recorded before."""

    def __init__(self) -> None:
        self.now: dict[Path, CkadError] = {}
        self.before: dict[Path, CkadError] = {}
        self.is_used = False


_recording = _Recording()


def clear() -> None:
    """Forget all failures."""
    with _lock:
        _known.clear()


@contextmanager
def recalled(about: Hashable) -> Iterator[None]:
    """Let loops fail at once that failed in the last recording ``about`` the same."""
    with _lock:
        before = _known.pop(about, None) or {}
    _recording.now, _recording.before, _recording.is_used = {}, before, False
    try:
        yield
        if about is not None and _recording.now:
            with _lock:
                _known[about] = dict(list(_recording.now.items())[:MOST])
                if len(_known) > KEPT:
                    _known.popitem(last=False)
    finally:
        _recording.now, _recording.before = {}, {}


def are_used() -> bool:
    """Whether a loop of the last recording was taken to fail."""
    return _recording.is_used


def is_of_words(error: BaseException) -> TypeGuard[CkadError]:
    """Whether an error holds nothing but what it says."""
    return isinstance(error, CkadError) and not vars(error)


def anew(error: CkadError) -> CkadError:
    """The same without the frames that it came through."""
    return type(error)(*error.args)


def recall(path: Path | None) -> CkadError | None:
    """Why a loop will fail, if it failed before."""
    error = None if path is None else _recording.before.get(path)
    if error is None:
        return None
    _recording.is_used = True
    _recording.now[path] = error
    return anew(error)


def note(path: Path | None, error: BaseException) -> None:
    """A loop has failed."""
    if path is not None and is_of_words(error):
        _recording.now[path] = anew(error)


def forget(path: Path | None) -> None:
    """A loop has not failed after all, now that more is known of those around it."""
    _recording.now.pop(path, None)
