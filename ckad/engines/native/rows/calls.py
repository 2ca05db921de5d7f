"""CALL: a routine by its address, on arrays in memory; its stages are shared by threads."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ckad.engines.native.ir.element import I32, I64, POINTER, Array, Value, whole
from ckad.engines.native.ir.hooks import declared
from ckad.engines.native.ir.state import Cell, Status
from ckad.engines.native.ir.unit import internal
from ckad.engines.native.nests.emit import SIGNATURE as PASS
from ckad.engines.native.nests.threads import PARTS, call_shared
from ckad.engines.native.rows.places import Places
from ckad.engines.routines import PART, SYMBOL
from ckad.tape.routines import description, routine_of, words_of
from ckad.tape.row import Row
from ckad.tape.types import DType, Type

_BODY = ir.FunctionType(I32, [POINTER, POINTER, POINTER])
_PART = ir.FunctionType(I32, [POINTER, POINTER, POINTER, I64, I64, I64])


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
    arguments = [_words(b, words), b.bitcast(addresses, POINTER), work]
    stages = routine.compiled.stages(attrs, *types[1:]) if routine.compiled else ()
    for stage, (n, cost) in enumerate(stages):
        part = _part(b.module, routine.number, stage)
        code.writer.shares |= call_shared(unit, part, arguments, n, cost, PARTS)
    if stages:
        return
    body = declared(b.module, f"{SYMBOL}{routine.number}", _BODY)
    status = b.call(body, arguments)
    failed = b.icmp_signed("!=", status, ir.Constant(I32, 0))
    with b.if_then(failed, likely=False):
        unit.put(Cell.DETAIL, b.sext(status, I64))
        unit.fail(Status.CALL, place)


def _part(module: ir.Module, number: int, stage: int) -> ir.Function:
    """``void f(i8** arguments, i64 first, i64 last)``: units of a stage."""
    name = f"ckad_stage({number}, {stage})"
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, PASS)
    block, first, last = function.args
    b = ir.IRBuilder(function.append_basic_block())
    given = [b.load(b.gep(block, [whole(at)])) for at in range(3)]
    b.call(declared(module, f"{PART}{number}", _PART), [*given, whole(stage), first, last])
    b.ret_void()
    return function


def _words(b: ir.IRBuilder, words: Sequence[int]) -> Value:
    """The address of constants."""
    type = ir.ArrayType(I64, max(1, len(words)))
    name = f"ckad_words({','.join(map(str, words))})"
    if name not in b.module.globals:
        place = ir.GlobalVariable(b.module, type, name)
        place.initializer = ir.Constant(type, [*words] or [0])
        place.global_constant, place.linkage = True, "internal"
    return b.bitcast(b.module.globals[name], POINTER)
