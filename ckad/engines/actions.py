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
    """How many restart states and residuals of steps a loop's token holds."""

    n_slots: int
    n_tape_slots: int


class Feed(NamedTuple):
    """The actions of one loop: all rows at once, or a stream of pieces.

    ``reverse`` is the row at which the reverse phase begins; a stream is used for loops that run
    once, which simply go on.
    """

    pieces: Callable[[], Iterator[Rows]]
    n_rows: int  # room that the table needs
    reverse: int
