"""The user's classes: attributes, how objects are made, the methods that Python calls by itself.

``Sim(n)``, ``a + b``, ``a[i] = x``, ``a.x`` may run functions of the user. They are run from their
source like any other, so that loops in them are recorded, and what they change is noted.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from ckad.errors import TraceError
from ckad.trace.source import objects
from ckad.trace.source.closures import Closure
from ckad.trace.source.frame import MISSING, Frame, ledger, made
from ckad.trace.source.libraries import is_library
from ckad.trace.source.lookup import found, is_followed, is_users, own
from ckad.trace.source.repeatable import check_implicit
from ckad.trace.where import at_place

_NAMES = """add sub mul truediv floordiv mod pow matmul lshift rshift""".split()
_BITWISE = {"and_": "and", "or_": "or", "xor": "xor"}
_METHODS = {getattr(operator, n): n for n in _NAMES} | {
    getattr(operator, f): n for f, n in _BITWISE.items()
}
_IN_PLACE = {getattr(operator, f"i{n}"): n for n in [*_NAMES, *_BITWISE.values()]}
_COMPARISONS = {getattr(operator, n): f"__{n}__" for n in ("eq", "ne", "lt", "le", "gt", "ge")}
_UNARY = {getattr(operator, n): f"__{n}__" for n in ("neg", "pos", "invert")}


def run(function: Any, *args: Any) -> Any:
    """Call what a class of the user has for Python to call; ``args`` begin with the object."""
    from ckad.trace.source.calls import call

    if type(function) in (FunctionType, Closure):
        return call(function, args, {})
    bind = getattr(type(function), "__get__", None)
    if bind is None:
        return call(function, args[1:], {})
    return call(bind(function, args[0], type(args[0])), args[1:], {})


def method(owner: Any, name: str) -> FunctionType | Closure | None:
    """The user's method that Python calls by itself on ``owner``, if it is run from source."""
    function = own(type(owner), name)
    if _is_run(function):
        return function  # type: ignore[no-any-return]
    check_implicit(function)
    return None


def invoke(owner: Any, name: str, *args: Any) -> Any:
    """The result of a method that Python calls by itself; MISSING if it is none of the user's."""
    function = method(owner, name)
    return MISSING if function is None else run(function, owner, *args)


def verdict(x: Any) -> Any:
    """What a method of the user says of the truth of ``x``; None where there is none."""
    for name in ("__bool__", "__len__"):
        if method(x, name) is not None:
            return invoke(x, name)
        if own(type(x), name) is not MISSING:
            return None
    return None


# --- operators -----------------------------------------------------------------------------------


def operated(function: Callable[..., Any], x: Any, y: Any) -> Any:
    """``x op y`` by methods of the user; MISSING where there are none."""
    if is_library(type(x).__module__) and is_library(type(y).__module__):
        return MISSING
    if function in _COMPARISONS:
        return _first([(x, _COMPARISONS[function], y)])
    name = _IN_PLACE.get(function) or _METHODS[function]
    ways = [(x, f"__{name}__", y), (y, f"__r{name}__", x)]
    if type(y) is not type(x) and issubclass(type(y), type(x)):
        ways.reverse()
    if function in _IN_PLACE:
        ways.insert(0, (x, f"__i{name}__", y))
    return _first(ways)


def _first(ways: Sequence[tuple[Any, str, Any]]) -> Any:
    for owner, name, other in ways:
        if is_library(type(owner).__module__):
            if hasattr(type(owner), name) and type(owner) not in (int, float, bool):
                return MISSING  # Python asks this one first
            continue
        result = invoke(owner, name, other)
        if result is not MISSING and result is not NotImplemented:
            return result
    return MISSING


def operated_on(function: Callable[..., Any], x: Any) -> Any:
    """``op x`` by a method of the user; MISSING if there is none."""
    return invoke(x, _UNARY[function])


# --- attributes ----------------------------------------------------------------------------------


def attribute(owner: Any, name: str) -> Any:
    """``owner.name``."""
    if type(owner) is super:
        return _above(owner, name)
    if not is_users(owner):
        return objects.read(owner, name)
    try:
        hook = own(type(owner), "__getattribute__")
        return attribute_by_rule(owner, name) if hook is MISSING else run(hook, owner, name)
    except AttributeError:
        fallback = own(type(owner), "__getattr__")
        if fallback is MISSING:
            raise
    return run(fallback, owner, name)


def attribute_by_rule(owner: Any, name: str) -> Any:
    """What ``object.__getattribute__`` gives."""
    found = own(type(owner), name)
    if found is not MISSING and not objects.is_stored(owner, name):
        value = _computed(found, owner, name)
        if value is not MISSING:
            return value
    return objects.read(owner, name)


def _computed(found: Any, owner: Any, name: str) -> Any:
    """The value of a property or another descriptor of the user's; MISSING for anything else."""
    if isinstance(found, property) and found.fget is not None:
        return run(found.fget, owner)
    if type(found) is functools.cached_property:
        frame = objects.attributes(owner)
        if frame is not None:
            frame.note_missing(name)
            objects.write(owner, name, value := run(found.func, owner))
            return value
    getter = own(type(found), "__get__")
    return MISSING if getter is MISSING else run(getter, found, owner, type(owner))


