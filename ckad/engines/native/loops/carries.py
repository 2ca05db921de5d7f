"""What a loop carries from step to step: registers, and large arrays in pools of equal buffers.

A step reads its arrays from some buffers of a pool and writes new ones to those that are free; then
the buffers change their roles. Nothing is copied, also where arrays only change their names. An
array of which a step only changes parts has one buffer for the whole loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ckad.engines.native.ir.element import Array, Value, nbytes
from ckad.engines.native.ir.unit import Buffer, Unit
from ckad.engines.native.kernels.table import emit_copy
from ckad.engines.native.nests.in_place import takes_place_of
from ckad.engines.native.rows.code import TapeCode
from ckad.engines.native.rows.writer import Writer
from ckad.engines.native.values import registers
from ckad.engines.native.values.held import Held, Memory, Wanted
from ckad.engines.native.values.registers import Registers, is_small
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import Type


@dataclass(eq=False)
class Pool:
    """The buffers of the carried arrays of one size; ``members`` are their places in the carry."""

    nbytes: int
    members: list[int]
    n_buffers: int
    buffers: list[Buffer] = field(default_factory=list)
    users: set[tuple[int, int]] = field(default_factory=set)

    def leave(self, writer: Writer, user: tuple[int, int]) -> None:
        self.users.discard(user)
        if not self.users:
            self.free(writer)

    def free(self, writer: Writer) -> None:
        for buffer in self.buffers:
            if buffer.offset is not None:
                writer.release(buffer)
        self.buffers = []

    @property
    def stays(self) -> bool:
        """Whether its only array is at one place all the time."""
        return self.n_buffers == 1


class Copy(NamedTuple):
    """An array that a step left elsewhere than where the next step reads it."""

    to: Value
    source: Value
    nbytes: int


class Carry:
    """The types of what a loop carries and the pools of its large arrays.

    ``bodies`` are the tapes that compute a new carry, each with the position of its first carry
    input; their first outputs are the new carry.
    """

    def __init__(self, types: Sequence[Type], bodies: Sequence[tuple[Tape, int]]) -> None:
        self.types = list(types)
        self.small = [k for k, t in enumerate(types) if is_small(t)]
        sizes: dict[int, list[int]] = {}
        self.pools: list[Pool] = []
        for k, t in enumerate(types):
            if is_small(t):
                continue
            if all(takes_place_of(tape, k) == self._position(k, first) for tape, first in bodies):
                self.pools.append(Pool(nbytes(t), [k], 1))
            else:
                sizes.setdefault(nbytes(t), []).append(k)
        self.pools += [
            Pool(size, members, max(self._needed(members, *body) for body in bodies))
            for size, members in sizes.items()
        ]

    def _position(self, k: int, first: int) -> int:
        """The position of a carried value among a body's inputs."""
        return first + k

    def _needed(self, members: list[int], tape: Tape, first: int) -> int:
        """A buffer for each array, and one for each that a step writes anew or twice."""
        outputs, inputs = tape.outputs.tolist(), tape.inputs.tolist()
        own = {inputs[self._position(k, first)] for k in members}
        kept = {outputs[k] for k in members} & own
        return 2 * len(members) - len(kept)

    # --- as a list of values: parts of registers, then pointers ----------------------------------

    def flat(self, smalls: Sequence[Held], pointers: Sequence[Value]) -> list[Value]:
        return [*(part for x in smalls for part in _parts(x)), *pointers]

    def smalls(self, values: Sequence[Value]) -> list[Registers]:
        found, at = [], 0
        for k in self.small:
            n = len(registers.widths(self.types[k].size))
            found.append(Registers(self.types[k], tuple(values[at : at + n])))
            at += n
        return found

    def pointers(self, values: Sequence[Value]) -> list[list[Value]]:
        """The pointers of each pool, those that hold the carry first."""
        at = len(values) - sum(p.n_buffers for p in self.pools)
        found = []
        for pool in self.pools:
            found.append(list(values[at : at + pool.n_buffers]))
            at += pool.n_buffers
        return found

    # --- the values of a step -------------------------------------------------------------------

    def held(self, values: Sequence[Value], pools: bool = False) -> list[Held]:
        """The carry as values; ``pools`` says that they belong to their pools from now on."""
        found: dict[int, Held] = dict(zip(self.small, self.smalls(values), strict=True))
        for pool, pointers in zip(self.pools, self.pointers(values), strict=True):
            for k, pointer in zip(pool.members, pointers, strict=False):
                owner = pool if pools else None
                # What stayed is known by the name it came with: the loop around this one, which
                # may have lent its place, finds it among its own buffers by that name alone.
                place = pool.buffers[0].pointer if pools and pool.stays else pointer
                buffer = Buffer(place, pool.nbytes, pool=owner)
                found[k] = Memory(Array(place, self.types[k]), buffer)
        return [found[k] for k in range(len(self.types))]

    def wanted(self, values: Sequence[Value], tape: Tape, first: int) -> Wanted:
        """Free buffers for the outputs that a step writes anew."""
        outputs, inputs = tape.outputs.tolist(), set(tape.inputs.tolist())
        found: Wanted = {}
        for pool, pointers in zip(self.pools, self.pointers(values), strict=True):
            free = iter(pointers[len(pool.members) :])
            for k in pool.members:
                row = outputs[k]
                if row not in inputs and row not in found and tape.rows[row].op is not Op.CONST:
                    pointer = next(free, None)
                    if pointer is not None:
                        found[row] = Buffer(pointer, pool.nbytes)
        return found

    def following(
        self, writer: Writer, unit: Unit, values: Sequence[Value], outputs: Sequence[Held]
    ) -> list[Value]:
        """The values of the next step from the outputs of this one."""
        new = [x for k in self.small for x in _parts(outputs[k])]
        copies: list[Copy] = []
        for pool, pointers in zip(self.pools, self.pointers(values), strict=True):
            new += _next_pool(pool, pointers, outputs, copies)
        _emit_copies(writer, unit, copies)
        return new

    # --- the first values -----------------------------------------------------------------------

    def allocate(self, code: TapeCode, rows: Sequence[int]) -> list[Value]:
        """Buffers for the pools, and in them the carry's first values: rows of the code around."""
        pointers: list[Value] = []
        for pool in self.pools:
            for k in pool.members:
                pool.buffers.append(self._first(code, rows[k], pool))
            while len(pool.buffers) < pool.n_buffers:
                pool.buffers.append(code.writer.allocate(code.unit, pool.nbytes))
            pointers += [buffer.pointer for buffer in pool.buffers]
        return self.flat([code.small(rows[k]) for k in self.small], pointers)

    def _first(self, code: TapeCode, row: int, pool: Pool) -> Buffer:
        """The buffer of an array that nobody else reads, or a copy.

        An array that stays where it is can also lie in a buffer of the loop around this one.
        """
        old = code.takes(row)
        buffer = None if old is None else _given(old.buffer, pool)
        if old is not None and buffer is not None:
            code.give(row, old)
            return Buffer(old.array.pointer, buffer.nbytes, buffer.offset)
        buffer = code.writer.allocate(code.unit, pool.nbytes)
        code.put_row(Array(buffer.pointer, code.rows[row].type), row)
        return buffer


