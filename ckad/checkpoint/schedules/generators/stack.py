"""The generator of families that keep restart states on a stack, the top segment reversed first.

Reversal runs downwards, so that the segment being reversed is [checkpoint on top, frontier), and
the index in the stack of checkpoints is the slot. That is the whole state: no recursion, no list
of pending segments.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.codes import (
    ADVANCE,
    DROP,
    END,
    FINISHED,
    RESTORE,
    REVERSE,
    STORE,
    TAPE,
)
from ckad.checkpoint.schedules.generators.filling import NEXT, filling
from ckad.checkpoint.schedules.schedule import Fill
from ckad.kernel import kernel

#: Registers of a generator state after NEXT; a family's own follow, then the checkpointed steps.
HERE, FRONTIER, TOP, OWN = range(NEXT + 1, NEXT + 5)


def on_a_stack(
    advance: Callable[[NDArray[np.int64]], int],
    is_taped: Callable[[NDArray[np.int64]], bool],
    stack: int,
) -> Fill:
    """The `Fill` of a family: ``advance`` gives where the next ADVANCE stops, and sets what follows
    it; ``is_taped`` says of a state that was restored whether the steps from it on are taped; from
    the register ``stack`` on are the checkpointed steps."""

    @kernel
    def perform(state: NDArray[np.int64]) -> tuple[int, int, int]:
        action, here, frontier, top = state[NEXT], state[HERE], state[FRONTIER], state[TOP]
        if action == ADVANCE:
            state[HERE] = advance(state)
            return here, state[HERE], -1
        if action == STORE:
            state[TOP] = top + 1
            state[stack + top + 1] = here
            state[NEXT] = ADVANCE
            return here, here, top + 1
        if action == RESTORE:
            here = state[stack + top]
            state[HERE] = here
            state[NEXT] = DROP if is_taped(state) else ADVANCE
            return here, here, top
        if action == DROP:
            state[TOP] = top - 1
            state[NEXT] = TAPE
            return here, here, top
        if action == TAPE:
            state[NEXT] = REVERSE
            return here, frontier, 0
        if action == REVERSE:
            state[FRONTIER] = here
            state[NEXT] = RESTORE if here > 0 else END
            return here, frontier, 0
        state[NEXT] = FINISHED
        return 0, 0, -1

    return filling(perform)
