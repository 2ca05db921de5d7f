"""The user's classes: how objects are made, and the methods that Python calls by itself.

``Sim(n)``, ``a + b``, ``a[i] = x`` and properties run functions of the user. They are run from
their source like any other, so that loops in them are recorded, and what they change is noted.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import DynamicClassAttribute, FunctionType
from typing import Any

import numpy as np

from ckad.errors import TraceError, UnrecordableError, UnsupportedFunctionError
from ckad.trace.dispatch import Traced
from ckad.trace.source.libraries import is_library
from ckad.trace.source.names import instances
from ckad.trace.source.names.closures import OWN_CLASS, Closure, call_from_source
from ckad.trace.source.names.frame import MISSING, Frame, depth_of, ledger, made, region
from ckad.trace.source.names.reader import definition_of
from ckad.trace.source.outside.guard import ABSENT, IMMUTABLE
from ckad.trace.source.outside.kinds import is_written, users
from ckad.trace.source.outside.watch import watch

_NAMES = """add sub mul truediv floordiv mod pow matmul lshift rshift""".split()
_BITWISE = {"and_": "and", "or_": "or", "xor": "xor"}
_METHODS = {getattr(operator, n): n for n in _NAMES} | {
    getattr(operator, f): n for f, n in _BITWISE.items()
}
_IN_PLACE = {getattr(operator, f"i{n}"): n for n in [*_NAMES, *_BITWISE.values()]}
_COMPARISONS = {getattr(operator, n): f"__{n}__" for n in ("eq", "ne", "lt", "le", "gt", "ge")}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_UNARY = {getattr(operator, n): f"__{n}__" for n in ("neg", "pos", "invert")}


def _found(kind: type, name: str) -> Any:
    """What a class of the user has by a name, not bound to an object; None for other classes."""
    if watched := watch():
        watched.on_class(kind, name)
    return None if (found := users(kind, name)) is ABSENT else found


Method = FunctionType | Closure


def _followed(function: Any) -> Method | None:
    if type(function) is Closure:
        return function
    known = type(function) is FunctionType and definition_of(function) is not None
    return function if known else None


def method(owner: Any, name: str) -> Method | None:
    """The user's method that Python calls by itself on ``owner``, if it is run from source."""
    return _followed(_of(owner, name))


def _of(owner: Any, name: str) -> Any:
    """What the class of an object has by a name; None for classes of libraries."""
    kind: type = type(owner)
    if is_library(kind.__module__):
        return None
    if watched := watch():
        watched.object(owner)
    return _found(kind, name)


def _left_to_python(owner: Any, name: str) -> None:
    """Python runs a method of the user by itself: what it reads is not known."""
    if watched := watch():
        watched.give_up(f"{type(owner).__qualname__}.{name}, which Python runs")


def invoke(owner: Any, name: str, *args: Any) -> Any:
    """The result of a method that Python calls by itself; MISSING if it is none of the user's."""
    found = _of(owner, name)
    if found is None:
        return MISSING
    function = _followed(found)
    if function is not None:
        return call_from_source(function, (owner, *args), {})
    _left_to_python(owner, name)
    return MISSING


#: What Python asks of an object by a method of its class, whatever that gives.
_BY_BUILTIN: dict[Any, str] = {
    **{abs: "__abs__", round: "__round__", format: "__format__"},
    **{len: "__len__", reversed: "__reversed__"},
}
#: The same where it takes only a number, or a text.
_AS_BUILTIN: dict[Any, str] = {
    **{float: "__float__", int: "__int__", complex: "__complex__"},
    **{str: "__str__", repr: "__repr__"},
}


def by_builtin(function: Any, args: Sequence[Any]) -> Any:
    """``abs(x)`` of an object of the user's; MISSING of anything else."""
    name = _BY_BUILTIN.get(function) if args else None
    if function is format and len(args) == 1:
        args = (args[0], "")
    return MISSING if name is None else invoke(args[0], name, *args[1:])


def as_builtin(function: Any, args: Sequence[Any]) -> Any:
    """What ``float(x)`` makes a number of, an object of the user's: another number."""
    name = _AS_BUILTIN.get(function) if len(args) == 1 else None
    return MISSING if name is None else invoke(args[0], name)


def verdict(x: Any) -> Any:
    """What a method of the user says of the truth of ``x``; None where there is none."""
    kind: type = type(x)
    for name in ("__bool__", "__len__"):
        if method(x, name) is not None:
            return invoke(x, name)
        if not is_library(kind.__module__) and _found(kind, name) is not None:
            _left_to_python(x, name)
            return None
    return None


# --- operators -----------------------------------------------------------------------------------


