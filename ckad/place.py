"""The user's place: the innermost frame that is neither ckad's nor NumPy's."""

from __future__ import annotations

import linecache
import os
import sys
import threading
from enum import Enum
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import NamedTuple, Protocol

import numpy as np

_PACKAGE = str(Path(__file__).parent)
_INTERPRETER = str(Path(__file__).parent / "trace" / "source") + os.sep
_DEMO = str(Path(_PACKAGE) / "demo")
_SITE = Path(np.__file__).parents[1]
_NAMES = ("scipy", "numba", "pandas", "sklearn", "xarray")
#: Libraries whose functions may be followed; what goes wrong in them is told at the user's line.
_LIBRARIES = tuple(str(_SITE / name) + os.sep for name in _NAMES)
_MODULES = ("ckad.", "numpy.", *(f"{name}." for name in _NAMES))
#: What a user has not written, though it may be interpreted.
_SOLVERS = tuple(str(Path(_PACKAGE) / name) + os.sep for name in ("integrate", "optimize"))
_OTHERS = (*_LIBRARIES, _INTERPRETER, *_SOLVERS)
_SKIPPED = (_PACKAGE + os.sep, str(Path(np.__file__).parent) + os.sep, *_LIBRARIES)


class Source(NamedTuple):
    """A place in the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else "<ckad>"


#: The place of rows that no line of the user's made.
NOWHERE = Source("", 0)


class Placed(Protocol):
    """A function of the user, or of a library, that is run from its source."""

    function: FunctionType

    @property
    def place(self) -> Source: ...


class _Running(threading.local):
    def __init__(self) -> None:
        self.functions: list[Placed] = []


_running = _Running()


def running() -> list[Placed]:
    """The functions that are run from their source now, by this thread, the innermost last."""
    return _running.functions


def call_site() -> tuple[int, ...]:
    """The lines at which the running functions are: which call of a function this is."""
    return tuple(function.place.line for function in _running.functions[:-1])


def user_place(above: int = 1) -> Source:
    """File and line of the user's code that is running now; of so many frames it is known that
    they are ckad's."""
    functions = _running.functions
    frame: FrameType | None = sys._getframe(above)
    while frame is not None:
        file = frame.f_code.co_filename
        whose = _WHOSE.get(file) or _whose(file)
        if whose is _Whose.INTERPRETER and functions:
            return _running_place(functions)
        if whose is _Whose.USER and not _is_generated(frame):
            return Source(file, frame.f_lineno)
        frame = frame.f_back
    return NOWHERE


def _running_place(functions: list[Placed]) -> Source:
    """The place of the innermost function that is not a library's; of that, if all are."""
    innermost = functions[-1].place
    file = innermost.file
    if _WHOSE.get(file) is _Whose.USER or is_users_file(file):
        return innermost
    if not file.startswith(_OTHERS):
        return innermost
    places = (function.place for function in reversed(functions))
    return next((x for x in places if not x.file.startswith(_OTHERS)), innermost)


class _Whose(Enum):
    """Who has written a file."""

    USER = 1
    INTERPRETER = 2
    LIBRARY = 3


_WHOSE: dict[str, _Whose] = {}


def _whose(file: str) -> _Whose:
    if len(_WHOSE) >= 1024:
        _WHOSE.clear()
    if file.startswith(_INTERPRETER):
        found = _Whose.INTERPRETER
    elif file.startswith(_SKIPPED) and not file.startswith(_DEMO):
        found = _Whose.LIBRARY
    else:
        found = _Whose.USER
    _WHOSE[file] = found
    return found


def is_users(frame: FrameType) -> bool:
    """Whether a frame runs code that is neither ckad's nor NumPy's, SciPy's or Numba's."""
    return is_users_file(frame.f_code.co_filename) and not _is_generated(frame)


def is_users_file(file: str) -> bool:
    return (_WHOSE.get(file) or _whose(file)) is _Whose.USER


def _library_call() -> tuple[Source, str] | None:
    """Where SciPy or Numba is, if it is what runs now, and what was called of it."""
    frame: FrameType | None = sys._getframe(1)
    place, called = None, ""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_INTERPRETER) and _running.functions:
            for function in reversed(_running.functions):
                if not function.place.file.startswith(_LIBRARIES):
                    break
                place = place or function.place
                module = str(function.function.__module__)
                called = _public(module, function.function.__code__) or called
            break
        if file.startswith(_LIBRARIES):
            place = place or Source(file, frame.f_lineno)
            called = _public(str(frame.f_globals.get("__name__")), frame.f_code) or called
        elif is_users(frame):
            if not _running.functions:  # a library has called what ckad has made
                return None
            break
        frame = frame.f_back
    return None if place is None else (place, called)


def _public(module: str, code: CodeType) -> str:
    """The name by which a library's function is known, "" if it is one of its own."""
    package = module.split("._")[0]
    own = "." not in package or "<locals>" in code.co_qualname or code.co_name[0] in "_<"
    return "" if own else f"{package}.{code.co_name}"


def _is_generated(frame: FrameType) -> bool:
    """Whether it was made of a text, by ckad's dataclasses or within a library."""
    name = frame.f_globals.get("__name__", "")
    return frame.f_code.co_filename == "<string>" and name.startswith(_MODULES)


def at_place(message: str, place: Source | None = None) -> str:
    """``message`` with the user's file, line and source line in front."""
    library = None if place else _library_call()
    place = place or user_place()
    if library is not None:
        message = f"{_named(library[1])}{message} {_inside(library[0])}"
    text = linecache.getline(place.file, place.line).strip()
    quoted = f"\n    {text}" if text else ""
    return f"{place}: {message}{quoted}"


def _named(called: str) -> str:
    return f"ckad has no rule for {called}: " if called else ""


def _inside(library: Source) -> str:
    file = Path(library.file).relative_to(_SITE)
    return (
        f"This happens in {file}:{library.line}, called from here, whose lines cannot be changed: "
        "write what it computes with the functions that docs/numpy.md lists, or compute it outside "
        "of the differentiated function."
    )
