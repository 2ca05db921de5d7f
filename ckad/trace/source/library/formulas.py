"""Functions of numbers, arrays and lists of these alone: nothing else need be looked for in such a
call, which is what most calls of libraries are."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from types import BuiltinFunctionType, MethodType
from typing import Any

import numpy as np

from ckad.trace import dispatch
from ckad.trace.memory.context import current, mark_place
from ckad.trace.source import effects
from ckad.trace.source.actions import by_builtin
from ckad.trace.source.memory.contents import new, read_deep
from ckad.trace.source.names.frame import ledger
from ckad.trace.source.outside.judge import SIMPLE, is_simple
from ckad.trace.source.outside.kinds import CONTAINERS
from ckad.trace.source.text import shown
from ckad.trace.source.values import lifted, untranslated, weakened
from ckad.trace.values.tracer import Tracer

#: The classes of what computes from numbers and arrays, as far as they are known.
CLASSES = frozenset({*SIMPLE, BuiltinFunctionType, MethodType, type})
_NUMBERS = frozenset({Tracer, int, float})
_CHOICES = frozenset({int, bool, type(None)})
_PLAIN = frozenset({int, float})
_OF_PLAIN = (abs, min, max, round, pow, range, int, float)
#: NumPy's functions that are Python's builtins, too, and what asks an array.
_BUILTINS: frozenset[Any] = frozenset({np.array, np.asarray, np.zeros, np.empty, np.arange, len})
#: Element types by their names in Python.
_DTYPES = frozenset({float, int, np.float64, np.int64})
#: How deep lists of numbers are looked into.
_DEEPEST = 4


def of_numbers(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What such a function gives; NotImplemented if it is, or is given, something else."""
    kinds = set(map(type, args))
    if not options and kinds <= _PLAIN and (is_math(callee) or callee in _OF_PLAIN):
        return callee(*args)
    if isinstance(callee, type) or (options and not all(map(_is_choice, options.values()))):
        return NotImplemented
    if kinds <= _NUMBERS:
        return _formula(callee, args, options) if _is_taken(callee, kinds) else NotImplemented
    found: set[type] = set()
    if callee is len or is_math(callee) or not _are_numbers(args, found):
        return NotImplemented
    if ledger().object_arrays or not _is_taken(callee, found):
        return NotImplemented
    read_deep(tuple(args))
    return _formula(callee, args, options)


def _is_choice(x: Any) -> bool:
    return type(x) in _CHOICES or (type(x) is type and x in _DTYPES)


def _are_numbers(xs: Iterable[Any], kinds: set[type], depth: int = _DEEPEST) -> bool:
    """Whether all are numbers, arrays, or lists of them that are what they look like; of which
    classes."""
    for x in xs:
        kind = type(x)
        if kind is list or kind is tuple:
            if id(x) in ledger().contents or not depth or not _are_numbers(x, kinds, depth - 1):
                return False
        elif kind not in _NUMBERS:
            return False
        kinds.add(kind)
    return True


def _is_taken(callee: Any, kinds: set[type]) -> bool:
    if type(callee) is MethodType:
        return type(callee.__self__) is Tracer
    return _is_formula(callee) if Tracer in kinds else _makes(callee)


@functools.lru_cache(maxsize=1024)
def _is_formula(callee: Any) -> bool:
    """Whether a function of NumPy or ``math`` does nothing but compute its result."""
    return _is_own(callee) and dispatch.cell(callee, dispatch.LENGTH) is None


@functools.lru_cache(maxsize=1024)
def _makes(callee: Any) -> bool:
    """Whether such a function makes arrays that may be written into."""
    return _is_own(callee) and dispatch.is_always_called(callee)


def _is_own(callee: Any) -> bool:
    is_builtin = type(callee) is BuiltinFunctionType
    known = is_math(callee) or callee in _BUILTINS if is_builtin else is_simple(callee)
    return known and effects.name_of(callee) is None


def is_math(callee: Any) -> bool:
    return type(callee) is BuiltinFunctionType and callee.__module__ in ("math", "cmath")


def _formula(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What it gives for arrays and numbers; NotImplemented where no function is known for them."""
    if isinstance(callee, np.ufunc):
        if options or len(args) != callee.nin:
            return NotImplemented
        return dispatch.call(callee, args, {})
    if type(callee) is MethodType:
        result = untranslated(callee, args, options)
    else:
        counterpart = dispatch.cell(callee)
        if counterpart is None:
            return NotImplemented
        mark_place(current())
        result = counterpart(*args, **options)
    if type(result) is Tracer:
        is_weak = is_math(callee)
        return by_builtin(callee, args, weakened(result)) if is_weak else result
    if type(result) is str:
        return shown(result, args)
    return new(result, args) if isinstance(result, (*CONTAINERS, tuple)) else lifted(result)
