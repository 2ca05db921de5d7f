"""What the loop driver asks of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from ckad.engines.actions import Feed, Slots
from ckad.engines.measure import RecordBytes
from ckad.tape.tape import Tape


class Loaded(Protocol):
    """A tape that an engine can run."""

    def run_bytes(self, slots: Mapping[int, Slots]) -> int:
        """What a run allocates beside tape, action tables and results."""

    def kept_bytes(self) -> int:
        """What is held between runs."""

    def run(
        self,
        inputs: Sequence[np.ndarray],
        feeds: Mapping[int, Feed],
        slots: Mapping[int, Slots],
        on_progress: Callable[[int], None] | None,
    ) -> list[np.ndarray]: ...


class Engine(Protocol):
    """One way to run tapes."""

    name: str
    record_bytes: RecordBytes

    def load(self, tape: Tape, check_finite: bool, threads: int) -> Loaded: ...
