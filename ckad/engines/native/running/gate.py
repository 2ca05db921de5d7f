"""From Python into a program in one step: a builtin function that fills cells and calls the code.

It is compiled once for all programs. What it does for one of them is in a table of int64: the
`Word`s, then (address, value) of each store and (kind, address) of each argument. Stores are done
before each call. An argument is an array whose address is put into a cell, or a number that is put
where the code reads it. Where an argument is something else, nothing is called.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum

import numpy as np
from llvmlite import ir

from ckad import locks
from ckad.engines.native.ir.element import I32, I64, POINTER, Value, whole
from ckad.engines.native.ir.flow import count
from ckad.engines.native.ir.hooks import ENTRY, declared
from ckad.engines.native.running.compiler import compile_module
from ckad.engines.native.values.layout import WORD
from ckad.tape.types import DType, Type

Gate = Callable[..., int]
Pairs = Sequence[tuple[int, int]]
#: The cell of an input or output, its type, and where a small one has a place of its own.
Places = Sequence[tuple[int, Type, "np.ndarray | None"]]
WORDS = I64.as_pointer()
#: What a call gives where an argument is neither an array in C order nor a number, as its kind is.
OTHER = -1
#: Bytes at the begin of each object, the last of them its class, before what is its own.
HEAD = object.__basicsize__
CLASS = HEAD - WORD
#: Of what an array has of its own, the address of its elements is the first (NumPy's ABI).
FLAGS = HEAD + 6 * WORD
IN_ORDER = 0x101  # the flags of arrays in C order, where numbers may lie
FASTCALL = 0x80  # Python's METH_FASTCALL


class Word(IntEnum):
    """The words of a table before its stores."""

    ENTRY = 0  # the address of the code,
    STATE = 1  # and what it is called with
    N_STORES = 2
    N_ARGUMENTS = 3
    ARRAY = 4  # the classes of arrays
    FLOAT = 5  # and of numbers, Python's
    FLOAT64 = 6  # and NumPy's
    FLAGS = 7


class Kind(IntEnum):
    """What an argument is."""

    ARRAY = 0
    NUMBER = 1  # float64


class _Method(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def opened(
    entry: int,
    state: int,
    fixed: Mapping[int, int],
    begun: Sequence[tuple[int, np.ndarray]],
    inputs: Places,
    outputs: Places,
) -> tuple[Gate, np.ndarray] | None:
    """What runs a program on its inputs, and the arrays for its outputs; its table, which has to
    outlive it. None where Python or NumPy lay their objects out in another way.

    ``fixed`` are cells of the state with what they hold at first, ``begun`` addresses of cells with
    what lies there from one to the next.
    """
    method = _method()
    if method is None:
        return None
    stores = [(state + WORD * cell, x) for cell, x in fixed.items()]
    for first, values in begun:
        stores += [(first + WORD * k, x) for k, x in enumerate(values.tolist())]
    arguments: list[tuple[int, int]] = []
    for cell, type, own in inputs:
        if own is not None and type.dtype is DType.F64 and not type.shape:
            arguments.append((Kind.NUMBER, own.ctypes.data))
        else:
            arguments.append((Kind.ARRAY, state + WORD * cell))
    arguments += [(Kind.ARRAY, state + WORD * cell) for cell, _, _ in outputs]
    table = _table(entry, state, stores, arguments)
    return _builtin(method, table), table


def _table(entry: int, argument: int, stores: Pairs, arguments: Pairs) -> np.ndarray:
    pairs = [int(x) for pair in (*stores, *arguments) for x in pair]
    classes = id(np.ndarray), id(float), id(np.float64)
    counts = len(stores), len(arguments)
    return np.array([entry, argument, *counts, *classes, IN_ORDER, *pairs], np.int64)


def _builtin(method: _Method, table: np.ndarray) -> Gate:
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    make = new(("PyCFunction_NewEx", ctypes.pythonapi))
    made: Gate = make(ctypes.addressof(method), int(table.ctypes.data), None)
    return made


_definition: list[_Method | None] = []
_lock = locks.lock()  # held while it is found, so that all threads have the same


def _method() -> _Method | None:
    """The builtin's definition, if it does here what it should."""
    if not _definition:
        with _lock:
            if not _definition:
                _definition.append(_tried())
    return _definition[0]


def _tried() -> _Method | None:
    library = compile_module(b"gate", _module)
    method = _Method(b"run", library.address("gate"), FASTCALL, None)
    # Builtins point to their definition without holding it, and to the code. Even to free one, and
    # to look for cycles that it is in, the definition is read: neither is ever freed.
    for kept in (library, method):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return method if _works(method, library.address("trial")) else None


def _works(method: _Method, trial: int) -> bool:
    """Whether objects lie as the code takes them to: an array and two numbers are handed in."""
    seen, x = np.zeros(4, np.int64), np.arange(5.0)
    at = int(seen.ctypes.data)
    kinds = [(Kind.ARRAY, at), (Kind.NUMBER, at + 8), (Kind.NUMBER, at + 16)]
    table = _table(trial, at, [(at + 24, 7)], kinds)
    run = _builtin(method, table)
    if run(x, 1.5, np.float64(2.5)) != 0 or seen[0] != x.ctypes.data or seen[3] != 8:
        return False
    numbers = seen[1:3].view(np.float64)
    if numbers.tolist() != [1.5, 2.5] or run(x, x[3], np.array(4.5)) != 0:
        return False
    others = (x[::2], 1.5, 2.5), (1.5, 1.5, 2.5), (x, 1, 2.5), (x, 1.5)
    refuses = all(run(*other) == OTHER for other in others)
    del table  # until here it is read
    return refuses and numbers.tolist() == [3.0, 4.5]


