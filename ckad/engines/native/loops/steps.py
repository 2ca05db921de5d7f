"""Functions of a sweep that run steps of a body, one for each kind of action.

They read the carry and the captured values from their places, and put what steps give there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckad.engines.native.ir.element import Array, Value, nbytes, whole
from ckad.engines.native.ir.stepping import Body, Guard, Ran, Run, run_steps
from ckad.engines.native.ir.unit import Buffer, Unit
from ckad.engines.native.kernels.table import emit_copy
from ckad.engines.native.loops.plain import index_of, want_at
from ckad.engines.native.loops.records import Record, arrays_at
from ckad.engines.native.loops.sweep import At, Store, Sweep
from ckad.engines.native.rows.code import TapeCode
from ckad.engines.native.values.held import Held, Memory, Token, Wanted, element, taken
from ckad.engines.work import nanoseconds
from ckad.tape.ops import Op
from ckad.tape.tape import Tape


class Homes(NamedTuple):
    """Large carried arrays that are residuals themselves: they live in the records of the steps.

    By their place in the carry: where a step reads them, and where it puts the new ones.
    """

    here: dict[int, Array]
    following: dict[int, Array]
    kept: set[int]  # which of the residuals they are


class Steps:
    """A function of a sweep that runs steps of a body.

    The outputs of a body are the new carry, then what is written to an element of ``results``, then
    residuals.
    """

    def __init__(
        self, sweep: Sweep, unit: Unit, store: Store, first: int = 1, at: At | None = None
    ) -> None:
        self.sweep, self.unit, self.store = sweep, unit, store
        self.first = first  # the position of the first carry input
        self.at = at or At(unit.start, unit.stop, unit.slot)
        self.shared = sweep.open(self.unit)

    def residuals(self, i: Value) -> Value:
        """The address of step i's residuals."""
        return self.sweep.residuals(self.unit, i, self.at)

    def elements(self, group: Sequence[Held], i: Value) -> list[Held]:
        """The elements that step i reads."""
        b = self.unit.b
        return [taken(b, element(b, array_of(x), i)) for x in group]

    def inputs(self, i: Value, values: Sequence[Value], homes: Homes | None = None) -> list[Held]:
        """What a primal body is given."""
        own, shared = self.store.carry.held(values), self.shared
        for k, array in homes.here.items() if homes else ():
            own[k] = Memory(array, Buffer(array.pointer, 0, writable=False))
        return [index_of(i), *own, *self.elements(shared.xs, i), *shared.captured]

    # --- carried arrays in the records ----------------------------------------------------------

    def residents(self, body: Tape, rows: Sequence[int]) -> dict[int, int]:
        """Which of the arrays ``rows`` are carried ones, by their place in the carry.

        All large ones or none: the others would have to take turns with buffers.
        """
        carry, inputs = self.store.carry, body.inputs.tolist()
        arrays = [k for k in rows if body.rows[k].type.is_array]
        own = {inputs[self.first + k]: k for pool in carry.pools for k in pool.members}
        found = {own[row]: at for at, row in reversed(list(enumerate(arrays))) if row in own}
        return found if len(found) == len(own) else {}

    def homes(
        self, residents: dict[int, int], i: Value, values: Sequence[Value], record: Record
    ) -> Homes:
        """Where step i finds the residents, and where the next step, or what follows, does."""
        unit, b = self.unit, self.unit.b
        after = b.add(i, whole(1))
        more = b.icmp_signed("<", after, unit.stop)
        now, then = (arrays_at(unit, self.residuals(step), record) for step in (i, after))
        own = self.store.carry.held(values)
        following = {
            k: Array(b.select(more, then[at].pointer, array_of(own[k]).pointer), now[at].type)
            for k, at in residents.items()
        }
        here = {k: now[at] for k, at in residents.items()}
        return Homes(here, following, set(residents.values()))

    def move_in(self, residents: dict[int, int], record: Record) -> None:
        """Copy the carry to the record of the first step."""
        unit, values = self.unit, self.store.get(self.unit)
        first = arrays_at(unit, self.residuals(unit.start), record)
        own = self.store.carry.held(values)
        for k, at in residents.items():
            emit_copy(unit.b, first[at].pointer, array_of(own[k]).pointer, nbytes(first[at].type))

    def move_out(
        self, residents: dict[int, int], i: Value, values: Sequence[Value], record: Record
    ) -> None:
        """Copy the carry from the record of step i, where the step before has left it."""
        unit = self.unit
        here = arrays_at(unit, self.residuals(i), record)
        own = self.store.carry.held(values)
        for k, at in residents.items():
            emit_copy(unit.b, array_of(own[k]).pointer, here[at].pointer, nbytes(here[at].type))

    def _wanted_home(self, body: Tape, homes: Homes) -> Wanted:
        wanted: Wanted = {}
        for k, array in homes.following.items():
            row = body.outputs.tolist()[k]
            if row not in wanted and body.rows[row].op not in (Op.INPUT, Op.CONST):
                wanted[row] = Buffer(array.pointer, nbytes(array.type))
        return wanted

    def _moved_on(
        self, homes: Homes, values: Sequence[Value], outputs: Sequence[Held]
    ) -> list[Value]:
        """The values of the next step; buffers keep their roles."""
        carry = self.store.carry
        for k, array in homes.following.items():
            new = array_of(outputs[k])
            if new.pointer is not array.pointer:
                emit_copy(self.unit.b, array.pointer, new.pointer, nbytes(array.type))
        smalls = [outputs[k] for k in carry.small]
        return carry.flat(smalls, [p for pool in carry.pointers(values) for p in pool])

    # --- a step ---------------------------------------------------------------------------------

    def step(
        self,
        body: Tape,
        i: Value,
        inputs: Sequence[Held],
        values: Sequence[Value] | None,
        results: Sequence[Held] = (),
        record: Record | None = None,
        homes: Homes | None = None,
    ) -> list[Value]:
        """One step; the values of the next. Without ``values`` it computes residuals alone."""
        unit, carry, rows = self.unit, self.store.carry, body.outputs.tolist()
        n = 0 if values is None else len(carry.types)
        if values is None:
            wanted: Wanted = {}
        elif homes:
            wanted = self._wanted_home(body, homes)
        else:
            wanted = carry.wanted(values, body, self.first)
        places = [element(unit.b, array_of(y), i) for y in results]
        places += self._kept(wanted, body, rows[n + len(places) :], i, record)
        arrays = [k for k in rows[n:] if body.rows[k].type.is_array]
        want_at(wanted, body, arrays, places)
        code = TapeCode(self.sweep.writer, unit, body, inputs, wanted)
        outputs = code.run()
        found = [x for x in outputs[n:] if not isinstance(x, Token)]
        for at, (place, value) in enumerate(zip(places, found, strict=True), -len(results)):
            if not homes or at not in homes.kept:
                code.put(place, value)
        if values is None:
            following: list[Value] = []
        elif homes:
            following = self._moved_on(homes, values, outputs[:n])
        else:
            following = carry.following(code.writer, unit, values, outputs[:n])
        code.close()
        return following

    def _kept(
        self, wanted: Wanted, body: Tape, rows: Sequence[int], i: Value, record: Record | None
    ) -> list[Array]:
        """Where residuals go; tokens of inner loops are wanted there."""
        if record is None:
            return []
        place = self.residuals(i)
        tokens = self.sweep.inner_tokens(self.unit, place, record)
        for row in rows:
            if not body.rows[row].type.is_array:
                wanted[row] = Buffer(next(tokens), 0)
        return arrays_at(self.unit, place, record)

    def run(
        self,
        once: Body,
        body: Tape,
        stop: Value | None = None,
        backward: bool = False,
        guard: Guard | None = None,
    ) -> Ran:
        """All steps, from the carry as it was left to the carry for the next function."""
        unit, cost = self.unit, nanoseconds(body, "native")
        stop = unit.stop if stop is None else stop
        length = self.sweep.loop.length
        run = Run(unit.start, stop, cost, length, guard, backward, self.is_outermost)
        ran = run_steps(unit, run, self.store.get(unit), once)
        self.store.put(unit, ran.values)
        return ran

    @property
    def is_outermost(self) -> bool:
        return not (self.unit.depth or self.unit.branches)


def array_of(value: Held) -> Array:
    assert isinstance(value, Memory)
    return value.array


def in_memory(code: TapeCode, k: int) -> Memory:
    """A row's value for functions that read elements of it."""
    array = code.memory(k)
    return Memory(array, Buffer(array.pointer, 0, writable=False))
