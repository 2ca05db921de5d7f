"""Rows alone whose work threads share: a function over parts of the result, as a nest is."""

from __future__ import annotations

from llvmlite import ir

from ckad.engines.native.ir.element import Array, whole
from ckad.engines.native.ir.unit import internal
from ckad.engines.native.kernels.blas import emit_blocks, n_blocks, product_of
from ckad.engines.native.nests.emit import SIGNATURE
from ckad.engines.native.nests.threads import PARTS, call_shared
from ckad.engines.native.rows.places import Places
from ckad.engines.native.values.registers import is_small
from ckad.tape.ops import Op
from ckad.tape.tape import Row


def is_shared(places: Places, row: Row) -> bool:
    """Whether a row is work for several threads."""
    if row.op is not Op.MATMUL or is_small(row.type):
        return False
    x = places.rows[row.operands[0]].type
    return product_of(row.attrs, row.type, x).is_large(row.type.dtype)


def lower_shared(places: Places, k: int, row: Row) -> None:
    """The code of a row for which ``is_shared`` holds."""
    out = places.place(k)
    arrays = [out.array, *(places.memory(x) for x in row.operands)]
    x = arrays[1].type
    function = _function(places.unit.module, row, arrays)
    p = product_of(row.attrs, row.type, x)
    n, work = n_blocks(row.attrs, row.type, x), row.type.size * p.k
    pointers = [a.pointer for a in arrays]
    places.writer.shares |= call_shared(places.unit, function, pointers, n, work, PARTS)
    places.bind(k, out)


def _function(module: ir.Module, row: Row, arrays: list[Array]) -> ir.Function:
    """``void blocks(i8** arguments, i64 first, i64 last)``, the same for all rows of that kind."""
    types = " ".join(str(a.type) for a in arrays)
    name = f"ckad_blocks({row.attrs})({types})"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, SIGNATURE)
    block, first, last = function.args
    b = ir.IRBuilder(function.append_basic_block())
    given = [a._replace(pointer=b.load(b.gep(block, [whole(at)]))) for at, a in enumerate(arrays)]
    emit_blocks(b, row.attrs, given, first, last)
    b.ret_void()
    return function
