"""How much memory the taped loops of a program ask for: numbers for the planner."""

from __future__ import annotations

from dataclasses import dataclass

from ckad.engines.vm.program import CELL, Slots
from ckad.tape.control import Loop, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape


@dataclass(frozen=True)
class TapedLoop:
    """One taped loop: its length, and the bytes of a restart state and of a step's residuals.

    ``inner`` are the loops whose tokens are among the residuals; their bytes come on top.
    ``runs`` says how often the loop runs in one sweep (1 for an outermost loop).
    """

    name: int
    n_steps: int
    runs: int
    depth: int
    state_bytes: int
    residual_bytes: int
    inner: tuple[int, ...]


def taped_loops(tape: Tape, runs: int = 1, depth: int = 1) -> dict[int, TapedLoop]:
    """Every taped loop of ``tape`` and of its bodies, by name."""
    found: dict[int, TapedLoop] = {}
    for row in tape.rows:
        if row.op is Op.TAPED_LOOP:
            loop = read_loop(tape, row)
            assert loop.taping is not None
            found[loop.name] = _measure(loop, loop.taping, runs, depth)
            found |= taped_loops(loop.taping, runs * loop.length, depth + 1)
        elif row.op is Op.LOOP:
            loop = read_loop(tape, row)
            found |= taped_loops(loop.body, runs * loop.length, depth + 1)
        elif row.op is Op.REVERSE_LOOP:
            reverse = tape.bodies[row.attrs[2]]
            found |= taped_loops(reverse, runs * row.attrs[3], depth + 1) | found
        elif row.op is Op.COND:
            for k in row.attrs[:2]:
                found |= taped_loops(tape.bodies[k], runs, depth + 1)
    return found


def _measure(loop: Loop, taping: Tape, runs: int, depth: int) -> TapedLoop:
    n = len(loop.carry)
    residual_bytes, inner = 0, []
    for k in taping.outputs.tolist()[len(loop.body.outputs) :]:
        row = taping.rows[k]
        if row.type.is_array:
            residual_bytes += CELL * max(1, row.type.size)
        else:
            inner.append(taping.rows[row.operands[0]].attrs[-1])
    state = sum(CELL * max(1, t.size) for t in loop.body.output_types[:n])
    return TapedLoop(loop.name, loop.length, runs, depth, state, residual_bytes, tuple(inner))


def token_bytes(loops: dict[int, TapedLoop], slots: dict[int, Slots], name: int) -> int:
    """Bytes of a loop's token under ``slots``."""
    loop, own = loops[name], slots[name]
    return own.n_slots * loop.state_bytes + own.n_tape_slots * step_bytes(loops, slots, name)


def step_bytes(loops: dict[int, TapedLoop], slots: dict[int, Slots], name: int) -> int:
    """Bytes of the residuals of one step, the tokens of inner loops included."""
    loop = loops[name]
    return loop.residual_bytes + sum(token_bytes(loops, slots, x) for x in loop.inner)
