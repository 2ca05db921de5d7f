"""Functions that Python runs while a recording is made: what they read is told from their code."""

from __future__ import annotations

import builtins
import collections
import os
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ckad.trace.source.libraries import python_function
from ckad.trace.source.outside.guard import BUILTIN, IMMUTABLE, content
from ckad.trace.source.outside.kinds import CONTAINERS
from ckad.trace.source.outside.purity import (
    ATTRIBUTES,
    UNDEFINED,
    Read,
    is_harmless_text,
    is_pure,
    reads,
)
from ckad.trace.source.outside.watch import Watch

_NUMPY = str(Path(np.__file__).parent) + os.sep
_FUNCTIONS = frozenset({FunctionType, type, *BUILTIN})


def run_by_python(watch: Watch, function: Any) -> None:
    """Note what a function reads, and what the functions do that it calls."""
    _Reader(watch).look_into(function)


class _Unknown(Exception):
    """The function depends on something that cannot be held against its earlier value."""


class _Reader:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.seen: set[int] = set()

    def look_into(self, function: Any) -> None:
        try:
            self._value(function)
        except _Unknown:
            self.watch.give_up(f"{getattr(function, '__qualname__', function)} is run by Python")

    def _value(self, value: Any) -> None:
        kind = type(value)
        if id(value) in self.seen:
            return
        self.seen.add(id(value))
        if kind in IMMUTABLE:
            if kind is str and not is_harmless_text(value):
                raise _Unknown
        elif kind is tuple or kind in CONTAINERS:
            for item in (*value, *value.values()) if isinstance(value, dict) else value:
                self._value(item)
        elif kind is partial:
            for part in ("func", "args", "keywords"):
                self.watch.attribute(value, part)
                self._value(getattr(value, part))
        elif kind is np.ndarray or isinstance(value, np.dtype):
            self.watch.enter(value)
        elif python_function(value) is not None:  # by Numba
            self.watch.guard.parts.append((value, "py_func", python_function(value)))
            self._value(python_function(value))
        elif not (kind in _FUNCTIONS and is_pure(value)):
            self._function(value)

    def _function(self, function: Any) -> None:
        if type(function) is not FunctionType or function.__code__.co_filename.startswith(_NUMPY):
            raise _Unknown
        if function.__code__.co_filename == collections.__file__:  # of a named tuple
            return
        found = reads(function.__code__)
        if found is None or function.__dict__:
            raise _Unknown
        self.watch.function(function)
        self.watch.guard.bare.append(function)
        self._value(function.__defaults__)
        self._value(function.__kwdefaults__)
        for read in found:
            value, attributes = self._look_up(function, read)
            # a function may have been given any attribute
            if attributes and (type(value) in _FUNCTIONS or not ATTRIBUTES.issuperset(attributes)):
                raise _Unknown
            if any(value is x for x in UNDEFINED):
                raise _Unknown
            self._value(value)

    def _look_up(self, function: FunctionType, read: Read) -> tuple[Any, tuple[str, ...]]:
        """The value behind the modules that ``read`` goes through, and its attributes read."""
        value, attributes = self._variable(function, read), read.attributes
        while type(value) is ModuleType and attributes:
            self.watch.attribute(value, attributes[0])
            if attributes[0] not in vars(value):
                raise _Unknown
            value, attributes = vars(value)[attributes[0]], attributes[1:]
        return value, attributes

    def _variable(self, function: FunctionType, read: Read) -> Any:
        if read.scope == "cell":
            closure = function.__closure__ or ()
            cell = closure[function.__code__.co_freevars.index(read.name)]
            self.watch.cell(cell)
            return content(cell)
        return variable(self.watch, function, read.name, _Unknown)


def variable(watch: Watch, function: FunctionType, name: str, missing: type[Exception]) -> Any:
    """What a function finds by a name of its module, or of Python."""
    names: Any = function.__globals__
    watch.name(names, name)
    if name not in names:
        names = vars(builtins)
        watch.name(names, name)
    if type(names) is not dict or name not in names:
        raise missing
    return names[name]
