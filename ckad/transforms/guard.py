"""What a function read from outside when it was recorded, held against what it would read now."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from operator import is_
from pathlib import Path
from types import BuiltinFunctionType, CellType, EllipsisType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

from ckad.trace.source.libraries import python_function
from ckad.trace.source.names.reader import definition_of
from ckad.trace.source.purity import (
    ATTRIBUTES,
    INDEXED,
    UNDEFINED,
    Read,
    is_harmless_text,
    is_pure,
    reads,
)

#: A function that reads more than this from arrays, in bytes, is recorded at each call,
LARGEST = 2**16
#: and so is one that reads more values.
MOST = 256
_ABSENT = object()
_OWN = tuple(str(Path(file).parent) + os.sep for file in (Path(__file__).parent, np.__file__))
_NUMBERS = frozenset(t for t in np.sctypeDict.values() if np.dtype(t).kind in "fiubc")
_IMMUTABLE = _NUMBERS | {int, float, complex, bool, str, NoneType, EllipsisType}
_FUNCTIONS = frozenset({BuiltinFunctionType, FunctionType, type, type(np.sum)})
_FUNCTION_PARTS = ("__code__", "__defaults__", "__kwdefaults__")
_PARTIAL_PARTS = ("func", "args", "keywords")


class Unwatchable(Exception):
    """The function depends on something that cannot be held against its earlier value."""


class Guard:
    """The values that a function depends on besides its arguments.

    Everything is compared by identity, what can be changed in place by its contents as well.
    Unwatchable is raised for a function that may depend on, or change, anything else.
    """

    def __init__(self, function: Any) -> None:
        self._names: list[tuple[Mapping[str, Any], str, Any]] = []
        self._cells: list[tuple[CellType, Any]] = []
        self._parts: list[tuple[Any, str, Any]] = []
        self._bare: list[Any] = []  # functions without attributes of their own
        self._containers: list[tuple[Any, tuple[Any, ...]]] = []
        self._arrays: list[tuple[np.ndarray, tuple[Any, ...]]] = []
        self._seen: set[int] = set()
        self._n_values = self._nbytes = 0
        while type(function) is functools.partial:
            self._watch_parts(function, _PARTIAL_PARTS)
            function = function.func
        self._watch_function(function)

    def holds(self) -> bool:
        """Whether the function would read the same values now."""
        for names, name, value in self._names:
            if names.get(name, _ABSENT) is not value:
                return False
        for cell, value in self._cells:
            if _content(cell) is not value:
                return False
        for owner, part, value in self._parts:
            if getattr(owner, part) is not value:
                return False
        for owner in self._bare:
            if owner.__dict__:
                return False
        for container, items in self._containers:
            if len(items) != _length(container) or not all(map(is_, _items(container), items)):
                return False
        return all(_contents(array) == contents for array, contents in self._arrays)

    def _watch(self, value: Any) -> None:
        self._n_values += 1
        if self._n_values > MOST:
            raise Unwatchable
        kind = type(value)
        if kind in _IMMUTABLE:
            if kind is str and not is_harmless_text(value):
                raise Unwatchable
        elif id(value) not in self._seen:
            self._seen.add(id(value))
            self._watch_object(value)

    def _watch_object(self, value: Any) -> None:
        kind = type(value)
        if kind is tuple:
            for item in value:
                self._watch(item)
        elif kind is list or kind is dict:
            self._watch_container(value)
        elif kind is np.ndarray:
            self._watch_array(value)
        elif kind is functools.partial:
            self._watch_parts(value, _PARTIAL_PARTS)
        elif isinstance(value, np.dtype):
            if value.kind not in "fiubc":
                raise Unwatchable
        elif python_function(value) is not None:  # by Numba
            self._parts.append((value, "py_func", python_function(value)))
            self._watch(python_function(value))
        elif not ((kind in _FUNCTIONS or kind is np.ufunc) and is_pure(value)):
            self._watch_function(value)

    def _watch_array(self, value: np.ndarray) -> None:
        self._nbytes += value.nbytes
        if self._nbytes > LARGEST or value.dtype.kind not in "fiubc":
            raise Unwatchable
        self._arrays.append((value, _contents(value)))

    def _watch_container(self, value: Any) -> None:
        if len(value) > MOST:
            raise Unwatchable
        items = tuple(_items(value))
        self._containers.append((value, items))
        for item in items:
            self._watch(item)

    def _watch_parts(self, owner: Any, parts: tuple[str, ...]) -> None:
        for part in parts:
            value = getattr(owner, part)
            self._parts.append((owner, part, value))
            if part != "__code__":
                self._watch(value)
        if owner.__dict__:
            raise Unwatchable
        self._bare.append(owner)

    def _watch_function(self, function: Any) -> None:
        if type(function) is not FunctionType or function.__code__.co_filename.startswith(_OWN):
            raise Unwatchable  # rows recorded in ckad's own code name the place of its caller
        found = reads(function.__code__)
        if found is None:
            raise Unwatchable
        self._watch_parts(function, _FUNCTION_PARTS)
        is_read = definition_of(function) is not None
        for read in found:
            value, attributes = self._look_up(function, read)
            # a function may have been given any attribute
            if attributes and (type(value) in _FUNCTIONS or not ATTRIBUTES.issuperset(attributes)):
                raise Unwatchable
            if not (is_read and any(value is x for x in (*UNDEFINED, *INDEXED))):
                self._watch(value)

    def _look_up(self, function: Any, read: Read) -> tuple[Any, tuple[str, ...]]:
        """The value behind the modules that ``read`` goes through, and its attributes read."""
        value, attributes = self._variable(function, read), read.attributes
        while type(value) is ModuleType and attributes:
            self._parts.append((value, "__class__", ModuleType))
            value, attributes = self._name(vars(value), attributes[0]), attributes[1:]
        return value, attributes

    def _variable(self, function: Any, read: Read) -> Any:
        if read.scope == "cell":
            cell = function.__closure__[function.__code__.co_freevars.index(read.name)]
            self._cells.append((cell, _content(cell)))
            return _content(cell)
        if read.name in function.__globals__:
            return self._name(function.__globals__, read.name)
        self._names.append((function.__globals__, read.name, _ABSENT))
        return self._name(function.__builtins__, read.name)

    def _name(self, names: dict[str, Any], name: str) -> Any:
        # a dict of another type may look up anything
        if type(names) is not dict or name not in names:
            raise Unwatchable
        self._names.append((names, name, names[name]))
        return names[name]


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT


def _items(container: Any) -> Any:
    """The items of a list; the keys and the values of a dict."""
    return (*container, *container.values()) if type(container) is dict else container


def _length(container: Any) -> int:
    return len(container) * (2 if type(container) is dict else 1)


def _contents(array: np.ndarray) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.strides, array.tobytes()
