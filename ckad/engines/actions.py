"""What an engine is given for each taped loop: how many slots, and its actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np

ACTION_BYTES = 32
#: Rows of a table that is refilled while the program runs.
CHUNK = 1024

#: Columns kind, start, stop, slot; one action per row.
Rows = np.ndarray


class Kind(IntEnum):
    """The kinds of actions, in the order of checkpoint.schedules.Action."""

    ADVANCE = 0
    STORE = 1
    RESTORE = 2
    DROP = 3
    TAPE = 4
    REVERSE = 5
    END = 6


class Slots(NamedTuple):
    """How many restart states and residuals of steps a loop's token holds.

    ``n_steps`` is what the actions are made for: an open loop cannot run more.
    """

    n_slots: int
    n_tape_slots: int
    n_steps: int = 0


class TooManySteps(Exception):
    """An open loop runs longer than its actions are made for: for the loop driver.

    ``wanted`` is how many steps it runs, 0 if that is not known.
    """

    def __init__(self, loop: int, wanted: int = 0) -> None:
        super().__init__(f"loop {loop} runs {wanted or 'on'}")
        self.loop, self.wanted = loop, wanted


class Feed(NamedTuple):
    """The actions of one loop: all rows at once, or a stream of pieces.

    ``reverse`` is the row at which the reverse phase begins; a stream is used for loops that run
    once, which simply go on. Where the number of steps is learnt on the way, ``pieces`` are those
    of the forward phase, which may go on for ever, and ``after`` makes those of the reverse phase.
    """

    pieces: Callable[[], Iterator[Rows]]
    n_rows: int  # room that the table needs
    reverse: int
    after: Callable[[int], Iterator[Rows]] | None = None
