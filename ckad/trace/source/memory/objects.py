"""Attributes of the user's objects: names that loops and branches carry like variables.

What a recording binds to attributes of objects from outside of it is undone when it ends.
"""

from __future__ import annotations

from functools import partial
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from ckad.errors import UnrecordableError
from ckad.trace.memory.context import current
from ckad.trace.source.libraries import is_library
from ckad.trace.source.memory.twins import check_alone
from ckad.trace.source.names import classes
from ckad.trace.source.names.bindings import check_given, holds_unknown
from ckad.trace.source.names.closures import Closure
from ckad.trace.source.names.frame import (
    MISSING,
    Apart,
    depth_of,
    enclosing,
    ledger,
    outside,
    region,
)
from ckad.trace.source.names.region import in_loops
from ckad.trace.source.outside.free import look_up, note_read
from ckad.trace.source.outside.kinds import Slots, attributes, is_namespace, users
from ckad.trace.source.outside.watch import watch


class Attributes(Apart):
    """The attributes of one object, as the names of a frame."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self.owner, self.names = owner, attributes(owner)

    def note_change(self, name: str) -> None:
        super().note_change(name)
        self.meet(name)

    def meet(self, name: str) -> None:
        check_given(getattr(self.owner, "__dict__", None), name)
        opened = ledger()
        if id(self.owner) not in opened.made:
            opened.before.setdefault((self, name), self.names.get(name, MISSING))


class OfFunction(Attributes):
    """The attributes of a function: straight code binds them as Python does."""

    LASTS = True
    __slots__ = ()

    def note_change(self, name: str) -> None:
        super().note_change(name)
        if region() is not None:
            ledger().recorded.add((self, name))


#: Attributes that decide what all others mean.
_STRUCTURE = ("__class__", "__dict__", "__bases__", "__mro__")

#: The same of functions.
_OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__")


def attribute(owner: Any, name: str) -> Any:
    """``owner.name``."""
    if current().outside and (given := _as_argument(owner, name)) is not None:
        return given
    computed = classes.attribute(owner, name)
    if computed is MISSING:
        return read(owner, name)
    if classes.is_kept(owner, name):
        write(owner, name, computed)
    return computed


def _as_argument(owner: Any, name: str) -> Any:
    """The argument that stands for what an object or a module holds; None if there is none."""
    outside = current().outside
    if not outside or (key := (id(getattr(owner, "__dict__", None)), name)) not in outside:
        return None
    kind: type = type(owner)
    if kind is not ModuleType:
        if hasattr(users(kind, name), "__get__"):
            return None
        if watched := watch():
            watched.object(owner)
            watched.on_class(kind, name)
    return outside[key]


def again(owner: ModuleType, name: str) -> Any:
    """What a library's module has by a name that was read before, if no number; else MISSING."""
    watched = watch()
    if watched is None or (id(owner), name) not in watched.noted or current().outside:
        return MISSING
    found = vars(owner).get(name, MISSING)
    return found if type(found) is not int and is_library(owner.__name__) else MISSING


def read(owner: Any, name: str) -> Any:
    """The same of what no method of the user's computes."""
    if type(owner) is Closure and name in _OF_FUNCTIONS:
        if name == "__code__" and (code := owner.code) is not None:
            return code
        raise UnrecordableError.here(
            f"the program looks at {owner.__name__}.{name}, and {owner.__name__} is a function "
            "that is run from its source. Define it outside of the transformed function."
        )
    if current().outside and (given := _as_argument(owner, name)) is not None:
        return given
    if watched := watch():
        look_up(watched, owner, name)
        if type(owner) is FunctionType:
            note_read(watched, vars(owner), name, vars(owner).get(name))
    if isinstance(owner, ModuleType) and not is_library(owner.__name__):
        around = outside(vars(owner))
        around.note_read(name)
        return around.local(name) if name in around.names else getattr(owner, name)
    found = attributes_of(owner, name)
    if found is not None and name in found.names:
        return found.local(name)
    if name == "__dict__":
        _check_whole(owner)
    elif found is not None:
        found.binding(name)
    return getattr(owner, name)


def held(owner: Any, name: str) -> Any:
    """What an object itself holds by a name: a `Maybe`, or MISSING, where it may hold nothing."""
    if watched := watch():
        watched.attribute(owner, name)
    found = attributes_of(owner, name)
    return MISSING if found is None else found.binding(name)


def _check_whole(owner: Any) -> None:
    """Which attributes an object has may change from step to step."""
    inner = region()
    if inner is None or depth_of(owner) >= inner.depth or is_library(type(owner).__module__):
        return
    if not isinstance(owner, (type, ModuleType)):
        raise UnrecordableError.here(
            f"the body of a loop or branch looks at {type(owner).__name__}.__dict__, and is "
            "recorded once for all its steps. Ask by name: getattr, setattr, hasattr."
        )


