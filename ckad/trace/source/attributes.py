"""``owner.name``, read, bound and deleted, by a statement or by ``getattr`` and its kin.

What an owner is decides who answers: an object of the user's by its class, a traced value by the
table of functions, anything else by Python. Expressions and statements call this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError, UnsupportedFunctionError
from ckad.place import at_place
from ckad.trace.arrays import of_list
from ckad.trace.source.calls import call
from ckad.trace.source.choices import Choice
from ckad.trace.source.control import branches, chosen
from ckad.trace.source.control.filled import owner_of
from ckad.trace.source.effects import is_left_out
from ckad.trace.source.kinds import class_of
from ckad.trace.source.libraries import is_in, is_library
from ckad.trace.source.library.written.attributes import attribute_or
from ckad.trace.source.memory import object_arrays, objects
from ckad.trace.source.memory.appends import seen
from ckad.trace.source.memory.asked.by_python import noting_changes
from ckad.trace.source.names import classes
from ckad.trace.source.names.absence import given, needed
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.source.names.frame import MISSING, Maybe, ledger, region
from ckad.trace.source.names.region import check_changeable
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.values import is_weak
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.fields import Fields
from ckad.trace.values.tracer import Tracer, lift


def attribute_of(owner: Any, name: str) -> Any:
    """``owner.name``."""
    if name == "__class__":
        if watched := watch():
            watched.object(owner)
        return class_of(owner)
    if type(owner) is Choice:
        return chosen.asked(owner, lambda known: _attribute(known, name), name)
    if object_arrays.is_object_array(owner):
        return object_arrays.attribute(owner, name)
    if type(owner) is list and not hasattr(list, name):
        object_arrays.refuse(f".{name}", owner)
    if not isinstance(owner, (Tracer, ComplexTracer)):
        is_module = type(owner) is ModuleType
        found = objects.again(owner, name) if is_module else MISSING
        return _attribute(owner, name) if found is MISSING else found
    if owner.scalar and is_weak(owner) and not getattr(owner, "classes", None):
        _check_has(class_of(owner), name)
    try:
        return getattr(owner_of(owner, name), name)
    except AttributeError:
        raise _missing(owner, name) from None


def _attribute(owner: Any, name: str) -> Any:
    kind: Any = type(owner)
    if kind.__getattribute__ in _OF_PYTHON or is_library(kind.__module__):
        return objects.attribute(owner, name)
    with noting_changes(owner):
        return objects.attribute(owner, name)


#: What looks attributes up where classes of the user have no function for it.
_OF_PYTHON = (object.__getattribute__, type.__getattribute__, ModuleType.__getattribute__)


def _check_has(kind: type, name: str) -> None:
    """A number of Python's has nothing of an array."""
    if not hasattr(kind, name):
        raise AttributeError(at_place(f"{kind.__name__!r} object has no attribute {name!r}"))


def _missing(owner: Any, name: str) -> Exception:
    """What a traced number or array has not, and may have in Python."""
    kind = class_of(owner)
    _check_has(kind, name)
    return UnsupportedFunctionError.here(
        f"ckad has no rule for .{name} of a traced {kind.__name__}. Write it with NumPy's "
        "functions, or compute it outside of the differentiated function."
    )


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """``owner.name = value``."""
    owner = needed(owner)
    if is_left_out(owner):
        return
    if type(owner) is Choice:
        read = partial(attribute_of, name=name)
        return chosen.put_attribute(owner, name, value, read, set_attribute)
    if isinstance(owner, Tracer):
        if name == "flat":  # again and again from the first, where there are fewer
            owner[...] = np.reshape(np.resize(of_list(value), owner.size), owner.shape)
            return
        if name == "real":
            owner[...] = value
            return
        owner = _property_owner(owner, name)
    elif classes.set_attribute(owner, name, value) or objects.write(owner, name, value):
        return
    elif region() is not None and not isinstance(owner, (ComplexTracer, Fields)):
        check_changeable(owner)
    objects.note_class(owner, name, value)
    setattr(owner, name, value)


def _property_owner(owner: Tracer, name: str) -> Tracer:
    if not isinstance(getattr(type(owner), name, None), property):
        if not hasattr(np.ndarray, name):  # as of an array: a program may try it
            raise AttributeError(at_place(f"'numpy.ndarray' object has no attribute {name!r}"))
        message = f"the attribute {name!r} of a traced array cannot be set. Make a new array."
        raise UnrecordableError.here(message)
    return owner


def delete_attribute(owner: Any, name: str) -> None:
    """``del owner.name``."""
    owner = needed(owner)
    if not objects.delete(owner, name):
        if region() is not None:
            check_changeable(owner)
        delattr(owner, name)


def _get(owner: Any, name: str, default: Any = MISSING) -> Any:
    if default is MISSING:
        return seen(attribute_of(owner, name))
    if type(owner) is Choice:
        return chosen.asked(owner, lambda known: _get(known, name, default), name)
    if type(held := objects.held(owner, name)) is Maybe:
        there = lift(held.bound)
        return branches.either(there, lambda: held.value, lambda: default, ("default", name))
    if region() is not None and classes.method(owner, "__getattr__") is not None:
        return call_from_source(attribute_or, (owner, name, default), {})
    try:
        return seen(attribute_of(owner, name))
    except AttributeError:
        return default


def _has(owner: Any, name: str) -> Any:
    if type(owner) is Choice:
        return chosen.asked(owner, lambda known: _has(known, name), name)
    held = objects.held(owner, name)
    return held.bound if type(held) is Maybe else call(hasattr, (owner, name), {})


#: What Python's functions of an object and the name of an attribute do.
_BY_NAME: Mapping[Any, Callable[..., Any]] = {
    getattr: _get,
    hasattr: _has,
    setattr: set_attribute,
    delattr: delete_attribute,
}


def by_name(callee: Any, args: Sequence[Any]) -> Any:
    """``getattr(owner, name)`` and its kin; MISSING where something else is called."""
    if callee is object.__setattr__ and args and id(args[0]) not in ledger().made:
        raise UnrecordableError.here(
            "object.__setattr__ binds an attribute of an object that was made outside of the "
            "function, or of one of several. Write x.name = y, or make a new object."
        )
    if len(args) < 2 or type(args[1]) is not str or not is_in(callee, _BY_NAME):
        return MISSING
    return _BY_NAME[callee](given(args[0]), *args[1:])
