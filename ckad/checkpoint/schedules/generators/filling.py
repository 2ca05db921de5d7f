"""Rows written one by one: the generator of a family that performs an action at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.codes import FINISHED
from ckad.checkpoint.schedules.schedule import Fill
from ckad.kernel import kernel

#: The register of a generator state that holds the next action; the others are the family's own.
NEXT = 0


def filling(perform: Callable[[NDArray[np.int64]], tuple[int, int, int]]) -> Fill:
    """The `Fill` of a kernel that does the next action and gives its start, stop and slot."""

    @kernel
    def fill(
        state: NDArray[np.int64],
        kind: NDArray[np.int8],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        slot: NDArray[np.int32],
    ) -> int:
        for row in range(kind.size):
            action = state[NEXT]
            if action == FINISHED:
                return row
            kind[row] = action
            start[row], stop[row], slot[row] = perform(state)
        return kind.size

    return fill