def write(owner: Any, name: str, value: Any) -> bool:
    """``owner.name = value``, if the object is one whose attributes are carried."""
    check_given(getattr(owner, "__dict__", None), name)
    if watched := watch():
        look_up(watched, owner, name, in_loops())
    is_own = region() is None and id(owner) in ledger().made
    if is_own and (name == "__class__" or isinstance(owner, type)):
        return False  # straight code, an object or class of its own: Python's assignment does
    if name in _STRUCTURE or (type(owner) is Closure and name in _OF_FUNCTIONS):
        raise UnrecordableError.here(
            f"{type(owner).__name__}.{name} is bound anew, and what the object's names mean "
            "would not be followed. Make a new object, or choose the function by an attribute."
        )
    if isinstance(owner, ModuleType) and not is_library(owner.__name__):
        around = outside(vars(owner))
        around.note_change(name)
        around.names[name] = value
        return True
    found = attributes_of(owner, name)
    if found is None:
        return False
    if _is_known_for_good(owner, name, value, found):
        return False
    _check_copy(owner)
    check_alone(owner)
    _own(found, name)
    found.note_change(name)
    found.names[name] = value
    return True


def _is_known_for_good(owner: Any, name: str, value: Any, found: Attributes) -> bool:
    """Whether straight code binds what is known to a name of a namespace, which Python does, and
    which stays: a counter goes on at the next call."""
    if not is_namespace(owner) or region() is not None or (found, name) in ledger().before:
        return False
    return not holds_unknown(value, ledger().made, ())


def note_class(owner: Any, name: str, value: Any) -> None:
    """Python binds an attribute; what only a run knows does not stay that of a class."""
    opened = ledger()
    if isinstance(owner, type) and id(owner) not in opened.made and holds_unknown(value, (), ()):
        key = hash((id(owner), name))
        before = vars(owner).get(name, MISSING)
        opened.put_back.setdefault(key, partial(_put_back, owner, name, before))


def _put_back(owner: type, name: str, before: Any, _: bool) -> None:
    if not holds_unknown(vars(owner).get(name), (), ()):
        return
    if before is MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, before)


def delete(owner: Any, name: str) -> bool:
    """``del owner.name``, if the object itself holds it and is one whose attributes are carried."""
    check_given(getattr(owner, "__dict__", None), name)
    if watched := watch():
        watched.attribute(owner, name)
    found = attributes_of(owner, name)
    if found is None or name not in found.names:
        return False
    _check_copy(owner)
    check_alone(owner)
    if region() is not None and not isinstance(found.names, Slots) and hasattr(type(owner), name):
        raise UnrecordableError.here(
            f"the body of a loop or branch deletes {name!r} of a {type(owner).__name__}, whose "
            "class has a value of that name. Bind the value instead."
        )
    found.local(name)  # is there what is deleted
    found.note_change(name)
    found.restore(name, MISSING)
    return True


def _own(found: Attributes, name: str) -> None:
    """An attribute of the class that a body binds on the object: it starts with that of the class.

    A method would have to be chosen when the program runs.
    """
    kind: type = type(found.owner)
    inner = region()
    if inner is None or inner.depth <= found.depth or name in found.names:
        return
    if not hasattr(kind, name) or isinstance(found.names, Slots):
        return
    if callable(getattr(kind, name)):
        raise UnrecordableError.here(
            f"the body of a loop or branch binds {kind.__name__}.{name}, a method, anew on an "
            "object. Bind it before, or choose by an attribute that is a number."
        )
    default = getattr(kind, name)
    ledger().before.setdefault((found, name), MISSING)
    found.names[name] = default


def _check_copy(owner: Any) -> None:
    """An object that a loop binds a name to anew stands for others; its class may see which."""
    if any(id(owner) in inner.copies for inner in enclosing()):
        raise UnrecordableError.here(
            f"the body of a loop changes a {type(owner).__name__} and binds its name to "
            "another one. Which objects are changed is not recorded. Bind a new object, "
            "or exchange their attributes."
        )


#: Methods that bind and look up attributes as most objects do.
_PLAIN = tuple(
    getattr(kind, name)
    for kind in (object, SimpleNamespace)
    for name in ("__setattr__", "__getattribute__")
)


def attributes_of(owner: Any, name: str) -> Attributes | None:
    """The frame of which ``owner.name`` is a name; None where Python looks it up otherwise."""
    kind: Any = type(owner)
    if kind in (FunctionType, Closure):
        if is_library(owner.__module__) or hasattr(kind, name):
            return None
    elif isinstance(owner, (type, ModuleType)) or (
        is_library(kind.__module__) and not is_namespace(owner)
    ):
        return None
    plain = kind.__setattr__ in _PLAIN and kind.__getattribute__ in _PLAIN
    if not plain or not _is_bound(owner, name):
        return None
    known = ledger().objects
    if id(owner) not in known:
        known[id(owner)] = (OfFunction if kind is FunctionType else Attributes)(owner)
    found = known[id(owner)]
    assert isinstance(found, Attributes)
    # an object may outlive the body that has made it
    found.depth = owner.depth if kind is Closure else depth_of(owner)
    return found


def _is_bound(owner: Any, name: str) -> bool:
    """Whether the object itself, or one of its slots, holds what it has by a name."""
    held = attributes(owner)
    if isinstance(held, Slots):
        return name in held.slots
    described = getattr(type(owner), name, None)  # by a property, or another descriptor
    return held is getattr(owner, "__dict__", None) and not hasattr(described, "__set__")
