"""Code that runs a body step after step: what is carried, the elements of the xs, the count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from ckad.engines.vm.assembly.assembler import Assembler
from ckad.engines.vm.assembly.grouping import group, reads_in_place
from ckad.engines.vm.assembly.placement import Placement
from ckad.engines.vm.assembly.region import Region
from ckad.engines.vm.isa import STRIP, Code
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type


def take_carry(a: Assembler, placement: Placement, row: Row, names: Sequence[int]) -> list[Region]:
    """Regions for what a loop carries, holding the initial values."""
    carried = []
    for x in names:
        source = placement.region[x]
        size = a.cells_of(placement, x)
        sole = row.operands.count(x) == 1 and a.take_over(placement, x, size) is not None
        if sole:
            a.hold(source)
            a.release(placement.region.pop(x))
            carried.append(source)
        else:
            region = a.hold(a.new(size))
            a.copy(region.offset, source.offset, size)
            carried.append(region)
    return carried


def carry_on(a: Assembler, carried: Sequence[Region], new: Sequence[Region]) -> None:
    """Copy a step's results into the carry; what another copy would overwrite is saved first."""
    pairs = [(c, r) for c, r in zip(carried, new, strict=True) if c is not r]
    written = {id(c) for c, _ in pairs}
    saved: dict[int, Region] = {}
    for _, r in pairs:
        if id(r) in written and id(r) not in saved:
            saved[id(r)] = a.new(r.size)
            a.copy(saved[id(r)].offset, r.offset, r.size)
    for c, r in pairs:
        a.copy(c.offset, saved.get(id(r), r).offset, min(c.size, r.size))
    for region in saved.values():
        a.heap.release(region.offset, region.size)


class Steps:
    """Code that runs a body once per step: its index, its elements of the xs, its captures."""

    def __init__(
        self,
        a: Assembler,
        placement: Placement,
        xs: Sequence[int],
        captured: Sequence[int],
        i: Region,
    ):
        self.a, self.placement, self.i = a, placement, i
        self.xs = [placement.region[x] for x in xs]
        self.x_sizes = [prod(placement.tape.rows[x].type.shape[1:]) for x in xs]
        self.captured = [placement.region[x] for x in captured]
        self.x_regions = [a.hold(a.new(n)) for n in self.x_sizes]

    def elements(self, body: Tape, first: int) -> list[Region]:
        """Copy this step's elements of the xs that the body reads."""
        for at, (source, n, region) in enumerate(
            zip(self.xs, self.x_sizes, self.x_regions, strict=True)
        ):
            if n and _reads(body, first + at):
                code = Code.COPY_FAR if source.far else Code.COPY_IN
                self.a.emit(code, n, region.offset, source.offset, self.i.offset, cost=n / 4)
        return self.x_regions

    def run(
        self, body: Tape, carried: Sequence[Region], targets: Sequence[Region] = ()
    ) -> tuple[Placement, list[Region]]:
        """One step of a body (i, carry, x, captured); ``targets`` say where to put the carry."""
        elements = self.elements(body, 1 + len(carried))
        inputs = [self.i, *carried, *elements, *self.captured]
        return self.a.walk_step(body, inputs, wanted_at(body, targets))

    def close(self) -> None:
        for region in self.x_regions:
            self.a.unhold(region)


def _reads(tape: Tape, position: int) -> bool:
    k = tape.inputs[position]
    return bool((tape.operand == k).any() or (tape.outputs == k).any())


def put(
    a: Assembler, values: Sequence[Region], bases: Sequence[tuple[int, int]], index: Region
) -> None:
    """Write each value into its array of slots at ``index``."""
    for value, (base, size) in zip(values, bases, strict=True):
        a.emit(Code.COPY_OUT, size, base, index.offset, value.offset, cost=size / 4)


def get(
    a: Assembler, values: Sequence[Region], bases: Sequence[tuple[int, int]], index: Region
) -> None:
    for value, (base, size) in zip(values, bases, strict=True):
        a.emit(Code.COPY_IN, size, value.offset, base, index.offset, cost=size / 4)


def wanted_at(body: Tape, targets: Sequence[Region]) -> dict[int, Region]:
    """The first outputs of a body with the regions that they should lie in."""
    return dict(zip(body.outputs.tolist(), targets, strict=False))


#: One step's code: where the carry lies, where the next one should; it is there afterwards.
Once = Callable[[Sequence[Region], Sequence[Region]], None]


class Counter(NamedTuple):
    """The index of a counted loop, the cell that it runs to, the direction, a flag that ends it."""

    i: Region
    stop: Region
    step: int = 1
    flag: Region | None = None


def count(
    a: Assembler, counter: Counter, carried: Sequence[Region], swap: Sequence[bool], once: Once
) -> None:
    """A counted loop around ``once``.

    Large carries that a step cannot update in place have two regions that take turns: the code
    of the step stands twice, and nothing is copied from step to step.
    """
    second = [a.hold(a.new(c.size)) if both else c for c, both in zip(carried, swap, strict=True)]
    cost, head = a.cost, len(a.code)
    once(carried, second)
    if not any(swap):
        next_step(a, counter, head, cost)
        return
    skip = next_step(a, counter, 0, cost)
    odd = a.emit(Code.JUMP, 0) + 1
    a.code[skip] = len(a.code)
    once(second, carried)
    next_step(a, counter, head, cost)
    even = a.emit(Code.JUMP, 0) + 1
    a.code[odd] = len(a.code)
    for c, d in zip(carried, second, strict=True):
        a.copy(c.offset, d.offset, c.size)
        if c is not d:
            a.unhold(d)
    a.code[even] = len(a.code)


def next_step(a: Assembler, counter: Counter, target: int, cost: int) -> int:
    """Close a step; returns the address of the jump's target."""
    if a.depth == 1:
        a.emit(Code.STEP)
    i, stop, step, flag = counter
    words = i.offset, stop.offset, step, target, a.cost - cost + 8
    if flag is None:
        at = a.emit(Code.NEXT, *words)
    else:
        at = a.emit(Code.NEXT_WHILE, *words, flag.offset)
    a.cost = cost  # the steps are paid for while they run
    return at + 4


#: Carries of fewer cells are copied from step to step.
LARGE = 4 * STRIP


def swaps(body: Tape, first: int, n: int) -> list[bool]:
    """Which of the n carries from input ``first`` on are large and not updated in place.

    A step that reads a carry through a view (a stencil's neighbours) has to leave it as it is
    until the last strip is done.
    """
    chained = {k for item in group(body) if isinstance(item, list) for k in item}
    outputs, inputs = body.outputs.tolist(), body.inputs.tolist()
    viewed = {x for k in chained if not reads_in_place(body.rows[k]) for x in body.rows[k].operands}
    return [
        body.rows[outputs[c]].type.size >= LARGE
        and outputs[c] in chained
        and outputs.index(outputs[c]) == c
        and inputs[first + c] in viewed
        for c in range(n)
    ]


def new_ys(
    a: Assembler, types: Sequence[Type], length: int
) -> tuple[list[Region], list[tuple[int, int]]]:
    ys = [a.hold(a.new(length * t.size)) for t in types]
    return ys, [(y.offset, t.size) for y, t in zip(ys, types, strict=True)]


def close(
    a: Assembler, placement: Placement, k: int, results: list[Region], own: list[Region]
) -> None:
    """Hand over the results and give back the loop's own cells."""
    a.depth -= 1
    a.give_results(placement, k, results)
    for region in (*results, *own):
        a.unhold(region)
