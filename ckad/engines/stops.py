"""Where a run of the vm stops to show values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ckad.engines.origin import Origin


class Seen(NamedTuple):
    """The value of a row when it had just been computed."""

    origin: Origin
    steps: tuple[int, ...]  # of the loops around it, the outermost first
    value: np.ndarray


class Stops:
    """The rows that ``wanted`` picks, at ``steps`` of the loops around them, or at the first ones.

    Each is seen once; when all have been, the run is over.
    """

    def __init__(self, wanted: Callable[[Origin], bool], steps: tuple[int, ...] = ()) -> None:
        self.wanted, self.steps = wanted, steps
        self.places: set[int] = set()  # of the program, that it can stop at
        self.seen: dict[int, Seen] = {}

    def begin(self) -> None:
        """For a new program, or another layout of it."""
        self.places.clear()
        self.seen.clear()

    def see(self, place: int, seen: Seen) -> bool:
        """Keep what is seen at a place; whether that is all there is to see."""
        self.seen.setdefault(place, seen)
        return len(self.seen) == len(self.places)
