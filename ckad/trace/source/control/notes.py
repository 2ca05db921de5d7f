"""What was done with each loop of a program, for those who ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ckad.place import Source


class LoopNote(NamedTuple):
    """How one loop was recorded: in what way, how many steps, which names go from step to step."""

    place: Source
    way: str
    steps: str
    state: tuple[str, ...]


class _Noting(threading.local):
    def __init__(self) -> None:
        self.notes: dict[Source, LoopNote] | None = None


_noting = _Noting()


@contextmanager
def noting() -> Iterator[dict[Source, LoopNote]]:
    """Collect the notes of what is recorded meanwhile, by the loops' places."""
    before, _noting.notes = _noting.notes, {}
    try:
        yield _noting.notes
    finally:
        _noting.notes = before


def is_noting() -> bool:
    return _noting.notes is not None


def note(place: Source, way: str, steps: str, state: Sequence[str] = ()) -> None:
    """Say how the loop at ``place`` was recorded; what is said last counts."""
    if _noting.notes is not None:
        _noting.notes[place] = LoopNote(place, way, steps, tuple(dict.fromkeys(state)))
