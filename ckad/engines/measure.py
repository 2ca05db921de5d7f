"""How much memory the taped loops of a program ask for: numbers for the planner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ckad.engines.actions import Slots
from ckad.place import NOWHERE
from ckad.tape.control import UNGUARDED, Loop, is_open, likely_length, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Source, Tape
from ckad.tape.types import Type

#: Bytes that values of these types take in a restart state, or in the residuals of a step.
RecordBytes = Callable[[Sequence[Type]], int]
#: Bytes, at the most, of a guarded loop's token that say how long the loop ran.
HEAD = 64


@dataclass(frozen=True)
class TapedLoop:
    """One taped loop: its length, and the bytes of a restart state and of a step's residuals.

    ``inner`` are the loops whose tokens are among the residuals; their bytes come on top.
    ``runs`` says how often the loop runs in one sweep (1 for an outermost loop). It ``is_open``
    if nobody knows how long it runs: ``n_steps`` is what is assumed, ``most_steps`` a bound.
    ``place`` is the line of the loop.
    """

    name: int
    n_steps: int
    runs: int
    depth: int
    state_bytes: int
    residual_bytes: int
    inner: tuple[int, ...]
    is_open: bool = False
    most_steps: int = 0
    head_bytes: int = 0
    place: Source = NOWHERE
    guard: int = UNGUARDED


def taped_loops(
    tape: Tape,
    record_bytes: RecordBytes = lambda types: 0,
    assumed: Mapping[int, int] = MappingProxyType({}),
) -> dict[int, TapedLoop]:
    """Every taped loop of ``tape`` and of its bodies, by name.

    ``assumed`` says how long open loops are thought to run.
    """
    found = _found(tape, record_bytes, 1, 1)
    for name, n in assumed.items():
        if name in found:
            found[name] = replace(found[name], n_steps=min(n, found[name].most_steps))
    return found


def _found(tape: Tape, bytes_of: RecordBytes, runs: int, depth: int) -> dict[int, TapedLoop]:
    found: dict[int, TapedLoop] = {}
    for row in tape.rows:
        if row.op is Op.TAPED_LOOP:
            loop = read_loop(tape, row)
            assert loop.taping is not None
            measured = _measure(loop, loop.taping, bytes_of, runs, depth)
            found[loop.name] = replace(measured, place=tape.sources[row.source], guard=loop.guard)
            again = runs * likely_length(loop.length, loop.guard)
            found |= _found(loop.taping, bytes_of, again, depth + 1)
        elif row.op is Op.LOOP:
            loop = read_loop(tape, row)
            again = runs * likely_length(loop.length, loop.guard)
            found |= _found(loop.body, bytes_of, again, depth + 1)
        elif row.op is Op.REVERSE_LOOP:
            reverse = tape.bodies[row.attrs[2]]
            again = runs * likely_length(row.attrs[3], row.attrs[-1])
            found |= _found(reverse, bytes_of, again, depth + 1) | found
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
            inner.append(taping.rows[row.operands[0]].attrs[5])
    state = bytes_of(loop.body.output_types[: len(loop.carry)])
    length = likely_length(loop.length, loop.guard)
    own = state, bytes_of(kept), tuple(inner)
    learnt = is_open(loop.length, loop.guard)
    head = HEAD if loop.guard != UNGUARDED else 0
    return TapedLoop(loop.name, length, runs, depth, *own, learnt, loop.length, head)


def token_bytes(loops: dict[int, TapedLoop], slots: dict[int, Slots], name: int) -> int:
    """Bytes of a loop's token under ``slots``."""
    loop, own = loops[name], slots[name]
    return loop.head_bytes + own.nbytes(loop.state_bytes, step_bytes(loops, slots, name))


def step_bytes(loops: dict[int, TapedLoop], slots: dict[int, Slots], name: int) -> int:
    """Bytes of the residuals of one step, the tokens of inner loops included."""
    loop = loops[name]
    return loop.residual_bytes + sum(token_bytes(loops, slots, x) for x in loop.inner)
