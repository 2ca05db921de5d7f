"""Functions that Python runs while a recording is made: what they read is told from their code.

Names and attributes in it are looked up as Python will, and noted in the `Watch`. Code that may
read anything else makes the watch give up.
"""

from __future__ import annotations

import builtins
import collections
import inspect
import os
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ckad import trees
from ckad.trace.dispatch import Traced
from ckad.trace.source.libraries import is_library, python_function
from ckad.trace.source.outside.guard import ABSENT, BUILTIN, IMMUTABLE, Guard, content
from ckad.trace.source.outside.kinds import (
    CONTAINERS,
    INERT,
    attributes,
    is_ours,
    is_written,
    users,
)
from ckad.trace.source.outside.purity import (
    ATTRIBUTES,
    UNDEFINED,
    Read,
    is_harmless_text,
    is_pure,
    reads,
)
from ckad.trace.source.outside.watch import Watch

#: The class of what ``functools.lru_cache`` and ``functools.cache`` make.
KEPT = type(lru_cache(len))
_NUMPY = str(Path(np.__file__).parent) + os.sep
_FUNCTIONS = frozenset({FunctionType, type, *BUILTIN})


def run_by_python(watch: Watch, function: Any) -> None:
    """Note what a function reads, and what the functions do that it calls."""
    _Reader(watch).look_into(function)


def constants_of(function: Any) -> Guard | None:
    """What a function reads that Python may run where it is given constants; None if it reads what
    is traced, or may do anything else."""
    read = Watch()
    _Reader(read, keeps=True).look_into(function)
    if read.reason is not None:
        return None
    found = [value for *_, value in (*read.guard.names, *read.guard.cells)]
    is_traced = any(isinstance(x, Traced) for x in trees.flatten(found)[0])
    return None if is_traced else read.guard


#: Modules whose functions compute from what they are given; NumPy's draw under one name.
_COMPUTING = frozenset("math cmath numpy operator itertools functools collections".split())
_DRAWING = "random"
#: Of Python's own functions, those that reach more than they are given.
_REACHING = frozenset(
    "open input eval exec compile getattr globals locals vars id hash __import__".split()
)
#: What tells how a function is called.
OF_CODE = (inspect.signature, inspect.getfullargspec)
#: What every class has.
_OF_CLASSES = frozenset("__module__ __qualname__ __dict__ __weakref__ __doc__ __slots__".split())


def described(watch: Watch, function: Any) -> None:
    """Note what Python tells of how a function is called."""
    function = getattr(function, "__func__", function)
    if is_ours(type(function)):  # which the recording has made
        return None
    if not isinstance(function, FunctionType):
        return watch.give_up(f"the signature of a {type(function).__name__}")
    watch.function(function)
    for name in ("__annotations__", "__wrapped__", "__signature__"):
        watch.attribute(function, name)
    return None


def asked(watch: Watch, x: Any, names: Sequence[str]) -> None:
    """Note what methods of the user's may read, by these names, which Python may run on ``x``.

    What an object that the recording has made holds is known; by name they may look up more.
    """
    kind = type(x)
    if kind in INERT or is_library(kind.__module__):
        return
    for name in names:
        watch.on_class(kind, name)
        method = users(kind, name)
        if method is not ABSENT and not (
            watch.is_own(x)
            and type(method) is FunctionType
            and _looked_up(watch, method, kind)
            and _holds_known(watch, x, _names_in(method.__code__))
        ):
            return watch.give_up(f"{kind.__qualname__}.{name}, which Python runs")


def generated(watch: Watch, function: FunctionType, given: Sequence[Any]) -> None:
    """Note what a generator function may read that Python runs with these arguments."""
    named = _names_in(function.__code__)
    known = _looked_up(watch, function) and all(_is_looked_into(watch, x, named) for x in given)
    if not known:
        watch.give_up(f"{function.__qualname__}, which Python runs")


def _holds_known(watch: Watch, x: Any, named: frozenset[str]) -> bool:
    """Whether all is noted that methods may read of what an object holds: they may have any name
    there."""
    parts = attributes(x).values()
    found = all(is_library(type(part).__module__) for part in parts)
    return found and all(_is_looked_into(watch, part, named) for part in parts)


