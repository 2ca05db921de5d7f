"""The simplest schedule: every taped loop keeps the residuals of all its steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ckad.engines.actions import Feed, Kind, Slots
from ckad.engines.measure import taped_loops
from ckad.tape.tape import Tape


def feeds_and_slots(tape: Tape) -> tuple[dict[int, Feed], dict[int, Slots]]:
    """Actions and slots for every taped loop of ``tape``."""
    loops = {name: loop.n_steps for name, loop in taped_loops(tape).items()}
    feeds = {name: Feed(lambda n=n: _once(n), 3, 1) for name, n in loops.items()}
    return feeds, {name: Slots(0, n) for name, n in loops.items()}


def _once(n: int) -> Iterator[np.ndarray]:
    rows = [(Kind.TAPE, 0, n, 0), (Kind.REVERSE, 0, n, 0), (Kind.END, 0, 0, -1)]
    yield np.array(rows, np.int64)