def _above(owner: Any, name: str) -> Any:
    """``super().name``."""
    mro = owner.__self_class__.__mro__
    for base in mro[mro.index(owner.__thisclass__) + 1 :]:
        if name in base.__dict__:
            if not is_library(base.__module__):
                value = _computed(base.__dict__[name], owner.__self__, name)
                if value is not MISSING:
                    return value
            break
    return getattr(owner, name)


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """``owner.name = value``."""
    hook = own(type(owner), "__setattr__")
    if hook is not MISSING:
        run(hook, owner, name, value)
    else:
        set_by_rule(owner, name, value)


def set_by_rule(owner: Any, name: str, value: Any) -> None:
    """What ``object.__setattr__`` does."""
    found = own(type(owner), name)
    setter = MISSING if found is MISSING else own(type(found), "__set__")
    if isinstance(found, property) and found.fset is not None:
        run(found.fset, owner, value)
    elif setter is not MISSING:
        run(setter, found, owner, value)
    else:
        objects.write(owner, name, value)


def delete_attribute(owner: Any, name: str) -> None:
    """``del owner.name``."""
    hook = own(type(owner), "__delattr__")
    if hook is not MISSING:
        run(hook, owner, name)
    else:
        delete_by_rule(owner, name)


def delete_by_rule(owner: Any, name: str) -> None:
    """What ``object.__delattr__`` does."""
    found = own(type(owner), name)
    deleter = MISSING if found is MISSING else own(type(found), "__delete__")
    if isinstance(found, property) and found.fdel is not None:
        run(found.fdel, owner)
    elif deleter is not MISSING:
        run(deleter, found, owner)
    else:
        objects.delete(owner, name)


#: What classes have for all objects by the rules above.
RULES: dict[str, Callable[..., Any]] = {
    "__getattribute__": attribute_by_rule,
    "__setattr__": set_by_rule,
    "__delattr__": delete_by_rule,
}


# --- making objects ------------------------------------------------------------------------------


def construct(kind: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What a class of the user gives when it is called; MISSING for any other class."""
    hook = own(type(kind), "__call__")
    if hook is not MISSING:
        from ckad.trace.source.calls import call

        return call(hook, (kind, *args), dict(options))
    return construct_by_rule(kind, args, options)


def construct_by_rule(kind: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What ``type.__call__`` gives."""
    from ckad.trace.source.calls import call

    usual = found(type(kind), "__call__") is type.__dict__["__call__"]
    if is_library(kind.__module__) or not usual:
        return MISSING
    maker, init = own(kind, "__new__"), own(kind, "__init__")
    if maker is not MISSING:
        new = call(getattr(maker, "__func__", maker), (kind, *args), dict(options))
        if not isinstance(new, kind) or init is MISSING:
            return new
    elif kind.__new__ is object.__new__ and (_is_run(init) or _dataclass_of(kind)):
        new = object.__new__(kind)
    else:
        check_implicit(init)
        return MISSING
    ledger().made[id(new)] = made(new)
    filled = _dataclass_of(kind)
    if filled is not None:
        _fill(new, filled, args, options)
    else:
        call(init, (new, *args), dict(options))
    return new


def _is_run(function: Any) -> bool:
    return type(function) is Closure or is_followed(function)


def _dataclass_of(kind: type) -> type | None:
    """The dataclass whose ``__init__``, as it was given one, makes objects of a class."""
    for base in kind.__mro__:
        if "__init__" in base.__dict__:
            parameters = base.__dict__.get("__dataclass_params__")
            code = getattr(base.__dict__["__init__"], "__code__", None)
            is_own = code is not None and code.co_filename == "<string>"
            return base if parameters is not None and parameters.init and is_own else None
    return None


def _fill(new: Any, kind: type, args: Sequence[Any], options: Mapping[str, Any]) -> None:
    """What the ``__init__`` of a dataclass does."""
    from ckad.trace.source.calls import call

    given = inspect.signature(kind.__init__).bind(new, *args, **options).arguments
    late = []
    for field in kind.__dict__["__dataclass_fields__"].values():
        role, value = field._field_type, given.get(field.name, field.default)
        if value is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            value = call(field.default_factory, (), {})
        elif not field.init:
            continue
        if role is dataclasses._FIELD_INITVAR:  # type: ignore[attr-defined]
            late.append(value)
        elif role is not dataclasses._FIELD_CLASSVAR:  # type: ignore[attr-defined]
            objects.write(new, field.name, value)
    after = own(type(new), "__post_init__")
    if after is not MISSING:
        run(after, new, *late)


def parent(frame: Frame) -> Any:
    """``super()`` in a method that is run from its source."""
    function, method_frame = frame.function, frame
    while method_frame.outer is not None:
        method_frame = method_frame.outer
    free, arguments = function.__code__.co_freevars, method_frame.definition.node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    if "__class__" not in free or not names or function.__closure__ is None:
        raise TraceError(at_place("super() is called outside of a method of a class."))
    kind = function.__closure__[free.index("__class__")].cell_contents
    return super(kind, method_frame.lookup(names[0]))
