"""What the functions of one sweep over a taped loop share, and the code that calls them.

Actions are read from a table; each kind has a function. The carry, what the body captures and where
the token is lie at fixed places of the arena.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ckad.engines.native.ir.element import Value, nbytes
from ckad.engines.native.ir.state import Control
from ckad.engines.native.ir.unit import Unit
from ckad.engines.native.loops.carries import Carry
from ckad.engines.native.loops.packets import Packet, Slot
from ckad.engines.native.loops.records import Record
from ckad.engines.native.rows.code import TapeCode
from ckad.engines.native.rows.writer import TapedFacts
from ckad.engines.native.values.held import Held
from ckad.tape.control import UNGUARDED, Loop, ReverseLoop


class Shared(NamedTuple):
    """The values that all functions of a sweep read, by what they are."""

    xs: Sequence[Held]
    captured: Sequence[Held]
    ct_ys: Sequence[Held]
    results: Sequence[Held]  # what each step writes an element of: ys, or cotangents of xs


class At(NamedTuple):
    """Which steps a function runs, and the slot of the residuals of the first of them."""

    start: Value
    stop: Value
    slot: Value


class Sweep:
    """One sweep over a loop while its functions are written."""

    def __init__(
        self, code: TapeCode, loop: Loop | ReverseLoop, shared: Shared, token: Value
    ) -> None:
        self.code, self.writer, self.loop = code, code.writer, loop
        self.counts = [len(group) for group in shared]
        self.packet = Packet(code, [value for group in shared for value in group])
        self.token = Slot(code.writer, code.unit, None)
        self.token.put_pointer(code.unit, token)
        self.stores: list[Store] = []

    @property
    def facts(self) -> TapedFacts:
        return self.writer.loops[self.loop.name]

    @property
    def is_guarded(self) -> bool:
        return self.loop.guard != UNGUARDED

    def function(self, kind: str) -> Unit:
        """A new function of this sweep."""
        unit = Unit(self.writer.module, self.writer.name(kind))
        unit.depth = self.code.unit.depth + len(self.code.unit.steps)
        unit.branches = self.code.unit.branches
        return unit

    def open(self, unit: Unit) -> Shared:
        """The shared values in a function."""
        values = iter(self.packet.open(unit))
        return Shared(*([next(values) for _ in range(n)] for n in self.counts))

    def residuals(self, unit: Unit, i: Value, at: At) -> Value:
        """The address of step i's residuals."""
        b, control = unit.b, self.facts.control
        slot = b.sub(b.add(at.slot, i), at.start)
        distance = b.mul(slot, unit.fixed(control + Control.STRIDE))
        distance = b.add(distance, unit.fixed(control + Control.RESIDUALS))
        return b.gep(self.token.fixed_pointer(unit), [distance])

    def inner_tokens(self, unit: Unit, place: Value, record: Record) -> Iterator[Value]:
        """The addresses of the tokens that follow the residuals at ``place``."""
        for name in record.inner:
            distance = unit.get(self.writer.control(name) + Control.OFFSET)
            yield unit.b.gep(place, [distance])

    def results_live(self) -> list[list[int]]:
        """Where the addresses lie of what each step writes an element of; see TapedFacts."""
        n = self.counts[-1]
        pairs = zip(self.packet.slots, self.packet.types, strict=True)
        return [[slot.offset, nbytes(type), 1] for slot, type in list(pairs)[-n:]] if n else []

    def free(self) -> None:
        self.packet.free(self.writer)
        self.writer.release(self.token.buffer)
        for store in self.stores:
            store.free_slots()


class Store:
    """A carry between the functions of a sweep: small values and the addresses of buffers."""

    def __init__(self, sweep: Sweep, carry: Carry, initial: Sequence[Value]) -> None:
        unit, self.carry, self.writer = sweep.code.unit, carry, sweep.writer
        self.small = [Slot(self.writer, unit, carry.types[k]) for k in carry.small]
        n_pointers = sum(p.n_buffers for p in carry.pools)
        self.large = [Slot(self.writer, unit, None) for _ in range(n_pointers)]
        sweep.stores.append(self)
        self.put(unit, initial)

    def put(self, unit: Unit, values: Sequence[Value]) -> None:
        for slot, value in zip(self.small, self.carry.smalls(values), strict=True):
            slot.put(unit, value)
        pointers = [p for pool in self.carry.pointers(values) for p in pool]
        for slot, pointer in zip(self.large, pointers, strict=True):
            slot.put_pointer(unit, pointer)

    def get(self, unit: Unit) -> list[Value]:
        smalls = [slot.get(unit) for slot in self.small]
        return self.carry.flat(smalls, [slot.pointer(unit) for slot in self.large])

    def live(self) -> list[list[int]]:
        """Where the carry lies between actions; see TapedFacts."""
        types = [self.carry.types[k] for k in self.carry.small]
        found = [[slot.offset, nbytes(t), 0] for slot, t in zip(self.small, types, strict=True)]
        at = 0
        for pool in self.carry.pools:
            own = self.large[at : at + len(pool.members)]
            found += [[slot.offset, pool.nbytes, 1] for slot in own]
            at += pool.n_buffers
        return found

    def free_slots(self) -> None:
        for slot in (*self.small, *self.large):
            self.writer.release(slot.buffer)
