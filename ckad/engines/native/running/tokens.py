"""Where tokens of taped loops lie in the memory of a run: told to the cells that control them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ckad.engines.actions import Feed, Slots
from ckad.engines.native.ir.state import Control
from ckad.engines.native.running.program import Program
from ckad.engines.native.values.layout import LINE, rounded_up


def place_tokens(
    program: Program,
    plan: tuple[Mapping[int, Feed], Mapping[int, Slots], Mapping[int, int]],
    state: np.ndarray,
    rows: np.ndarray,
    memory: np.ndarray,
) -> None:
    """Set the cells of the loops for actions that lie in ``rows`` and tokens in ``memory``: by the
    feeds and slots of the plan, and where tokens begin."""
    feeds, slots, homes = plan
    at = 0
    for name, loop in program.taped.items():
        feed, own = feeds[name], slots[name]
        cells = state[loop.control : loop.control + Control.SIZE]
        cells[: Control.ROWS] = at, at, at, at + feed.reverse
        cells[Control.ROWS] = rows.ctypes.data
        stride = program.stride(name, slots)
        residuals = program.slot_bytes(name, slots) - own.n_tape_slots * stride
        cells[Control.RESIDUALS], cells[Control.STRIDE] = residuals, stride
        if name in homes:
            cells[Control.TOKEN] = memory.ctypes.data + homes[name] + loop.head_bytes
        cells[Control.LIMIT], cells[Control.MOST] = own.n_steps, 0
        cells[Control.COUNT], cells[Control.LEARNS] = own.n_steps, int(feed.after is not None)
        offset = loop.residual_bytes
        for inner in loop.inner:
            within = program.taped[inner]
            state[within.control + Control.OFFSET] = offset + within.head_bytes
            offset += rounded_up(program.token_bytes(inner, slots), LINE)
        at += feed.n_rows