def equated(watch: Watch, x: Any) -> None:
    """Note what methods of the user's read by which Python tells one object from another."""
    kind: Any = type(x)
    if isinstance(x, tuple) or kind in CONTAINERS:
        for part in (*x, *x.values()) if isinstance(x, dict) else x:
            equated(watch, part)
    if is_library(kind.__module__):
        return
    for name in ("__hash__", "__eq__"):
        watch.on_class(kind, name)
        if not is_written(users(kind, name)):
            asked(watch, x, (name,))
        elif users(kind, name) is not ABSENT:  # by its fields
            for part in attributes(x).values():
                equated(watch, part)


def _looked_up(watch: Watch, function: FunctionType, kind: type = object) -> bool:
    """Note what a function may look up by name, and the functions that it may call, those of the
    class ``kind`` among them; whether that is all that it can depend on beside its arguments."""
    if (function, kind) in watch.looked_up:
        return True
    watch.looked_up.add((function, kind))
    watch.function(function)
    named = _names_in(function.__code__)
    for cell in function.__closure__ or ():
        watch.cell(cell)
    found = [content(cell) for cell in function.__closure__ or ()]
    found += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for name in named:
        if (part := users(kind, name)) is not ABSENT:
            watch.on_class(kind, name)
            if not _is_part_looked_into(watch, part, kind, named):
                return False
        if name in function.__globals__:
            watch.name(function.__globals__, name)
            found.append(function.__globals__[name])
        elif name in _REACHING:
            return False
    if _DRAWING in named and any(x is np for x in found):
        return False
    return all(_is_looked_into(watch, x, named) for x in found)


def _is_looked_into(watch: Watch, value: Any, named: frozenset[str]) -> bool:
    """Whether all is noted that code may read of a value by these names."""
    kind: Any = type(value)
    if kind is ModuleType:
        return value.__name__ in _COMPUTING
    if isinstance(value, tuple) or kind in CONTAINERS:
        items = (*value, *value.values()) if isinstance(value, dict) else value
        return all(_is_looked_into(watch, x, named) for x in items)
    if isinstance(value, type) and not is_library(value.__module__):
        return _is_class_looked_into(watch, value, named)
    if kind is FunctionType and not is_library(value.__module__):
        return _looked_up(watch, value)
    if not is_library(kind.__module__):
        return watch.is_own(value) and _is_record(watch, value, named)
    known = isinstance(value, type) or is_ours(kind) or watch.is_own(value)
    return known or not callable(value) or is_pure(value)


def _is_class_looked_into(watch: Watch, kind: type, named: frozenset[str]) -> bool:
    if (kind, named) in watch.looked_up:
        return True
    watch.looked_up.add((kind, named))
    bases = [base for base in kind.__mro__ if not is_library(base.__module__)]
    parts = [(name, x) for base in bases for name, x in vars(base).items()]
    plain = {name for name, _ in parts if not name.startswith(("__", "_abc_"))}
    for name in plain | named:
        watch.on_class(kind, name)
    met = [x for name, x in parts if name in plain or hasattr(type(x), "__get__")]
    return all(_is_part_looked_into(watch, x, kind, named) for x in met)


def _is_record(watch: Watch, x: Any, named: frozenset[str]) -> bool:
    """Whether an object that the recording has made holds attributes, and has no methods."""
    bases = [base for base in type(x).__mro__ if not is_library(base.__module__)]
    names = {name for base in bases for name in vars(base)}
    plain = all(name == "__init__" or name in _OF_CLASSES for name in names)
    return plain and all(_is_looked_into(watch, part, named) for part in attributes(x).values())


def _is_part_looked_into(watch: Watch, part: Any, kind: type, named: frozenset[str]) -> bool:
    """The same of what a class has by a name."""
    if type(part) is property:
        part = part.fget
    elif type(part) in (staticmethod, classmethod):
        part = part.__func__
    if type(part) is FunctionType:
        return _looked_up(watch, part, kind)
    if hasattr(type(part), "__get__"):
        return not callable(getattr(part, "func", None))
    return _is_looked_into(watch, part, named)


def _names_in(code: CodeType) -> frozenset[str]:
    inner = [_names_in(x) for x in code.co_consts if isinstance(x, CodeType)]
    return frozenset(code.co_names).union(*inner)


class _Unknown(Exception):
    """The function depends on something that cannot be held against its earlier value."""


class _Reader:
    def __init__(self, watch: Watch, keeps: bool = False) -> None:
        self.watch = watch
        self.keeps = keeps  # whether it may call what keeps results
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
        elif kind is KEPT and self.keeps:
            self._value(value.__wrapped__)
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
