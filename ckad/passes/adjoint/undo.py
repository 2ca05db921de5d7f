"""Arrays that a loop changes in parts are put back step by step, not kept.

A step that writes an element, a row or a slice of a carried array keeps what it wrote over. From
the array as the loop has left it, the reverse has it as it was before each step by writing that
back: work and memory of what the step touched. Inner loops put back what they have written.

Which arrays can be put back is read from the rows (`chains`). Rows that do it are appended while a
body is reversed (`Restoring`); whether they are worth it is decided when the body is split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ckad.passes.activity import dependent
from ckad.tape.builder import Builder
from ckad.tape.control import read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: Rows that write a part of their first operand.
WRITES = (Op.UPDATE, Op.SLICE_ADD, Op.SCATTER, Op.SCATTER_ADD)
#: Arrays of so few elements are kept.
FEW = 64
#: An array is put back where what is kept for it is at most this part of what is kept otherwise.
WORTH = 0.5


class Chain(NamedTuple):
    """The states of a carried array in a body, from the output back to the input."""

    position: int  # in the carry
    rows: list[int]


def chains(body: Tape, n_carry: int) -> list[Chain]:
    """The carried arrays of which the body only writes parts."""
    found = []
    for c, output in enumerate(body.outputs.tolist()[:n_carry]):
        type = body.output_types[c]
        if type.is_float and type.size > FEW:
            rows = _states(body, output, int(body.inputs[1 + c]))
            if rows is not None:
                found.append(Chain(c, rows))
    return found


def _states(body: Tape, k: int, first: int) -> list[int] | None:
    """The rows from k back to row ``first``, if each is the one before with a part written."""
    found = [k]
    while k != first:
        row = body.rows[k]
        if row.op is Op.RESHAPE or row.op in WRITES:
            (k, *_) = row.operands
        elif row.op is Op.RESULT and body.rows[row.operands[0]].op is Op.LOOP:
            loop = read_loop(body, body.rows[row.operands[0]])
            (number,) = row.attrs
            if number >= len(loop.carry) or not _is_restorable(loop.body, number):
                return None
            k = loop.carry[number]
        else:
            return None
        found.append(k)
    return found


def _is_restorable(body: Tape, number: int) -> bool:
    return _states(body, int(body.outputs[number]), int(body.inputs[1 + number])) is not None


class Restoring:
    """The states of arrays while the rows of a body are visited backwards."""

    def __init__(self, b: Builder, tape: Tape, chains: Sequence[Chain], env: dict[int, int]):
        self.b, self.tape, self.chains, self.env = b, tape, chains, env
        self.states = {k for chain in chains for k in chain.rows}
        self.results = {
            (row.operands[0], row.attrs[0])
            for row in (tape.rows[k] for k in self.states)
            if row.op is Op.RESULT
        }
        self.old: dict[int, int] = {}  # row of a write -> what it wrote over
        self.found: dict[int, int] = {}  # row of a state -> the row that restores it

    def begin(self) -> None:
        """The arrays as they are after a step are inputs."""
        for chain in self.chains:
            last = chain.rows[0]
            self.found[last] = self.b.input(self.tape.rows[last].type)

    def forward(self, k: int, row: Row) -> None:
        """What row k will write over is read before."""
        if k not in self.states or row.op not in WRITES:
            return
        x, b = self.env[row.operands[0]], self.b
        if row.op in (Op.UPDATE, Op.SLICE_ADD):
            part = self.tape.rows[row.operands[1]].type
            self.old[k] = b.slice(x, attrs=row.attrs, type=part)
        else:
            self.old[k] = b.gather(x, self.env[row.operands[1]], attrs=row.attrs[:1])

    def backward(self, k: int, row: Row) -> None:
        """What row k has written over is put back."""
        if k not in self.found or not (row.op is Op.RESHAPE or row.op in WRITES):
            return
        x, after, b = row.operands[0], self.found[k], self.b
        if row.op is Op.RESHAPE:
            self.found[x] = b.reshape_to(after, self.tape.rows[x].type.shape)
        elif row.op in (Op.UPDATE, Op.SLICE_ADD):
            self.found[x] = b.update(after, self.old[k], attrs=row.attrs)
        else:
            axis, index = row.attrs[0], self.env[row.operands[1]]
            unique = b.type(index).size == 1 or (row.op is Op.SCATTER and row.attrs[1])
            self.found[x] = b.scatter(after, index, self.old[k], attrs=(axis, int(unique)))

    def loop(self, k: int, restored: Mapping[int, int]) -> None:
        """Loop k has put back these of its carry; what it hands on as it is stays."""
        loop = read_loop(self.tape, self.tape.rows[k])
        for r in self.states:
            row = self.tape.rows[r]
            if row.op is not Op.RESULT or row.operands[0] != k or r not in self.found:
                continue
            (number,) = row.attrs
            if number in restored:
                self.found[loop.carry[number]] = restored[number]
            elif loop.body.outputs[number] == loop.body.inputs[1 + number]:
                self.found[loop.carry[number]] = self.found[r]

    def complete(self) -> list[Chain]:
        """The arrays that were followed to the beginning of the step."""
        return [chain for chain in self.chains if chain.rows[-1] in self.found]

    def pairs(self) -> list[list[int]]:
        """Of each of these the rows of a state, of what restores it, of the state before, ..."""
        return [
            [x for k in chain.rows for x in (self.env[k], self.found[k])]
            for chain in self.complete()
        ]


class Restored(NamedTuple):
    """What a reverse body has from arrays that are put back, by rows of the joint tape."""

    states: Mapping[int, int]  # row of a state -> the row that restores it
    kept: set[int]  # the values that this takes


NOTHING = Restored({}, set())


def restored_by(
    joint: Tape, states: Mapping[int, int], dual: Sequence[bool], n_carry: int
) -> Restored:
    """What has to be kept to put arrays back: it cannot be had from arrays that are not yet."""
    carried = dependent(joint, [1 <= k <= n_carry for k in range(len(joint.inputs))])
    kept = set()
    for restored in set(states.values()):
        row = joint.rows[restored]
        at = row.operands[0] if row.op is Op.RESULT else restored
        for x in joint.rows[at].operands:
            is_there = x in states and states[x] < at
            if not dual[x] and carried[x] and not is_there:
                kept.add(x)
    return Restored(states, kept)


class Reversed:
    """The rows of a reverse body, from those of the joint tape: what is read of an array that is
    put back is read before the array goes further back.
    """

    def __init__(
        self, b: Builder, joint: Tape, dual: Sequence[bool], env: dict[int, int], restored: Restored
    ) -> None:
        self.b, self.joint, self.dual, self.env = b, joint, dual, env
        self.states = {k: r for k, r in restored.states.items() if k not in env}
        self.shown: dict[int, list[int]] = {}  # row that restores -> the states that it shows
        for k, r in self.states.items():
            self.shown.setdefault(r, []).append(k)
            if r in env:
                env[k] = env[r]
        self.arrays = {self._base(r) for r in self.shown}

    def emit(self, outputs: Sequence[int]) -> list[int]:
        live = self._live(outputs)
        first = [k for k in live if not self.dual[k] and self._is_ready(k, reads_states=False)]
        for k in first:
            self._row(k)
        readers: dict[int, list[int]] = {}  # array that is put back -> primal rows that read it
        for k in live:
            for x in self.joint.rows[k].operands if not self.dual[k] else ():
                if x in self.states:
                    readers.setdefault(self._base(self.states[x]), []).append(k)
        for k in live:
            if self.dual[k] and k not in self.env:
                for array in self._changed(k):
                    for r in readers.pop(array, ()):
                        if self._is_ready(r):
                            self._row(r)
                self._row(k)
        for k in outputs:
            self._row(self._seen(k))
        return [self.env[k] for k in outputs]

    def _seen(self, k: int) -> int:
        return self.states.get(k, k)

    def _live(self, outputs: Sequence[int]) -> list[int]:
        found: set[int] = set()
        left = [self._seen(k) for k in outputs]
        while left:
            k = left.pop()
            if k not in found:
                found.add(k)
                if k not in self.env:
                    left += map(self._seen, self.joint.rows[k].operands)
        return sorted(found)

    def _base(self, k: int) -> int:
        while self.joint.rows[k].op is Op.RESHAPE:
            (k,) = self.joint.rows[k].operands
        return k

    def _changed(self, k: int) -> list[int]:
        """The arrays that a row which puts back takes further back."""
        row = self.joint.rows[k]
        if row.op in WRITES:
            operands = row.operands[:1]
        elif row.op is Op.REVERSE_LOOP:
            operands = row.operands
        else:
            return []
        bases = [self._base(self._seen(x)) for x in operands]
        return [x for x in bases if x in self.arrays]

    def _is_ready(self, k: int, reads_states: bool = True) -> bool:
        """Whether a primal row reads nothing that is put back later, or at all."""
        left, seen = [k], set[int]()
        while left:
            k = left.pop()
            if k in self.states and not reads_states:
                return False
            k = self._seen(k)
            if k in self.env or k in seen:
                continue
            if self.dual[k]:
                return False
            seen.add(k)
            left += self.joint.rows[k].operands
        return True

    def _row(self, k: int) -> None:
        """Append a row, after those that it reads."""
        left = [k]
        while left:
            k = left[-1]
            missing = [self._seen(x) for x in self.joint.rows[k].operands if x not in self.env]
            if k in self.env or not missing:
                left.pop()
                if k not in self.env:
                    self.env[k] = self.b.copy_row(self.joint, k, self.env)
                    self.env.update(dict.fromkeys(self.shown.get(k, ()), self.env[k]))
            else:
                left += missing