def operated(function: Callable[..., Any], x: Any, y: Any) -> Any:
    """``x op y`` by methods of the user; MISSING where there are none."""
    if is_library(type(x).__module__) and is_library(type(y).__module__):
        return MISSING
    compares = function in _COMPARISONS
    name = _IN_PLACE.get(function) or _METHODS.get(function) or function.__name__
    other = _MIRRORED.get(name, name) if compares else f"r{name}"
    ways = [(x, f"__{name}__", y), (y, f"__{other}__", x)]
    if type(y) is not type(x) and issubclass(type(y), type(x)):
        ways.reverse()
    if function in _IN_PLACE:
        ways.insert(0, (x, f"__i{name}__", y))
    names = _COMPARISONS.values() if compares else [way[1] for way in ways]
    return _unless_python_does(_first(ways), names, x, y)


def _unless_python_does(result: Any, names: Iterable[str], x: Any, y: Any) -> Any:
    """``result`` of an operator; where it is MISSING, Python asks the operands."""
    if result is MISSING:
        for owner in (x, y):
            for name in names:
                if _of(owner, name) is not None:
                    _left_to_python(owner, name)
    return result


def _first(ways: Sequence[tuple[Any, str, Any]]) -> Any:
    for owner, name, other in ways:
        if is_library(type(owner).__module__):
            if hasattr(type(owner), name) and not _defers(owner, other):
                return MISSING  # Python asks this one first
            continue
        result = invoke(owner, name, other.item() if isinstance(other, np.generic) else other)
        if result is not MISSING and result is not NotImplemented:
            return result
    return MISSING


def _defers(x: Any, other: Any) -> bool:
    """Whether a number, or an array that is told to, leaves an operator to the user's object."""
    if type(x) in (int, float, bool) or getattr(type(other), "__array_ufunc__", x) is None:
        return True
    number: Any = x
    return isinstance(x, (np.generic, Traced)) and np.ndim(number) == 0


def operated_on(function: Callable[..., Any], x: Any) -> Any:
    """``op x`` by a method of the user; MISSING if there is none."""
    return invoke(x, _UNARY[function])


# --- attributes that are computed ----------------------------------------------------------------

#: What makes attributes of a getter and a setter: ``from enum import *`` puts the second in the
#: place of the first.
_PROPERTIES = (property, enum.property, DynamicClassAttribute)


def _is_property(owner: Any, found: Any, how: str = "__get__") -> bool:
    """Whether a class of the user's has a property, or one of a class that goes on like it."""
    own = next((k for k in _PROPERTIES if isinstance(found, k)), None)
    if own is None or getattr(type(found), how) is not getattr(own, how):
        return False
    return own is property or not isinstance(owner, enum.Enum)


def attribute(owner: Any, name: str) -> Any:
    """The value of a property, or of another attribute that the user's methods compute; MISSING
    if it is none."""
    kind: type = type(owner)
    if is_library(kind.__module__):
        return MISSING
    if watched := watch():
        watched.attribute(owner, name)
    own = name in getattr(owner, "__dict__", ())
    found = _of(owner, name)
    if type(found) is cached_property:
        return MISSING if own else _kept(owner, name, found)
    getter = _followed(found.fget) if _is_property(owner, found) else None
    if getter is not None:
        return call_from_source(getter, (owner,), {})
    if type(found) is property:
        _left_to_python(owner, name)
    if name.startswith("__"):
        return MISSING
    if method(found, "__get__") is not None and not (own and method(found, "__set__") is None):
        return invoke(found, "__get__", owner, kind)
    if own or hasattr(kind, name):
        if found is not None and _of(found, "__get__") is not None:
            _left_to_python(found, "__get__")
        return MISSING
    return invoke(owner, "__getattr__", name)


def _kept(owner: Any, name: str, found: cached_property[Any]) -> Any:
    """What a cached property computes when it is read first; who reads it stores it."""
    getter = _followed(found.func)
    if getter is None or id(owner) not in ledger().made:  # Python stores it for good
        _left_to_python(owner, name)
        return MISSING
    inner = region()
    if inner is not None and inner.depth > depth_of(owner):
        raise UnrecordableError.here(
            f"the body of a loop or branch is the first to read {type(owner).__name__}.{name}, "
            "a cached property: which step computes it is not recorded. Read it before."
        )
    return call_from_source(getter, (owner,), {})


def is_kept(owner: Any, name: str) -> bool:
    """Whether an attribute is a cached property."""
    return type(getattr(type(owner), name, None)) is cached_property


