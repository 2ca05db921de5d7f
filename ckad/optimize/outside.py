"""Numbers that functions read from around them, as arguments of one recording.

What a function reads from its closure and its module is part of its program. Where a program is
compiled for one call, these numbers go in beside the arguments, and the next call finds the program
again though they have changed: the state and the step of a loop around it, mostly.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from ckad.trace.source.libraries import is_library
from ckad.trace.values.tracer import Tracer

Visit = Callable[[Any], Any]
_STORES = ("STORE_DEREF", "DELETE_DEREF", "STORE_GLOBAL", "DELETE_GLOBAL")


def numbers_of(function: Any) -> list[Any]:
    """The floats, and arrays of them, that are read by names."""
    found: list[Any] = []

    def noted(x: Any) -> Any:
        found.append(x)
        return x

    reading(function, noted)
    return found


def with_numbers(function: Any, numbers: Iterable[Any]) -> Any:
    """``function`` that reads others in their place, which it may not write into."""
    others: Iterator[Any] = iter(numbers)
    return reading(function, lambda _: _kept(next(others)))


def reading(function: Any, visit: Visit, within: tuple[Any, ...] = ()) -> Any:
    """``function`` with what ``visit`` gives for each such number."""
    if type(function) is not FunctionType or function in within:
        return function
    within, code, own = (*within, function), function.__code__, not is_library(function.__module__)
    stored = frozenset().union(*(_stored(f.__code__) for f in within))

    def read(x: Any, name: str) -> Any:
        if own and name not in stored and _is_number(x):
            return visit(x)
        return reading(x, visit, within)

    cells = tuple(
        _cell(cell, name, read)
        for cell, name in zip(function.__closure__ or (), code.co_freevars, strict=True)
    )
    around = function.__globals__
    seen = {name: around[name] for name in _names(code) if own and _is_number(around.get(name))}
    seen = {} if stored & around.keys() else seen
    if seen:
        around = {**around, **{name: read(x, name) for name, x in seen.items()}}
    elif all(new is old for new, old in zip(cells, function.__closure__ or (), strict=True)):
        return function  # cells that are compared compare what they hold
    new = FunctionType(code, around, function.__name__, function.__defaults__, cells)
    new.__kwdefaults__, new.__qualname__ = function.__kwdefaults__, function.__qualname__
    vars(new).update(vars(function))
    return new


def _cell(cell: CellType, name: str, read: Callable[[Any, str], Any]) -> CellType:
    try:
        old = cell.cell_contents
    except ValueError:  # nothing is bound yet
        return cell
    new = read(old, name)
    return cell if new is old else CellType(new)


def _is_number(x: Any) -> bool:
    kind = x.dtype.kind if isinstance(x, (np.ndarray, np.floating)) else ""
    return type(x) is float or kind == "f"


def _kept(x: Any) -> Any:
    if isinstance(x, Tracer):
        x.storage.read_only = True
    return x


@lru_cache(maxsize=256)
def _stored(code: CodeType) -> frozenset[str]:
    """Names around a function that it, or a function within it, binds."""
    own = {row.argval for row in dis.get_instructions(code) if row.opname in _STORES}
    inner = (_stored(x) for x in code.co_consts if isinstance(x, CodeType))
    return frozenset(own - set(code.co_cellvars)).union(*inner)


@lru_cache(maxsize=256)
def _names(code: CodeType) -> tuple[str, ...]:
    """Names of its module that it, or a function within it, reads."""
    inner = [_names(x) for x in code.co_consts if isinstance(x, CodeType)]
    found = dict.fromkeys([*code.co_names, *(name for names in inner for name in names)])
    return tuple(name for name in found if not hasattr(builtins, name))
