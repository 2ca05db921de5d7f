"""CALL: a routine by its address, on arrays in memory."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ckad.engines.native.ir.element import I32, I64, POINTER, Array, Value, whole
from ckad.engines.native.ir.hooks import declared
from ckad.engines.native.ir.state import Cell, Status
from ckad.engines.native.rows.places import Places
from ckad.tape.routines import description, routine_of, words_of
from ckad.tape.row import Row
from ckad.tape.types import DType, Type

#: What a routine with a number is called where code is loaded.
SYMBOL = "ckad_routine_"
_BODY = ir.FunctionType(I32, [POINTER, POINTER, POINTER])


def emit_routine(code: Places, row: Row, arrays: Sequence[Array], place: int) -> None:
    """Call the routine of ``row`` on its result and operands; stop at ``place`` if it fails."""
    b, unit, attrs = code.b, code.unit, row.attrs[1:]
    types = [x.type for x in arrays]
    routine = routine_of(row)
    if routine.compiled is None:
        words, work = description(attrs, types), ir.Constant(POINTER, None)
    else:
        words = words_of(attrs, types[1:])
        nbytes = routine.compiled.workspace(attrs, *types[1:])
        work = code.passing(Type(DType.I64, (-(-nbytes // 8),))).array.pointer
    addresses = unit.alloca(POINTER, len(arrays))
    for n, array in enumerate(arrays):
        b.store(array.pointer, b.gep(addresses, [whole(n)]))
    body = declared(b.module, f"{SYMBOL}{routine.number}", _BODY)
    arguments = [_words(b, words), b.bitcast(addresses, POINTER), work]
    status = b.call(body, arguments)
    failed = b.icmp_signed("!=", status, ir.Constant(I32, 0))
    with b.if_then(failed, likely=False):
        unit.put(Cell.DETAIL, b.sext(status, I64))
        unit.fail(Status.CALL, place)


def _words(b: ir.IRBuilder, words: Sequence[int]) -> Value:
    """The address of constants."""
    type = ir.ArrayType(I64, max(1, len(words)))
    name = f"ckad_words({','.join(map(str, words))})"
    if name not in b.module.globals:
        place = ir.GlobalVariable(b.module, type, name)
        place.initializer = ir.Constant(type, [*words] or [0])
        place.global_constant, place.linkage = True, "internal"
    return b.bitcast(b.module.globals[name], POINTER)
