"""The kernels of the ops that work on whole arrays in memory, as straight LLVM IR.

``KERNELS[op](b, attrs, out, *operands)`` writes the op's loops where the builder stands; the
builder may end in another block. Arrays are contiguous in C order and their shapes static. ``out``
does not overlap an operand; but UPDATE, SLICE_ADD, SCATTER and SCATTER_ADD write in place where the
pointer of ``out`` is (the same object as) that of the first operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ckad.engines.native.ir.element import POINTER, Array
from ckad.engines.native.kernels.copies import COPIES
from ckad.engines.native.kernels.indices import INDEXING
from ckad.engines.native.kernels.positions import POSITIONS
from ckad.engines.native.kernels.products import PRODUCTS
from ckad.engines.native.kernels.reductions import REDUCTIONS
from ckad.engines.native.kernels.rows import emit_copy, emit_fill, emit_zeros
from ckad.engines.native.kernels.scans import SCANS
from ckad.tape.ops import Op
from ckad.tape.types import Type

__all__ = ["KERNELS", "Kernel", "emit_call", "emit_copy", "emit_fill", "emit_zeros"]

#: emit(builder, attributes, out: Array, *operands: Array) -> None
Kernel = Callable[..., None]

KERNELS: dict[Op, Kernel] = {**COPIES, **INDEXING, **REDUCTIONS, **POSITIONS, **SCANS, **PRODUCTS}


def emit_call(b: ir.IRBuilder, op: Op, attrs: Sequence[int], out: Array, *operands: Array) -> None:
    """Call ``op``'s kernel as a function of the module, which all rows of that kind share.

    It is compiled once, and told that what it writes overlaps nothing that it reads.
    """
    in_place = bool(operands) and out.pointer is operands[0].pointer
    types = [out.type, *[x.type for x in operands]]
    name = f"ckad_{op.name}({','.join(map(str, attrs))})({' '.join(map(str, types))}){in_place:d}"
    function = b.module.globals.get(name) or _function(b.module, name, op, attrs, types, in_place)
    b.call(function, [out.pointer, *[x.pointer for x in operands]])


def _function(
    module: ir.Module,
    name: str,
    op: Op,
    attrs: Sequence[int],
    types: Sequence[Type],
    in_place: bool,
) -> ir.Function:
    signature = ir.FunctionType(ir.VoidType(), [POINTER] * len(types))
    function = ir.Function(module, signature, name)
    function.linkage = "internal"
    for flag in ("noinline", "nounwind"):
        function.attributes.add(flag)
    if not in_place:
        function.args[0].add_attribute("noalias")
    b = ir.IRBuilder(function.append_basic_block())
    out, *operands = map(Array, function.args, types)
    if in_place:
        operands[0] = operands[0]._replace(pointer=out.pointer)
    KERNELS[op](b, attrs, out, *operands)
    b.ret_void()
    return function
