"""Calls into Python from compiled code: it runs without the GIL and takes it for a moment.

``tick`` calls the hook of the run and so answers Ctrl-C, moves the progress bar and refills action
tables. An exception of the hook ends the run and goes on in Python.
"""

from __future__ import annotations

from llvmlite import ir

from ckad.engines.native.ir.element import I32, I64, POINTER, Value, whole
from ckad.engines.native.ir.state import Cell, Status
from ckad.engines.native.ir.unit import STEPS, Unit, cell, internal

ENTRY = ir.FunctionType(I32, [POINTER])


def declared(module: ir.Module, name: str, type: ir.FunctionType) -> ir.Function:
    return module.globals.get(name) or ir.Function(module, type, name)


def spend(unit: Unit, nanoseconds: Value) -> None:
    """Use up fuel; call Python when there is none left."""
    b = unit.b
    left = b.sub(unit.get(Cell.FUEL), nanoseconds)
    unit.put(Cell.FUEL, left)
    with b.if_then(b.icmp_signed("<=", left, whole(0)), likely=False):
        call_python(unit)


def call_python(unit: Unit) -> None:
    unit.check(unit.b.call(_tick(unit.module), [unit.state]))


def _tick(module: ir.Module) -> ir.Function:
    if "tick" in module.globals:
        return module.globals["tick"]
    function = internal(module, "tick", ENTRY)
    b = ir.IRBuilder(function.append_basic_block())
    (state,) = function.args
    _restore_thread(b, state)
    hook = b.inttoptr(b.load(cell(b, state, Cell.HOOK)), POINTER)
    call = declared(module, "PyObject_CallNoArgs", ir.FunctionType(POINTER, [POINTER]))
    result = b.call(call, [hook])
    failed = b.icmp_unsigned("==", result, ir.Constant(POINTER, None))
    with b.if_then(b.not_(failed)):
        release = ir.FunctionType(ir.VoidType(), [POINTER])
        b.call(declared(module, "Py_DecRef", release), [result])
    _save_thread(b, state)
    b.ret(b.select(failed, ir.Constant(I32, int(Status.STOPPED)), ir.Constant(I32, 0)))
    return function


def write_entry(module: ir.Module, body: ir.Function) -> None:
    """``i32 run(state)``: the whole program, without the GIL."""
    assert body.function_type == STEPS
    function = ir.Function(module, ENTRY, "run")
    b = ir.IRBuilder(function.append_basic_block())
    (state,) = function.args
    _save_thread(b, state)
    zero = whole(0)
    status = b.call(body, [state, zero, zero, zero])
    _restore_thread(b, state)
    b.ret(status)


def write_bare_entry(module: ir.Module, body: ir.Function) -> None:
    """``i32 bare(state)``: the same for threads that Python does not know, which never call it."""
    function = ir.Function(module, ENTRY, "bare")
    b = ir.IRBuilder(function.append_basic_block())
    zero = whole(0)
    b.ret(b.call(body, [function.args[0], zero, zero, zero]))


def _save_thread(b: ir.IRBuilder, state: Value) -> None:
    save = declared(b.module, "PyEval_SaveThread", ir.FunctionType(POINTER, []))
    b.store(b.ptrtoint(b.call(save, []), I64), cell(b, state, Cell.THREAD))


def _restore_thread(b: ir.IRBuilder, state: Value) -> None:
    kind = ir.FunctionType(ir.VoidType(), [POINTER])
    restore = declared(b.module, "PyEval_RestoreThread", kind)
    thread = b.inttoptr(b.load(cell(b, state, Cell.THREAD)), POINTER)
    b.call(restore, [thread])
