"""What code reads from outside, if its recording depends on nothing else.

Code may be recorded once for many calls only if every instruction of it computes with what it is
given or with values that it looks up by name, and changes nothing outside. The instructions, names
and functions known to be of that kind are listed here; code with any other is not judged.
"""

from __future__ import annotations

import builtins
import dis
import functools
import math
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path, PurePath
from types import CodeType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ckad.trace import dispatch

F = TypeVar("F", bound=Callable[..., Any])

#: Instructions of CPython 3.11 to 3.13 that reach nothing but the stack and local variables.
INSTRUCTIONS = frozenset(
    """BINARY_OP BINARY_SLICE BINARY_SUBSCR BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_SLICE
    BUILD_STRING BUILD_TUPLE CACHE CALL CALL_FUNCTION_EX CALL_KW COMPARE_OP CONTAINS_OP
    CONVERT_VALUE COPY COPY_FREE_VARS DELETE_FAST DELETE_SUBSCR DICT_MERGE DICT_UPDATE END_FOR
    EXTENDED_ARG FORMAT_SIMPLE FORMAT_VALUE FORMAT_WITH_SPEC FOR_ITER GET_ITER GET_LEN
    JUMP_BACKWARD JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP KW_NAMES
    LIST_APPEND LIST_EXTEND LIST_TO_TUPLE LOAD_ASSERTION_ERROR LOAD_CLOSURE LOAD_DEREF LOAD_FAST
    LOAD_FAST_AND_CLEAR LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST LOAD_GLOBAL MAKE_CELL MAKE_FUNCTION
    MAP_ADD NOP POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE
    POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE
    POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE
    POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE POP_TOP PRECALL
    PUSH_NULL RAISE_VARARGS RERAISE RESUME RETURN_GENERATOR RETURN_VALUE SET_FUNCTION_ATTRIBUTE
    STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_SLICE STORE_SUBSCR SWAP TO_BOOL
    UNARY_INVERT UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE UNPACK_EX UNPACK_SEQUENCE
    YIELD_VALUE""".split()
)
ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
CONSTANT = ("LOAD_CONST", "RETURN_CONST")
#: Of CALL_INTRINSIC_1: the end of a generator, unary plus, a list turned into a tuple.
INTRINSICS = (3, 5, 6)

#: Attributes of arrays, numbers, ufuncs, lists, tuples and dicts that reach nothing else.
ATTRIBUTES = frozenset(
    """T all any append appendleft argmax argmin astype at accumulate clear clip compress conj
    conjugate copy count cumprod cumsum diagonal dot dtype extend fill flat flatten get imag index
    insert item items itemsize keys mT max mean min nbytes ndim nonzero outer pop popitem popleft
    prod ravel real reduce remove repeat reshape reverse rotate round searchsorted setdefault
    shape size sort squeeze std sum swapaxes take tolist trace transpose update values
    var""".split()
)

_BUILTINS = """abs all any bool callable complex dict divmod enumerate filter float int isinstance
    len list map max min pow range reversed round slice sorted sum tuple zip ArithmeticError
    AssertionError IndexError KeyError NotImplementedError RuntimeError TypeError ValueError
    ZeroDivisionError"""
_NUMPY = """bool_ broadcast_shapes complex64 complex128 float32 float64 floating geomspace indices
    int32 int64 integer isscalar ix_ logspace number ravel_multi_index triu_indices tril_indices
    unravel_index"""
#: Callables that compute from their arguments alone, beside those that have a traced counterpart.
PURE: set[Any] = {
    *(getattr(builtins, name) for name in _BUILTINS.split()),
    *(getattr(np, name) for name in _NUMPY.split()),
    *(x for x in vars(math).values() if callable(x) and getattr(x, "__module__", "") == "math"),
    deque,
    *(Path, PurePath),
    functools.reduce,
    np.fft.fftfreq,
    np.fft.rfftfreq,
    *(re.findall, re.split, re.sub),
}
#: What these give is not determined by their arguments, but in functions that are run from source.
UNDEFINED = (np.empty, np.empty_like, np.ndarray, globals, locals, eval, exec, hasattr)
#: What computes from an index alone.
INDEXED = (np.mgrid, np.ogrid, np.r_, np.c_, np.s_, np.index_exp)


def pure(function: F) -> F:
    """Decorator: a recording through ``function`` depends on its arguments alone."""
    PURE.add(function)
    return function


def is_pure(function: Any) -> bool:
    """Whether a hashable callable is known to compute from its arguments alone."""
    if function in UNDEFINED:
        return False
    if function in PURE or (function is not type and dispatch.knows(function)):
        return True
    numba = sys.modules.get("numba")  # it is not imported for this
    return numba is not None and function is numba.prange


class Read(NamedTuple):
    """A value that code takes from outside by name, and the attributes it asks of it at once."""

    scope: str  # "global" or "cell"
    name: str
    attributes: tuple[str, ...]


class _Unknown(Exception):
    """The code has something that is not known to be harmless."""


@lru_cache(maxsize=1024)
def reads(code: CodeType) -> tuple[Read, ...] | None:
    """What ``code`` reads from outside; None if it may do anything else there."""
    try:
        return tuple(dict.fromkeys(_reads(code, frozenset(code.co_freevars))))
    except _Unknown:
        return None


def _reads(code: CodeType, outer: frozenset[str]) -> Iterator[Read]:
    """The reads of ``code`` and the code in it; ``outer`` are its variables from outside of all."""
    rows = list(dis.get_instructions(code))
    in_chain = 0
    for k, row in enumerate(rows):
        if row.opname == "LOAD_GLOBAL" or (row.opname == "LOAD_DEREF" and row.argval in outer):
            scope = "global" if row.opname == "LOAD_GLOBAL" else "cell"
            attributes = _attributes_from(rows, k + 1)
            in_chain = k + len(attributes)
            yield Read(scope, row.argval, attributes)
        elif k > in_chain or row.opname not in ATTRIBUTE:
            _check(rows, k, outer)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _reads(constant, outer.intersection(constant.co_freevars))


def _attributes_from(rows: list[dis.Instruction], k: int) -> tuple[str, ...]:
    """The names of the attributes loaded from row ``k`` on, each from the one before."""
    names = []
    # where a jump arrives the value below may be another one
    while rows[k].opname in ATTRIBUTE and not rows[k].is_jump_target:
        names.append(rows[k].argval)
        k += 1
    return tuple(names)


def _check(rows: list[dis.Instruction], k: int, outer: frozenset[str]) -> None:
    row = rows[k]
    name, argument = row.opname, row.argval
    if name in ATTRIBUTE:
        harmless = argument in ATTRIBUTES
    elif name in CONSTANT:
        harmless = isinstance(argument, CodeType) or is_harmless_text(argument)
    elif name == "STORE_DEREF":
        harmless = argument not in outer
    elif name == "IS_OP":
        harmless = not row.is_jump_target and _is_singleton(rows[k - 1])
    elif name == "CALL_INTRINSIC_1":
        harmless = row.arg in INTRINSICS
    else:
        harmless = name in INSTRUCTIONS
    if not harmless:
        raise _Unknown


def _is_singleton(row: dis.Instruction) -> bool:
    """Whether it loads None, True or False: which other objects are one and the same is chance."""
    return row.opname == "LOAD_CONST" and (row.argval is None or isinstance(row.argval, bool))


def is_harmless_text(constant: Any) -> bool:
    """Whether no ``%`` can make a text of an object's address with it."""
    return "%" not in str(constant)
