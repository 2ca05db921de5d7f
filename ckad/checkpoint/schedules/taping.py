"""The generator for segments that are taped whole: the last at once, the others when restored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.schedule import Action
from ckad.kernel import kernel

ADVANCE = int(Action.ADVANCE)
STORE = int(Action.STORE)
RESTORE = int(Action.RESTORE)
DROP = int(Action.DROP)
TAPE = int(Action.TAPE)
REVERSE = int(Action.REVERSE)
END = int(Action.END)
FINISHED = END + 1

# The registers of a generator state. Segment k starts at k · period and is stored in slot k.
NEXT, HERE, FRONTIER, SEGMENT, PERIOD = range(5)


def registers(n_steps: int, period: int) -> tuple[int, ...]:
    """Start of `fill` for segments of ``period`` steps, the last one perhaps shorter."""
    first = END if n_steps == 0 else TAPE if n_steps <= period else STORE
    return (first, 0, n_steps, 0, period)


@kernel
def perform(state: NDArray[np.int64]) -> tuple[int, int, int]:
    """Carry out the next action on the state; return its start, stop and slot."""
    action, here, frontier, segment = state[NEXT], state[HERE], state[FRONTIER], state[SEGMENT]
    base = segment * state[PERIOD]
    if action == STORE:
        state[NEXT] = ADVANCE
        return here, here, segment
    if action == ADVANCE:
        stop = here + state[PERIOD]
        state[HERE] = stop
        state[SEGMENT] = segment + 1
        state[NEXT] = TAPE if frontier - stop <= state[PERIOD] else STORE
        return here, stop, -1
    if action == TAPE:
        state[HERE] = frontier
        state[NEXT] = REVERSE
        return here, frontier, 0
    if action == REVERSE:
        state[FRONTIER] = base
        state[SEGMENT] = segment - 1
        state[NEXT] = RESTORE if base > 0 else END
        return base, frontier, 0
    if action == RESTORE:
        state[HERE] = base
        state[NEXT] = DROP
        return base, base, segment
    if action == DROP:
        state[NEXT] = TAPE
        return here, here, segment
    state[NEXT] = FINISHED
    return 0, 0, -1


@kernel
def fill(
    state: NDArray[np.int64],
    kind: NDArray[np.int8],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    slot: NDArray[np.int32],
) -> int:
    """Write the next actions, one row each; return how many (see `schedule.Fill`)."""
    for row in range(kind.size):
        action = state[NEXT]
        if action == FINISHED:
            return row
        kind[row] = action
        start[row], stop[row], slot[row] = perform(state)
    return kind.size
