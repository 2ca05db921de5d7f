"""To be recorded: which primal values the reverse of a loop body needs, and how few it can keep.

The adjoint of a body is split in two: the taping body computes the residuals, the reverse body
computes everything else from them. What is cheap to compute again from values that are kept
anyway, or that are the same in every step, is not kept. The smallest set (in bytes) is a minimum
cut between the values that must come from the forward sweep and those the reverse reads.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ckad.passes.activity import dependent
from ckad.passes.adjoint.bounded import LEAST
from ckad.passes.adjoint.cut import UNLIMITED, Network
from ckad.passes.adjoint.undo import NOTHING, Restored, Reversed, restored_by
from ckad.passes.liveness import needed, readers
from ckad.rules import RULES
from ckad.tape.builder import Builder
from ckad.tape.control import read_loop
from ckad.tape.extents import Masks
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType

#: The weights of a byte of the carry, and of a byte of what a step computes.
CARRIED, COMPUTED = 8, 9
#: So many elements are read again from an array rather than kept.
FEW = 8


class Split(NamedTuple):
    """A body's adjoint in two: rows to keep, and the reverse body that starts from them."""

    residuals: list[int]  # rows of the joint tape
    reverse: Tape  # (i, residuals, x, captured, ct..., sums...) -> outputs


class Joint(NamedTuple):
    """A body and its reverse in one tape, from (i, carry, x, captured, cotangents)."""

    tape: Tape
    n_primal: int
    n_carry: int
    shared: Mapping[int, int] = MappingProxyType({})

    def split(
        self,
        outputs: list[int],
        states: Mapping[int, int] = MappingProxyType({}),
        left_out: Container[int] = (),
    ) -> Split:
        """Split the tape, whose first ``n_primal`` inputs are (i, carry, x, captured).

        ``outputs`` are the rows that the reverse body returns; ``shared`` are positions of
        captured arrays that something else has to keep if the reverse reads them, and what that
        costs in bytes per step. ``states`` are restored in the reverse; inputs ``left_out`` are
        none of its own.
        """
        joint = handed_on(self.tape, states)
        dual = dependent(joint, [k >= self.n_primal for k in range(len(joint.inputs))])
        restored = restored_by(joint, states, dual, self.n_carry)
        carry = set(joint.inputs[1 : 1 + self.n_carry].tolist())
        rows = {int(joint.inputs[at]): size for at, size in self.shared.items()}
        read = read_by(joint, dual, outputs)
        residuals = least(joint, dual, carry, read, rows, restored)
        return Split(residuals, self._reverse(joint, dual, residuals, outputs, restored, left_out))

    def _reverse(
        self,
        joint: Tape,
        dual: list[bool],
        residuals: list[int],
        outputs: list[int],
        restored: Restored,
        left_out: Container[int],
    ) -> Tape:
        b, inputs = Builder(), joint.inputs.tolist()
        env = {inputs[0]: b.input(joint.rows[inputs[0]].type)}
        for k in residuals:
            env[k] = b.input(joint.rows[k].type)
        for k in inputs[1 + self.n_carry :]:
            if k not in left_out:
                fed = b.input(joint.rows[k].type)
                env.setdefault(k, fed)
        return b.tape(Reversed(b, joint, dual, env, restored).emit(outputs))


def handed_on(joint: Tape, states: Container[int]) -> Tape:
    """The rows, which read an array that a loop hands on as it is where the loop has it from.

    So it is kept once, however many loops have read it. A state that is restored stays.
    """
    same: dict[int, int] = {}  # row of a result -> the array
    rows = list(joint.rows)
    for k, row in enumerate(rows):
        if same:
            rows[k] = row._replace(operands=tuple(same.get(x, x) for x in row.operands))
        before = _before(joint, rows, row) if row.op is Op.RESULT and k not in states else None
        if before is not None:
            same[k] = same.get(before, before)
    if not same:
        return joint
    inputs, outputs = joint.inputs.tolist(), joint.outputs.tolist()
    return Tape.of_rows(rows, inputs, outputs, joint.sources, joint.constants, joint.bodies)


def _before(joint: Tape, rows: Sequence[Row], result: Row) -> int | None:
    """What a carried array was before a loop, if this result is that."""
    (k,), (number,) = result.operands, result.attrs
    if not result.type.is_array or joint.rows[k].op is not Op.TAPED_LOOP:
        return None
    loop = read_loop(joint, rows[k])
    if number >= len(loop.carry) or loop.body.outputs[number] != loop.body.inputs[1 + number]:
        return None
    return loop.carry[number]


def read_by(joint: Tape, dual: list[bool], outputs: list[int]) -> set[int]:
    """The primal values that the reverse reads."""
    live = needed(joint, outputs)
    duals = (row for k, row in enumerate(joint.rows) if dual[k] and live[k])
    read = {x for row in duals for x in row.operands if not dual[x]}
    return read | {x for x in outputs if not dual[x]}