def set_attribute(owner: Any, name: str, value: Any) -> bool:
    """Set a property of the user's; whether it is one."""
    found = _of(owner, name)
    setter = _followed(found.fset) if _is_property(owner, found, "__set__") else None
    if setter is None and type(found) is property:
        _left_to_python(owner, name)
    if setter is not None:
        call_from_source(setter, (owner, value), {})
    return setter is not None or invoke(found, "__set__", owner, value) is not MISSING


# --- making objects ------------------------------------------------------------------------------


def construct(kind: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """A new object, made by the user's ``__init__``; MISSING for any other class."""
    traced = any(isinstance(x, Traced) for x in (*args, *options.values()))
    if traced and issubclass(kind, np.ndarray) and not is_library(kind.__module__):
        raise UnsupportedFunctionError.here(
            f"{kind.__name__} is a class of arrays (of np.ndarray) and is given traced values, "
            "which are of no other class. Keep the array as an attribute of a plain class, "
            "or call functions on plain arrays."
        )
    if type(kind) is enum.EnumType and len(args) == 1 and not options:
        return _member(kind, args[0])
    if is_library(kind.__module__) or type(kind) not in (type, abc.ABCMeta):
        return MISSING
    if hasattr(kind, "_fields") and is_written(_found(kind, "__new__")):
        return kind(*args, **options) if _are_wholes(args, options) else MISSING
    if kind.__new__ is not object.__new__:
        return MISSING
    written = _found(kind, "__init__")
    init = _followed(written)
    after = _followed(_found(kind, "__post_init__")) if init is None else None
    if init is None and not _has_fields(kind, written):
        return MISSING
    by_python = users(kind, "__post_init__") is not ABSENT or not _are_wholes(args, options)
    if init is None and after is None and by_python:
        return MISSING
    _found(kind, "__new__")
    new = object.__new__(kind)
    ledger().made[id(new)] = instances.note(made(new))
    if init is not None:
        call_from_source(init, (new, *args), dict(options))
    else:
        _bind_fields(new, args, options)
        if after is not None:
            call_from_source(after, (new,), {})
    return new


def _are_wholes(args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether a list in buffers is among what a class is given."""
    return instances.holds_wholes((*args, *options.values()))


def _member(kind: Any, value: Any) -> Any:
    """The member of an enumeration that has a known value; MISSING where Python looks for it."""
    found = kind._value2member_map_.get(value, MISSING) if _is_constant(value) else MISSING
    if found is MISSING or kind.__new__ is not enum.Enum.__new__:
        return MISSING
    if not _is_constant(found.value):
        return MISSING
    if watched := watch():
        watched.name(kind._value2member_map_, value)
    return found


def _is_constant(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_constant, value))
    return type(value) in IMMUTABLE and type(value) is not slice


def _has_fields(kind: Any, init: Any) -> bool:
    """Whether Python has written ``__init__``, and it binds fields alone."""
    plain = dataclasses.is_dataclass(kind) and is_written(init)
    plain = plain and is_written(users(kind, "__setattr__"))
    names = {field.name for field in dataclasses.fields(kind)} if plain else set()
    return plain and names == kind.__dataclass_fields__.keys()


def _bind_fields(new: Any, args: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Do what the ``__init__`` of a dataclass does before it calls ``__post_init__``."""
    bound = inspect.signature(type(new).__init__).bind(new, *args, **options)
    for field in dataclasses.fields(new):
        if field.name in bound.arguments:
            value = bound.arguments[field.name]
        elif field.default_factory is not dataclasses.MISSING:
            factory = _followed(field.default_factory)
            given = field.default_factory
            value = made(given() if factory is None else call_from_source(factory, (), {}))
        elif field.default is dataclasses.MISSING:
            continue  # neither given nor bound: ``__post_init__`` does it
        else:
            value = field.default
        object.__setattr__(new, field.name, value)


def parent(frame: Frame) -> Any:
    """``super()`` in a method that is run from its source."""
    function, method_frame = frame.function, frame
    while (outer := method_frame.outer) is not None and OWN_CLASS not in outer.names:
        method_frame = outer
    free, arguments = function.__code__.co_freevars, method_frame.definition.node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    if outer is not None and names:
        return super(outer.names[OWN_CLASS], method_frame.lookup(names[0]))
    if "__class__" not in free or not names or function.__closure__ is None:
        raise TraceError.here("super() is called outside of a method of a class.")
    kind = function.__closure__[free.index("__class__")].cell_contents
    return super(kind, method_frame.lookup(names[0]))


def inverts_equality(x: Any) -> bool:
    """Whether ``x != y`` is what Python makes of the user's ``x == y``."""
    return users(type(x), "__ne__") is ABSENT and users(type(x), "__eq__") is not ABSENT
