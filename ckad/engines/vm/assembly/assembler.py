"""The assembler: heap, code and constants of one program while a tape is walked.

A value's cells are free again after its last reader. Copies that change nothing are not made: a
reshape is the same region under another name, an update takes over the region of the array it
updates if nobody reads that any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np

from ckad.engines.actions import Slots
from ckad.engines.heap import Heap
from ckad.engines.origin import Origin, origin
from ckad.engines.stops import Stops
from ckad.engines.vm.assembly.grouping import Item, members
from ckad.engines.vm.assembly.placement import Placement
from ckad.engines.vm.assembly.region import Region
from ckad.engines.vm.isa import FEW, KERNEL_CODES, Code, Key
from ckad.engines.vm.kernels import table
from ckad.engines.vm.program import Call, Place, Token
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: What an instruction costs beside its work, in nanoseconds.
_DISPATCH = 4

#: Appends the code of one item.
Lower = Callable[["Assembler", Placement, Item], None]


class Assembler:
    """Heap, code and constants of one program; ``lower`` and ``loops`` append the code."""

    def __init__(
        self,
        slots: dict[int, Slots],
        lower: Lower,
        check_finite: bool = False,
        stops: Stops | None = None,
    ) -> None:
        self.lower = lower
        self.slots = slots
        self.check_finite, self.stops = check_finite, stops
        self.each_row = check_finite or stops is not None
        self.code: list[int] = []
        self.cost = 0
        self.heap = Heap()
        self.pool: dict[tuple[str, bytes], Region] = {}
        self.constants: list[tuple[Region, np.ndarray]] = []
        self.zero = self.new(1)  # cells are zero before the run; nothing ever writes this one
        self.loops: dict[int, int] = {}
        self.nested: set[int] = set()
        self.tokens: dict[int, Token] = {}
        self.depth = 0
        self.places: list[Origin] = []
        self.around: list[tuple[Tape, int]] = []  # the rows whose code is being written
        self.calls: dict[int, Call] = {}
        self.results: dict[int, Place] = {}  # where what is to be shown of a place lies
        if stops is not None:
            stops.begin()
            self.nan = self.new(1)
            self.constants.append((self.nan, np.array([np.nan])))
        self.counters: dict[int, tuple[int, ...]] = {}
        self.steps: list[int] = []  # index cells of the loops around the code at hand

    # --- regions -------------------------------------------------------------------------------

    def new(self, size: int) -> Region:
        size = max(size, 1)
        return Region(self.heap.allocate(size), size)

    def bind(self, placement: Placement, row: int, region: Region) -> None:
        placement.region[row] = region
        if row in placement.last:
            region.users += 1
        else:
            self._free_if_unused(region)

    def release(self, region: Region) -> None:
        region.users -= 1
        self._free_if_unused(region)

    def hold(self, region: Region) -> Region:
        region.holds += 1
        return region

    def unhold(self, region: Region) -> None:
        region.holds -= 1
        self._free_if_unused(region)

    def _free_if_unused(self, region: Region) -> None:
        if region.writable and not region.users and not region.holds:
            self.heap.release(region.offset, region.size)

    def constant(self, array: np.ndarray) -> Region:
        return self.pool[_key(array)]

    def place_constants(self, tape: Tape) -> None:
        """Give every constant of the program its cells, before any code uses the heap.

        They are written once before the run, so no temporary may share their cells.
        """
        for array in tape.constants:
            if _key(array) not in self.pool:
                size = max(1, array.size)
                region = Region(self.heap.allocate(size), size, writable=False)
                self.pool[_key(array)] = region
                self.constants.append((region, array))
        for body in tape.bodies:
            self.place_constants(body)

    def take_over(self, placement: Placement, row: int, size: int) -> Region | None:
        """The region of ``row`` if a result may be written over it."""
        region = placement.region[row]
        free = region.writable and region.users == 1 and placement.dies(row)
        return region if free and region.size >= size else None

    def cells_of(self, placement: Placement, row: int) -> int:
        type = placement.tape.rows[row].type
        return type.size if type.is_array else placement.region[row].size

    # --- code ----------------------------------------------------------------------------------

    def emit(self, *words: int, cost: float = 0.0) -> int:
        """Append an instruction; returns its address."""
        at = len(self.code)
        self.code.extend(int(w) for w in words)
        self.cost += _DISPATCH + int(cost)
        return at

    def element(self, key: Key, n: int, dst: int, operands: Sequence[int], cost: float) -> None:
        """An elementwise kernel on n cells."""
        places = dst, *(*operands, 0, 0)[:3]
        if n < FEW and key in KERNEL_CODES:
            self.emit(KERNEL_CODES[key], n, *places, cost=cost)
        else:
            self.emit(Code.KERNEL, table.elements(key), n, *places, cost=cost)

    def whole(self, name: str, *words: int, cost: float) -> None:
        """A kernel on whole arrays."""
        self.emit(Code.WHOLE, 3 + len(words), table.whole(name), *words, cost=cost)

    def copy(self, dst: int, src: int, n: int) -> None:
        if dst != src and n:
            self.emit(Code.COPY, n, dst, src, cost=n / 4)

    def place(self, tape: Tape, k: int) -> int:
        self.places.append(origin([*self.around[:-1], (tape, k)]))
        self.counters[len(self.places) - 1] = tuple(self.steps)
        return len(self.places) - 1

    # --- the walk ------------------------------------------------------------------------------

    def walk(
        self, tape: Tape, inputs: Sequence[Region], wanted: dict[int, Region] | None = None
    ) -> tuple[Placement, list[Region]]:
        """Append the code of ``tape``; its inputs lie in the given regions.

        ``wanted`` says where some of its rows had better be written.

        Returns the regions of the outputs; ``leave`` of the placement gives them back.
        """
        placement = Placement(tape, wanted or {}, joins=not self.each_row)
        for k, row in enumerate(tape.rows):
            if row.op is Op.INPUT:
                self.bind_input(placement, k, inputs[row.attrs[0]])
            elif row.op is Op.CONST and k in placement.last:
                self.bind_input(placement, k, self.constant(tape.constants[row.attrs[0]]))
        for at, item in enumerate(placement.items):
            placement.now = at
            self.around.append((tape, members(item)[-1]))
            self.lower(self, placement, item)
            self.around.pop()
            self._release_dead(placement, item)
        return placement, [placement.region[k] for k in tape.outputs.tolist()]

    def walk_step(
        self, body: Tape, inputs: Sequence[Region], wanted: dict[int, Region]
    ) -> tuple[Placement, list[Region]]:
        """``walk`` for a loop's body, whose first input is the index.

        The loop itself reads the index after the step, so nothing may be written over it.
        """
        index = inputs[0]
        self.steps.append(index.offset)
        index.users += 1
        walked = self.walk(body, inputs, wanted)
        index.users -= 1
        self.steps.pop()
        return walked

    def bind_input(self, placement: Placement, row: int, region: Region) -> None:
        placement.region[row] = region
        if row in placement.last:
            region.users += 1

    def _release_dead(self, placement: Placement, item: Item) -> None:
        for x in {x for k in members(item) for x in placement.operands(k)}:
            if placement.last[x] == placement.now and x in placement.region:
                self.release(placement.region.pop(x))

    def give_results(self, placement: Placement, k: int, regions: list[Region]) -> None:
        """Hold a control row's results until its RESULT rows name them; drop those without one."""
        named = placement.named.get(k, set())
        placement.results[k] = [self.hold(region) for region in regions]
        for at, region in enumerate(regions):
            if at not in named:
                self.unhold(region)

    def take_result(self, placement: Placement, k: int, row: Row) -> None:
        region = placement.results[row.operands[0]][row.attrs[0]]
        if k in placement.last:
            self.bind(placement, k, region)
        self.unhold(region)

    def leave(self, placement: Placement) -> None:
        """Give back the regions of a walked tape's outputs."""
        for x in set(placement.tape.outputs.tolist()):
            self.release(placement.region[x])

    def check(self, placement: Placement, k: int) -> None:
        """Under ``check_finite``: stop where row k is not finite. With stops: stop after it."""
        type = placement.tape.rows[k].type
        if self.stops is not None and type.is_array and k in placement.region:
            self._stop(placement, k, self.stops)
        if self.check_finite and type.is_float:
            place = self._shown(placement, k)
            self.emit(Code.CHECK, type.size, placement.region[k].offset, place, cost=type.size / 4)

    def _shown(self, placement: Placement, k: int) -> int:
        """The place of a row whose value is to be shown."""
        place = self.place(placement.tape, k)
        self.results[place] = Place(placement.region[k].offset, placement.tape.rows[k].type)
        return place

    def _stop(self, placement: Placement, k: int, stops: Stops) -> None:
        """Leave the interpreter after row k, if it is wanted, at the steps that are wanted."""
        if not stops.wanted(origin([*self.around[:-1], (placement.tape, k)])):
            return
        place = self._shown(placement, k)
        stops.places.add(place)
        jumps = []
        for cell, step in zip(self.steps, stops.steps, strict=False):
            self.emit(Code.JUMP_IF_AT, cell, step, len(self.code) + 6)
            jumps.append(self.emit(Code.JUMP, 0) + 1)
        self.emit(Code.CHECK, 1, self.nan.offset, place)  # never finite
        for at in jumps:
            self.code[at] = len(self.code)


def _key(array: np.ndarray) -> tuple[str, bytes]:
    return array.dtype.str, blake2b(np.ascontiguousarray(array).data).digest()