def _is_cheap(row: Row) -> bool:
    """Whether to compute a row again costs no more than to keep it: an element is read as fast."""
    op = row.op
    if op is Op.WRAP or (op is Op.GATHER and row.type.size <= FEW):
        return True
    return op is Op.CONST or (op in RULES and RULES[op].cheap)


class Picks:
    """Elements picked by indices of which only a part, between bounds, is looked at.

    They are as soon read again: what is kept of them is the whole axis.
    """

    def __init__(self, joint: Tape) -> None:
        self.rows, self.readers = joint.rows, readers(joint)
        self.masks = Masks(joint.rows, joint.constants)

    def is_part(self, k: int) -> bool:
        if self.rows[k].op is not Op.GATHER:
            return False
        return all(self._is_masked(k, self.rows[r]) for r in self.readers[k])

    def is_beside_part(self, k: int) -> bool:
        """Whether row k is elements of a large array of which others read a part between bounds.

        For those elements alone the whole array would have to be kept.
        """
        row = self.rows[k]
        if row.op is not Op.GATHER:
            return False
        x = row.operands[0]
        while self.rows[x].op is Op.RESHAPE:
            (x,) = self.rows[x].operands
        if self.rows[x].type.size < LEAST:
            return False
        return any(self._is_masked(x, self.rows[r]) for r in self.readers[x])

    def _is_masked(self, k: int, row: Row) -> bool:
        if row.op is not Op.SELECT or k in (row.operands[0], row.operands[2]):
            return False
        return self.masks.spans(row.operands[0]) is not None


def least(
    joint: Tape,
    dual: list[bool],
    carry: set[int],
    read: set[int],
    shared: Mapping[int, int] | None = None,
    restored: Restored = NOTHING,
) -> list[int]:
    """The values to keep, of the least bytes in all, or nearly: the carry is there already.

    Another value has to be a little smaller than it to be computed and kept in its place.

    An input that is ``shared`` is there in the reverse, for its price; a state that is ``restored``
    is there for nothing.

    Most are settled without a search: a value that is read and cannot be computed again is kept,
    and what follows from such values, or from those that are the same in every step, is free.
    """
    sizes: dict[int, int] = {}  # of the values left, which might be kept
    sources: set[int] = set()  # those that cannot be computed again
    kept: list[int] = []
    picks = Picks(joint)
    for k, row in enumerate(joint.rows):
        if dual[k] or row.type.dtype == DType.TUPLE:
            continue
        if k in restored.kept:
            kept.append(k)
            continue
        if k in restored.states:
            continue
        if shared and k in shared:
            if k not in read:
                sources.add(k)
                sizes[k] = CARRIED * shared[k]
            continue
        cheap = _is_cheap(row) and not picks.is_beside_part(k)
        if k in carry or (row.op is not Op.INPUT and not (cheap or picks.is_part(k))):
            if k in read:
                kept.append(k)
                continue
            sources.add(k)
        elif not any(x in sizes for x in row.operands):
            continue
        size = max(1, row.type.nbytes) if row.type.is_array else 1
        sizes[k] = size * (CARRIED if k in carry else COMPUTED)
    wanted = _wanted(joint, sizes, sources, read)
    cut = _cut(joint, {k: sizes[k] for k in wanted}, sources, read)
    return sorted(kept + [k for k in cut if not shared or k not in shared])


def _wanted(joint: Tape, sizes: dict[int, int], sources: set[int], read: set[int]) -> Iterator[int]:
    """The rows among ``sizes`` that the reverse reads or computes what it reads from."""
    wanted = read & sizes.keys()
    for k in range(max(wanted, default=-1), -1, -1):
        if k in wanted:
            yield k
            if k not in sources:
                wanted.update(x for x in joint.rows[k].operands if x in sizes)


def _cut(joint: Tape, sizes: dict[int, int], sources: set[int], read: set[int]) -> list[int]:
    """Each value is an edge of its size between two nodes; to cut it means to keep the value."""
    if not sizes:
        return []
    network = Network(2 * len(sizes) + 2)
    source, sink = 2 * len(sizes), 2 * len(sizes) + 1
    place = {k: 2 * at for at, k in enumerate(sizes)}
    for k, at in place.items():
        network.connect(at, at + 1, sizes[k])
        if k in sources:
            network.connect(source, at, UNLIMITED)
        else:
            for x in {x for x in joint.rows[k].operands if x in place}:
                network.connect(place[x] + 1, at, UNLIMITED)
        if k in read:
            network.connect(at + 1, sink, UNLIMITED)
    reached = network.source_side(source, sink)
    return [k for k, at in place.items() if reached[at] and not reached[at + 1]]