def _given(buffer: Buffer, pool: Pool) -> Buffer | None:
    """What a pool gets of a buffer that nobody else reads."""
    owner = buffer.pool
    if owner is None:
        return buffer if buffer.offset is not None or pool.stays else None
    if not isinstance(owner, Pool) or not owner.stays or not owner.buffers:
        return None
    (own,) = owner.buffers
    if own.offset is None and not pool.stays:
        return None
    owner.buffers, owner.users = [], set()
    return own


def _next_pool(
    pool: Pool, pointers: list[Value], outputs: Sequence[Held], copies: list[Copy]
) -> list[Value]:
    """The pointers of a pool after a step; what did not come to lie in one of them is copied."""
    arrays = {k: _pointer(outputs[k]) for k in pool.members}
    taken: dict[int, Value] = {}
    for k, pointer in arrays.items():
        if _among(pointer, pointers) and not _among(pointer, taken.values()):
            taken[k] = pointer
    free = [p for p in pointers if not _among(p, taken.values())]
    for k, pointer in arrays.items():
        if k not in taken:
            taken[k] = free.pop(0)
            copies.append(Copy(taken[k], pointer, pool.nbytes))
    return [*(taken[k] for k in pool.members), *free]


def _emit_copies(writer: Writer, unit: Unit, copies: list[Copy]) -> None:
    """Copy all at once: nothing is written over that another copy has yet to read."""
    left, asides = list(copies), []
    while left:
        sources = [c.source for c in left]
        ready = next((c for c in left if not _among(c.to, sources)), None)
        if ready is not None:
            left.remove(ready)
            emit_copy(unit.b, *ready)
            continue
        first = left[0]
        aside = writer.allocate(unit, first.nbytes)
        emit_copy(unit.b, aside.pointer, first.source, first.nbytes)
        left[0] = first._replace(source=aside.pointer)
        asides.append(aside)
    for aside in asides:
        writer.release(aside)


def _pointer(value: Held) -> Value:
    assert isinstance(value, Memory)
    return value.array.pointer


def _parts(value: Held) -> tuple[Value, ...]:
    assert isinstance(value, Registers)
    return value.parts


def _among(pointer: Value, others: Iterable[Value]) -> bool:
    return any(pointer is p for p in others)
