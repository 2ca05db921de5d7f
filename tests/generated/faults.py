"""Faults put into passes and engines on purpose: what the generated programs have to find.

Each is a mistake that somebody could make: a function of the package in a wrong form, by the place
where it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import ckad
from ckad.checkpoint.schedules.schedule import Action
from ckad.engines.native.ir import stepping
from ckad.engines.native.ir.element import Array, whole
from ckad.engines.native.ir.unit import Buffer
from ckad.engines.native.kernels.table import emit_copy
from ckad.engines.native.loops import carries, drive, forward, steps
from ckad.engines.native.loops.carries import Carry
from ckad.engines.native.rows import code as native_code
from ckad.engines.native.values.held import Memory
from ckad.engines.vm.assembly import assembler, placement
from ckad.engines.vm.assembly import loops as vm_loops
from ckad.engines.vm.assembly import taped as vm_taped
from ckad.loops import tables
from ckad.passes.adjoint import accumulate
from ckad.passes.cse import Sharing
from ckad.passes.vectorise import rows as vectorised_rows
from ckad.rules import RULES
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.trace.arguments import Arguments
from ckad.trace.memory import storage, views


class Fault(NamedTuple):
    """A function of the package and its wrong form, made from the right one.

    ``seed`` is that of a program of the usual run that finds it.
    """

    owner: Any
    name: str
    wrong: Callable[[Any], Any]
    seed: int


#: by what is wrong
FAULTS: dict[str, Fault] = {}


def fault(what: str, owner: Any, name: str, seed: int) -> Callable[[Callable[[Any], Any]], None]:
    """Decorator: from the right form of ``owner.name`` to the wrong one."""

    def add(wrong: Callable[[Any], Any]) -> None:
        FAULTS[what] = Fault(owner, name, wrong, seed)

    return add


@contextmanager
def planted(what: str) -> Iterator[None]:
    """The package with one fault; nothing that was made with it outlives the context."""
    owner, name, wrong, _ = FAULTS[what]
    with ExitStack() as stack:
        stack.enter_context(patch.object(owner, name, wrong(getattr(owner, name))))
        stack.callback(ckad.clear_caches)
        ckad.clear_caches()
        yield


# --- derivatives ---------------------------------------------------------------------------------


@fault("a contribution to a cotangent is dropped", accumulate, "plus", seed=0)
def _(right: Any) -> Any:
    return lambda b, x, y: y


@fault("a cotangent survives what was written over", RULES[Op.UPDATE], "vjp", seed=0)
def _(right: Any) -> Any:
    return lambda b, ct, out, x, y, attrs=(): (ct, b.slice(ct, attrs=attrs, type=b.type(y)))


@fault("a roll is not turned back", RULES[Op.ROLL], "vjp", seed=5)
def _(right: Any) -> Any:
    return lambda b, ct, out, x, attrs=(): (b.roll(ct, attrs=attrs),)


@fault("the sides of a choice change places", RULES[Op.SELECT], "vjp", seed=6)
def _(right: Any) -> Any:
    def wrong(*args: Any, **options: Any) -> Any:
        condition, one, other = right(*args, **options)
        return condition, other, one

    return wrong


@fault("a product's tangent lacks a term", RULES[Op.MUL], "jvp", seed=0)
def _(right: Any) -> Any:
    def wrong(b: Builder, tangents: Sequence[Any], *rest: Any, **options: Any) -> Any:
        first, second = tangents
        return right(b, (first, None if first is not None else second), *rest, **options)

    return wrong


@fault("a quotient's cotangent has the wrong sign", RULES[Op.DIV], "vjp", seed=0)
def _(right: Any) -> Any:
    def wrong(b: Builder, *args: Any, **options: Any) -> Any:
        one, other = right(b, *args, **options)
        return one, None if other is None else b.neg(other)

    return wrong


@fault("a step that is run again rounds differently", accumulate._Pull, "_plan_loop", seed=68)
def _(right: Any) -> Any:
    def wrong(self: Any, *args: Any) -> Any:
        plan = right(self, *args)
        return plan._replace(advance=_rounded(plan.advance))

    return wrong


def _rounded(tape: Any) -> Any:
    """Products and sums that are one op as two, and other products as quotients."""
    b, env = Builder(), []
    for k, row in enumerate(tape.rows):
        if row.op is Op.FMA:
            x, y, z = (env[x] for x in row.operands)
            env.append(b.add(b.mul(x, y), z))
        elif row.op is Op.MUL and row.type.is_float:
            x, y = (env[x] for x in row.operands)
            env.append(b.div(x, b.div(b.full_like(y, 1.0), y)))
        else:
            env.append(b.copy_row(tape, k, env))
    return b.tape([env[k] for k in tape.outputs.tolist()])


# --- passes --------------------------------------------------------------------------------------


@fault("parts at different places are taken for one", Sharing, "append", seed=1)
def _(right: Any) -> Any:
    def wrong(self: Any, op: Any, operands: Any, attrs: Any, type: Any) -> int:
        if op is not Op.SLICE:
            return int(right(self, op, operands, attrs, type))
        key = (op, operands, type)
        found = self._seen.setdefault(key, len(self.rows))
        return found if found < len(self.rows) else Builder.append(self, op, operands, attrs, type)

    return wrong


@fault("a sum of iterations forgets what it starts from", vectorised_rows, "total", seed=63)
def _(right: Any) -> Any:
    return lambda b, op, start, x: right(b, op, b.full_like(start, 0.0), x)


# --- the native engine ---------------------------------------------------------------------------


@fault("the buffers of a carry change places", carries, "_next_pool", seed=52)
def _(right: Any) -> Any:
    def wrong(pool: Any, *args: Any) -> Any:
        new = right(pool, *args)
        return [new[1], new[0], *new[2:]] if len(pool.members) > 1 else new

    return wrong


@fault("lent buffers come back under other names", Carry, "held", seed=52)
def _(right: Any) -> Any:
    def wrong(self: Any, values: Any, pools: bool = False) -> Any:
        found = right(self, values, pools)
        for pool, pointers in zip(self.pools, self.pointers(values), strict=True):
            for k, pointer in zip(pool.members, pointers, strict=False):
                owner = pool if pools else None
                buffer = Buffer(pointer, pool.nbytes, pool=owner)
                found[k] = Memory(Array(pointer, self.types[k]), buffer)
        return found

    return wrong


@fault("copies at the end of a step in a wrong order", carries, "_emit_copies", seed=150)
def _(right: Any) -> Any:
    def wrong(writer: Any, unit: Any, copies: Any) -> None:
        for copy in reversed(copies):
            emit_copy(unit.b, *copy._replace(source=copies[0].source))

    return wrong


@fault("memory is free before its last reader", native_code.TapeCode, "dies", seed=0)
def _(right: Any) -> Any:
    return lambda self, k: self.last.get(k, -1) <= self.now + 1


@fault("the last block of a sum is left out", native_code.TapeCode, "_sum", seed=8)
def _(right: Any) -> Any:
    return lambda self, type, partial, n: right(self, type, partial, max(1, n - 1))


@fault("steps are reversed in the order they ran", stepping, "_steps", seed=2)
def _(right: Any) -> Any:
    return lambda unit, run, *rest: right(unit, run._replace(backward=False), *rest)


@fault("a loop that ended early is reversed to its bound", drive, "clipped", seed=2)
def _(right: Any) -> Any:
    return lambda unit, control, start, stop, skip: stop


@fault("a loop that ended early counts a step too few", forward, "_note_count", seed=4)
def _(right: Any) -> Any:
    def wrong(sweep: Any, token: Any) -> None:
        unit, place = sweep.code.unit, sweep.facts.control + forward.Control.COUNT
        count = unit.b.sub(unit.get(place), whole(1))
        least = unit.b.icmp_signed(">", count, whole(0))
        unit.put(place, unit.b.select(least, count, whole(0)))
        right(sweep, token)

    return wrong


@fault("the reverse reads the next step's element", steps.Steps, "elements", seed=40)
def _(right: Any) -> Any:
    def wrong(self: Any, group: Any, i: Any) -> Any:
        if "reverse" not in self.unit.function.name:
            return right(self, group, i)
        last = self.unit.b.sub(self.unit.stop, whole(1))
        before = self.unit.b.icmp_signed("<", i, last)
        after = self.unit.b.add(i, whole(1))
        return right(self, group, self.unit.b.select(before, after, i))

    return wrong


# --- the vm --------------------------------------------------------------------------------------


@fault("the vm writes over what is read later", placement.Placement, "dies", seed=0)
def _(right: Any) -> Any:
    return lambda self, row: True


@fault("the vm changes carries one after the other", vm_loops, "carry_on", seed=14)
def _(right: Any) -> Any:
    def wrong(a: Any, carried: Any, new: Any) -> None:
        for c, r in zip(carried, new, strict=True):
            if c is not r:
                a.copy(c.offset, r.offset, min(c.size, r.size))

    return wrong


@fault("the vm tapes carries one after the other", vm_taped, "carry_on", seed=14)
def _(right: Any) -> Any:
    return FAULTS["the vm changes carries one after the other"].wrong(right)


@fault("the vm forgets who names a region", assembler.Assembler, "bind_input", seed=1)
def _(right: Any) -> Any:
    def wrong(self: Any, frame: Any, row: int, region: Any) -> None:
        frame.region[row] = region
        if row in frame.last and region.users == 0:
            region.users += 1

    return wrong


# --- schedules -----------------------------------------------------------------------------------


@fault("every checkpoint goes to one slot", tables, "rows_of", seed=14)
def _(right: Any) -> Any:
    def wrong(actions: Any) -> np.ndarray:
        rows = right(actions)
        kept = (rows[:, 0] == Action.STORE) | (rows[:, 0] == Action.RESTORE)
        rows[kept, 3] = 0
        return rows

    return wrong


# --- the front end -------------------------------------------------------------------------------


@fault("a view shows what its array held before", storage.Storage, "write", seed=3)
def _(right: Any) -> Any:
    def wrong(self: Any, row: int) -> None:
        cache = dict(self.cache)
        right(self, row)
        self.cache.update(cache)

    return wrong


@fault("a write through a view goes to the view's first place", views.SliceView, "put", seed=2)
def _(right: Any) -> Any:
    def wrong(self: Any, b: Any, x: int, y: int) -> int:
        n = len(self.attrs) // 2
        first = (*(0 for _ in range(n)), *self.attrs[n:])
        steps = all(s > 0 for s in self.attrs[n:])
        return int(b.update(x, y, attrs=first if steps else self.attrs))

    return wrong


@fault("a second call has the numbers of the first", Arguments, "like", seed=0)
def _(right: Any) -> Any:
    return lambda self, args: self
