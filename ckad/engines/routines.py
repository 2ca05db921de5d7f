"""Routines as compiled code calls them: their machine code, or Python under the GIL."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

import numpy as np

from ckad.tape.routines import ROUTINES, Routine, read_description
from ckad.tape.types import Type

#: What a routine with a number, and its parts, are called where code is loaded.
SYMBOL, PART = "ckad_routine_", "ckad_part_"
_BODY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_WORD = 8
#: What a routine in Python fails with; the exception itself waits in ``_raised``.
_EXCEPTION = 1
_raised = threading.local()
#: What ctypes has made is code as long as it is referred to.
_callbacks: dict[int, Any] = {}


def address(number: int) -> int:
    """Where compiled code finds a routine."""
    routine = ROUTINES[number]
    if routine.compiled is not None:
        return routine.compiled.address()
    callback = _callbacks.get(number)
    if callback is None:  # of threads that make one at once, all take that of the first
        callback = _callbacks.setdefault(number, _BODY(functools.partial(_call, routine)))
    return int(ctypes.cast(callback, ctypes.c_void_p).value or 0)


def part(number: int) -> int:
    """Where compiled code finds the parts of a routine that has stages."""
    body = ROUTINES[number].compiled
    assert body is not None
    assert body.part is not None
    return body.part()


def failure(number: int, detail: int) -> BaseException:
    """What a routine has failed with."""
    routine = ROUTINES[number]
    if routine.compiled is not None:
        error, message = routine.compiled.errors[detail]
        return error(message)
    raised: BaseException = _raised.error
    del _raised.error
    return raised


def _call(routine: Routine, words: int, arrays: int, work: int) -> int:
    try:
        size = _WORD * ctypes.c_int64.from_address(words).value
        attrs, types = _read(ctypes.string_at(words, size))
        addresses = np.frombuffer(ctypes.string_at(arrays, _WORD * len(types)), np.int64)
        out, *given = map(_array, addresses.tolist(), types)
        operands = [x.copy() for x in given]  # the function may hold on to them
        for x in operands:
            x.flags.writeable = False
        out[...] = routine.run(attrs, *operands)
    except BaseException as error:
        _raised.error = error
        return _EXCEPTION
    return 0


@functools.lru_cache(1024)
def _read(words: bytes) -> tuple[list[int], list[Type]]:
    return read_description(np.frombuffer(words, np.int64).tolist())


def _array(address: int, type: Type) -> np.ndarray:
    """The array at an address, which it does not own."""
    if not type.size:
        return np.empty(type.shape, type.numpy)
    memory = (ctypes.c_byte * type.nbytes).from_address(address)
    return np.ctypeslib.as_array(memory).view(type.numpy).reshape(type.shape)