# --- the code -------------------------------------------------------------------------------------


def _module() -> ir.Module:
    module = ir.Module("gate")
    _write_trial(module)
    function = ir.Function(module, ir.FunctionType(POINTER, [POINTER, POINTER, I64]), "gate")
    b = ir.IRBuilder(function.append_basic_block())
    own, given, n = function.args
    as_address = declared(module, "PyLong_AsVoidPtr", ir.FunctionType(POINTER, [POINTER]))
    table = b.bitcast(b.call(as_address, [own]), WORDS)
    other = function.append_basic_block("other")
    n_stores = _at(b, table, Word.N_STORES)
    stores = b.gep(table, [whole(len(Word))])
    arguments = b.gep(stores, [b.shl(n_stores, whole(1))])
    _require(b, b.icmp_signed("==", n, _at(b, table, Word.N_ARGUMENTS)), other)
    with count(b, whole(0), n) as k:
        pair = b.gep(arguments, [b.shl(k, whole(1))])
        x = b.load(b.gep(b.bitcast(given, WORDS), [k]))
        _require(b, _is_like(b, table, x, _at(b, pair, 0)), other)
        b.store(_found(b, table, x, _at(b, pair, 0)), _words(b, _at(b, pair, 1)))
    with count(b, whole(0), n_stores) as k:
        pair = b.gep(stores, [b.shl(k, whole(1))])
        b.store(_at(b, pair, 1), _words(b, _at(b, pair, 0)))
    run = b.inttoptr(_at(b, table, Word.ENTRY), ENTRY.as_pointer())
    status = b.call(run, [b.inttoptr(_at(b, table, Word.STATE), POINTER)])
    nothing = ir.Constant(POINTER, None)
    is_set = b.call(declared(module, "PyErr_Occurred", ir.FunctionType(POINTER, [])), [])
    with b.if_then(b.icmp_unsigned("!=", is_set, nothing), likely=False):
        b.ret(nothing)
    as_int = declared(module, "PyLong_FromLongLong", ir.FunctionType(POINTER, [I64]))
    b.ret(b.call(as_int, [b.sext(status, I64)]))
    b.position_at_end(other)
    b.ret(b.call(as_int, [whole(OTHER)]))
    return module


def _is_like(b: ir.IRBuilder, table: Value, x: Value, kind: Value) -> Value:
    """Whether an object is what an argument has to be."""
    classes = Word.ARRAY, Word.FLOAT, Word.FLOAT64
    is_array, *is_number = (_is_a(b, table, x, word) for word in classes)
    wants_number = b.icmp_signed("==", kind, whole(Kind.NUMBER))
    fits = b.or_(is_array, b.and_(wants_number, b.or_(*is_number)))
    # only arrays have flags; of anything else the table's own are read
    own = b.ptrtoint(b.gep(table, [whole(Word.FLAGS)]), I64)
    place = b.select(is_array, b.add(x, whole(FLAGS)), own)
    flags = b.load(b.inttoptr(place, I32.as_pointer()))
    one = ir.Constant(I32, IN_ORDER)
    return b.and_(fits, b.icmp_signed("==", b.and_(flags, one), one))


def _found(b: ir.IRBuilder, table: Value, x: Value, kind: Value) -> Value:
    """The address of an array's elements; the number that an object is, or an array holds."""
    # where an array has the address of its elements, a number has itself
    place = b.add(x, whole(HEAD))
    wants_number = b.icmp_signed("==", kind, whole(Kind.NUMBER))
    is_inside = b.and_(wants_number, _is_a(b, table, x, Word.ARRAY))
    return _at(b, _words(b, b.select(is_inside, _at(b, _words(b, place), 0), place)), 0)


def _is_a(b: ir.IRBuilder, table: Value, x: Value, word: Word) -> Value:
    """Whether an object is of the class that is that word of the table."""
    return b.icmp_signed("==", _at(b, _words(b, x), CLASS // WORD), _at(b, table, word))


def _require(b: ir.IRBuilder, condition: Value, other: ir.Block) -> None:
    good = b.append_basic_block()
    b.cbranch(condition, good, other)
    b.position_at_end(good)


def _words(b: ir.IRBuilder, address: Value) -> Value:
    return b.inttoptr(address, WORDS)


def _at(b: ir.IRBuilder, words: Value, k: int) -> Value:
    return b.load(b.gep(words, [whole(k)]))


def _write_trial(module: ir.Module) -> None:
    """``i32 trial(cells)``: counts the last one up."""
    function = ir.Function(module, ENTRY, "trial")
    b = ir.IRBuilder(function.append_basic_block())
    cell = b.gep(b.bitcast(function.args[0], WORDS), [whole(3)])
    b.store(b.add(b.load(cell), whole(1)), cell)
    b.ret(ir.Constant(I32, 0))
