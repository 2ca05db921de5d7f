"""What classes have by a name, as it is written there, without running anything of the user."""

from __future__ import annotations

from types import FunctionType, MemberDescriptorType, SimpleNamespace
from typing import Any

from ckad.trace.source.frame import MISSING
from ckad.trace.source.libraries import is_library
from ckad.trace.source.reader import definition_of


def found(kind: type, name: str) -> Any:
    """What a class or one of its bases has by a name; MISSING if none has."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING


def own(kind: type, name: str) -> Any:
    """The same if a class of the user has it. Nothing is remembered, since it may change."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return MISSING if is_library(base.__module__) else base.__dict__[name]
    return MISSING


def is_users(owner: Any) -> bool:
    """Whether an object is of a class of the user, or one that only holds attributes."""
    kind = type(owner)
    return kind is SimpleNamespace or not is_library(kind.__module__)


def is_data(attribute: Any) -> bool:
    """Whether it comes before what an object itself has by its name."""
    kind = type(attribute)
    return found(kind, "__set__") is not MISSING or found(kind, "__delete__") is not MISSING


def is_plain(attribute: Any) -> bool:
    """Whether an object that has none of its own shows the very thing."""
    return attribute is not MISSING and found(type(attribute), "__get__") is MISSING


def is_slot(attribute: Any) -> bool:
    return type(attribute) is MemberDescriptorType


def slots_of(kind: type) -> dict[str, Any]:
    """The slots of a class and its bases, by name."""
    names = (name for base in kind.__mro__ for name in base.__dict__)
    return {name: x for name in names if is_slot(x := found(kind, name))}


def is_followed(function: Any) -> bool:
    """Whether a function is run from its source; those of ckad's own examples are, too."""
    if type(function) is not FunctionType:
        return False
    shown = function.__code__.co_filename.startswith("<doctest ")
    user = shown or function.__module__ == "ckad.demo" or not is_library(function.__module__)
    return user and definition_of(function) is not None
