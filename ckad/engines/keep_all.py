"""The simplest schedule: every taped loop keeps the residuals of all its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from ckad.engines.actions import Feed, Kind, Slots, TooManySteps
from ckad.engines.measure import taped_loops
from ckad.tape.tape import Tape

Feeds = dict[int, Feed]
#: Runs a program on feeds and slots.
Execute = Callable[[Feeds, dict[int, Slots]], list[np.ndarray]]


def feeds_and_slots(tape: Tape, assumed: Mapping[int, int]) -> tuple[Feeds, dict[int, Slots]]:
    """Actions and slots for every taped loop of ``tape``."""
    loops = {name: loop.n_steps for name, loop in taped_loops(tape, assumed=assumed).items()}
    feeds = {name: Feed(partial(_once, n), 3, 1) for name, n in loops.items()}
    return feeds, {name: Slots(0, n, n) for name, n in loops.items()}


def _once(n: int) -> Iterator[np.ndarray]:
    rows = [(Kind.TAPE, 0, n, 0), (Kind.REVERSE, 0, n, 0), (Kind.END, 0, 0, -1)]
    yield np.array(rows, np.int64)


def run_growing(tape: Tape, execute: Execute) -> list[np.ndarray]:
    """Run a tape; open loops get more room until it is enough."""
    assumed: dict[int, int] = {}
    while True:
        feeds, slots = feeds_and_slots(tape, assumed)
        try:
            return execute(feeds, slots)
        except TooManySteps as longer:
            assumed[longer.loop] = max(longer.wanted, 4 * slots[longer.loop].n_steps)
