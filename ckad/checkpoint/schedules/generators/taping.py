"""The generator for segments that are taped whole: the last at once, the others when restored.

Every row follows from its number alone, so that a piece of the table is computed at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.schedule import Action

# The registers of a generator state.
ROW, N_STEPS, PERIOD, AHEAD = range(4)
_ON_THE_WAY = np.array([Action.STORE, Action.ADVANCE])
_BACK = np.array([Action.RESTORE, Action.DROP, Action.TAPE, Action.REVERSE])


def registers(n_steps: int, period: int, ahead: bool = False) -> tuple[int, ...]:
    """Start of `fill` for segments of ``period`` steps, the last one perhaps shorter.

    With ``ahead`` the segment before is taped first whenever one is reversed; segments take turns
    with two groups of residual slots.
    """
    return (0, n_steps, period, int(ahead))


def fill(
    state: NDArray[np.int64],
    kind: NDArray[np.int8],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    slot: NDArray[np.int32],
) -> int:
    """Write the next actions, one row each; return how many (see `schedule.Fill`)."""
    first, n_steps, period, ahead = (int(x) for x in state[: AHEAD + 1])
    before = max(n_steps - 1, 0) // period
    n_rows = 6 * before + 3 if n_steps else 1
    row = np.arange(first, min(first + kind.size, n_rows))
    state[ROW] = first + row.size
    forward = row < 2 * before
    back = row - 2 * before + 2  # four rows per segment, of which the last has only two
    segment = np.where(forward, row // 2, before - back // 4)
    action = np.where(forward, _ON_THE_WAY[row % 2], _BACK[back % 4])
    if ahead:
        _put_behind(row - 2 * before - 1, before, segment, action)
    runs = (action != Action.STORE) & (action != Action.RESTORE) & (action != Action.DROP)
    kind[: row.size] = action
    start[: row.size] = segment * period
    stop[: row.size] = np.where(runs, np.minimum((segment + 1) * period, n_steps), segment * period)
    at = np.where(action == Action.ADVANCE, -1, segment)
    taped = segment % 2 * period if ahead else 0
    slot[: row.size] = np.where((action == Action.TAPE) | (action == Action.REVERSE), taped, at)
    if row.size and row[-1] == n_rows - 1:
        end = row.size - 1
        kind[end], start[end], stop[end], slot[end] = Action.END, 0, 0, -1
    return int(row.size)


def _put_behind(
    row: NDArray[np.int64], before: int, segment: NDArray[np.int64], action: NDArray[np.int64]
) -> None:
    """Reverse each segment when the one before it has been taped.

    ``row`` is counted from behind the TAPE of the last segment.
    """
    there = row >= 0
    after = row[there]
    is_reverse = (after % 4 == 3) | (after == 4 * before)
    action[there] = np.where(is_reverse, Action.REVERSE, _BACK[after % 4])
    segment[there] = before - after // 4 - np.where(is_reverse, 0, 1)
