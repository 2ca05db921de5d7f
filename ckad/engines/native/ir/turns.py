"""Two streams of instructions in turns: their chains of dependent operations run at once."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.binding as llvm
from llvmlite import ir

from ckad.engines.native.ir.element import Value

#: A processor that starts instructions in the order in which they stand, so LLVM keeps them so. For
#: others it orders them by the registers they take, one stream after the other.
_IN_ORDER = {"x86_64": "atom"}

Emit = Callable[[], list[Value]]


def in_turns(b: ir.IRBuilder, emit: Emit, beside: Emit) -> tuple[list[Value], list[Value]]:
    """What both give. Their instructions take turns, each stream in its own order, if both are
    straight code; neither may read what the other writes."""
    block, start = b.block, len(b.block.instructions)
    first = emit()
    middle = len(block.instructions)
    second = beside()
    if b.block is block:
        written = block.instructions
        block.instructions = written[:start] + _merged(written[start:middle], written[middle:])
    return first, second


def _merged(one: list[ir.Instruction], two: list[ir.Instruction]) -> list[ir.Instruction]:
    """Both, spread evenly."""
    at = [(k + 0.5) / len(stream) for stream in (one, two) for k in range(len(stream))]
    both = [*one, *two]
    return [both[k] for k in sorted(range(len(both)), key=at.__getitem__)]


def keep_order(function: ir.Function) -> None:
    """Have LLVM leave the instructions about in the order in which they stand."""
    processor = _IN_ORDER.get(llvm.get_process_triple().split("-")[0])
    if processor:
        # llvmlite's own ``add`` knows no attributes with values
        set.add(function.attributes, f'"tune-cpu"="{processor}"')
