"""How much memory the taped loops of a program ask for: numbers for the planner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ckad.engines.actions import Slots
from ckad.tape.control import Loop, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import Type

#: Bytes that values of these types take in a restart state, or in the residuals of a step.
RecordBytes = Callable[[Sequence[Type]], int]


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


def taped_loops(tape: Tape, record_bytes: RecordBytes = lambda types: 0) -> dict[int, TapedLoop]:
    """Every taped loop of ``tape`` and of its bodies, by name."""
    return _found(tape, record_bytes, 1, 1)


def _found(tape: Tape, bytes_of: RecordBytes, runs: int, depth: int) -> dict[int, TapedLoop]:
    found: dict[int, TapedLoop] = {}
    for row in tape.rows:
        if row.op is Op.TAPED_LOOP:
            loop = read_loop(tape, row)
            assert loop.taping is not None
            found[loop.name] = _measure(loop, loop.taping, bytes_of, runs, depth)
            found |= _found(loop.taping, bytes_of, runs * loop.length, depth + 1)
        elif row.op is Op.LOOP:
            loop = read_loop(tape, row)
            found |= _found(loop.body, bytes_of, runs * loop.length, depth + 1)
        elif row.op is Op.REVERSE_LOOP:
            reverse = tape.bodies[row.attrs[2]]
            found |= _found(reverse, bytes_of, runs * row.attrs[3], depth + 1) | found
        elif row.op is Op.COND:
            for k in row.attrs[:2]:
                found |= _found(tape.bodies[k], bytes_of, runs, depth + 1)
    return found


def _measure(loop: Loop, taping: Tape, bytes_of: RecordBytes, runs: int, depth: int) -> TapedLoop:
    kept, inner = [], []
    for k in taping.outputs.tolist()[len(loop.body.outputs) :]:
        row = taping.rows[k]
        if row.type.is_array:
            kept.append(row.type)
        else:
            inner.append(taping.rows[row.operands[0]].attrs[-1])
    state = bytes_of(loop.body.output_types[: len(loop.carry)])
    return TapedLoop(loop.name, loop.length, runs, depth, state, bytes_of(kept), tuple(inner))


def token_bytes(loops: dict[int, TapedLoop], slots: dict[int, Slots], name: int) -> int:
    """Bytes of a loop's token under ``slots``."""
    loop, own = loops[name], slots[name]
    return own.n_slots * loop.state_bytes + own.n_tape_slots * step_bytes(loops, slots, name)


def step_bytes(loops: dict[int, TapedLoop], slots: dict[int, Slots], name: int) -> int:
    """Bytes of the residuals of one step, the tokens of inner loops included."""
    loop = loops[name]
    return loop.residual_bytes + sum(token_bytes(loops, slots, x) for x in loop.inner)
