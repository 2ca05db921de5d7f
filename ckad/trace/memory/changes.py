"""What a call has changed outside of its program so far, if it has to begin anew.

The run of what was recorded may tell that the program goes another way. It is recorded once more
then, from where Python would begin.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

Undo = Callable[[], object]


class _Noted(threading.local):
    undo: list[Undo] | None = None  # of the call that is under way, the latest last


_noted = _Noted()


def begin(undo: list[Undo] | None) -> list[Undo] | None:
    """Note changes in this list from here on; what they were noted in before."""
    before = _noted.undo
    _noted.undo = undo
    return before


def note(undo: Undo) -> None:
    """Something is changed, which ``undo`` takes back."""
    if _noted.undo is not None:
        _noted.undo.append(undo)


def take_back() -> None:
    """All is as it was when the call began."""
    undo = _noted.undo or []
    while undo:
        undo.pop()()
