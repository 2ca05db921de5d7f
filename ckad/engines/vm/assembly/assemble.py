"""From a tape to a Program: one walk over the rows that allocates cells and appends code."""

from __future__ import annotations

import numpy as np

from ckad.engines.actions import Slots
from ckad.engines.blas import calls_blas
from ckad.engines.heap import too_much
from ckad.engines.stops import Stops
from ckad.engines.vm.assembly.assembler import Assembler
from ckad.engines.vm.assembly.chains import lower_chain
from ckad.engines.vm.assembly.far import far_inputs
from ckad.engines.vm.assembly.grouping import Item
from ckad.engines.vm.assembly.lower import lower_row
from ckad.engines.vm.assembly.placement import Placement
from ckad.engines.vm.isa import Code
from ckad.engines.vm.program import CELL, MOST_CELLS, Place, Program
from ckad.tape.tape import Tape


def assemble(
    tape: Tape,
    slots: dict[int, Slots],
    check_finite: bool = False,
    stops: Stops | None = None,
) -> Program:
    """The vm's program for ``tape``; ``slots`` says how much the token of each taped loop holds."""
    assembler = Assembler(slots, _lower, check_finite, stops)
    far = far_inputs(tape)
    inputs = [assembler.new(1 if k in far else t.size) for k, t in enumerate(tape.input_types)]
    for k in far:
        inputs[k].far = True
    assembler.place_constants(tape)
    _, outputs = assembler.walk(tape, inputs)
    assembler.emit(Code.HALT)
    if assembler.heap.peak > MOST_CELLS:
        raise MemoryError(too_much(assembler.heap.peak * CELL))
    return Program(
        code=np.array(assembler.code, np.int64),
        n_cells=assembler.heap.peak,
        constants=[(region.offset, array) for region, array in assembler.constants],
        inputs=[Place(r.offset, t, r.far) for r, t in zip(inputs, tape.input_types, strict=True)],
        outputs=[Place(r.offset, t) for r, t in zip(outputs, tape.output_types, strict=True)],
        loops=assembler.loops,
        places=assembler.places,
        counters=assembler.counters,
        results=assembler.results,
        calls=assembler.calls,
        nested=assembler.nested,
        tokens=assembler.tokens,
        calls_blas=calls_blas(tape),
    )


def _lower(a: Assembler, placement: Placement, item: Item) -> None:
    if isinstance(item, list):
        lower_chain(a, placement, item)
    else:
        lower_row(a, placement, item)
