"""Attributes of the user's objects: names that loops and branches carry like variables.

They are looked up and bound by the rules of Python's ``object``, as the classes are at that moment.
What a recording binds to attributes of objects from outside of it is undone when it ends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, MutableMapping
from types import FunctionType, ModuleType
from typing import Any

from ckad.errors import UnrecordableError
from ckad.trace.source.frame import (
    MISSING,
    Frame,
    Maybe,
    ledger,
    nothing,
    region,
)
from ckad.trace.source.libraries import is_library
from ckad.trace.source.lookup import found, is_data, is_plain, is_slot, is_users, slots_of
from ckad.trace.source.outside import is_recorded
from ckad.trace.source.twins import check_alone
from ckad.trace.where import at_place


class Attributes(Frame):
    """The attributes of one object, as the names of a frame."""

    __slots__ = ("assumed", "at_first", "listed", "owner")

    def __init__(self, owner: Any, depth: int) -> None:
        super().__init__(nothing(), _no_function, None, depth)
        self.owner, self.listed = owner, False
        self.assumed: set[str] = set()  # bound here to what the class had at that time
        slots = slots_of(type(owner))
        self.names = _Slots(owner, slots) if slots else _dict_of(owner)  # type: ignore[assignment]
        self.at_first = dict(self.names)

    def note_change(self, name: str) -> None:
        super().note_change(name)
        inner = region()
        if inner is not None and inner.depth > self.depth and self.listed:
            raise UnrecordableError(
                at_place(
                    f"the body of a loop or branch changes {name!r} of a "
                    f"{type(self.owner).__name__} whose attributes the program lists. Read and "
                    "bind them by their names."
                )
            )
        opened = ledger()
        if id(self.owner) not in opened.made:
            opened.before.setdefault((self, name), self.names.get(name, MISSING))

    def note_missing(self, name: str) -> None:
        """The program was told that there is no such attribute, or what the class has."""
        self.note_read(name)
        if self.inherited(name) is MISSING:
            inner = region()
            while inner is not None and inner.depth > self.depth:
                if (self, name) not in inner.changed:
                    inner.missing.add((self, name))
                inner = inner.outer

    def note_listed(self) -> None:
        """The program has got hold of the names and values of all attributes."""
        inner = region()
        while inner is not None and inner.depth > self.depth:
            if any(frame is self for frame, _ in inner.changed):
                raise UnrecordableError(
                    at_place(
                        "the body of a loop or branch lists the attributes of a "
                        f"{type(self.owner).__name__} that it changes. Read them by their names."
                    )
                )
            inner = inner.outer
        self.listed = self.listed or region() is not None

    def inherited(self, name: str) -> Any:
        value = found(type(self.owner), name)
        return value if is_plain(value) else MISSING

    def assume(self, name: str) -> None:
        """``name`` is bound to what the class has, as it would be shown unbound."""
        self.assumed.add(name)

    def put_back(self) -> None:
        """Leave nothing that belongs to the recording, whoever has bound it."""
        for name, value in list(self.names.items()):
            if is_recorded(value):
                self.restore(name, self.at_first.get(name, MISSING))

    def is_read_later(self, name: str) -> bool:
        return True

    def is_read_in(self, name: str, part: ast.stmt) -> bool:
        return True


class _Slots(MutableMapping[str, Any]):
    """The attributes of an object that has some of them in slots."""

    def __init__(self, owner: Any, slots: dict[str, Any]) -> None:
        self.owner, self.slots = owner, slots
        self.rest = _dict_of(owner) or {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.slots:
            return self.rest[name]
        try:
            return self.slots[name].__get__(self.owner)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self.slots:
            self.slots[name].__set__(self.owner, value)
        else:
            self.rest[name] = value

    def __delitem__(self, name: str) -> None:
        if name in self.slots:
            self.slots[name].__delete__(self.owner)
        else:
            del self.rest[name]

    def __iter__(self) -> Iterator[str]:
        bound = (name for name in self.slots if self.get(name, MISSING) is not MISSING)
        return iter([*bound, *self.rest])

    def __len__(self) -> int:
        return len(list(iter(self)))


class Namespace(MutableMapping[str, Any]):
    """What ``vars(x)`` and ``x.__dict__`` give: attributes by their names, without the class."""

    def __init__(self, frame: Attributes) -> None:
        self._frame = frame

    def __getitem__(self, name: str) -> Any:
        if name not in self._frame.names:
            self._frame.note_missing(name)
            raise KeyError(name)
        return self._frame.local(name)

    def __setitem__(self, name: str, value: Any) -> None:
        _bind(self._frame, name, value)

    def __delitem__(self, name: str) -> None:
        _unbind(self._frame, name)

    def __iter__(self) -> Iterator[str]:
        self._frame.note_listed()
        return iter(list(self._frame.names))

    def __len__(self) -> int:
        self._frame.note_listed()
        return len(self._frame.names)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __or__(self, other: Any) -> dict[str, Any]:
        return {**self, **other}

    def __ror__(self, other: Any) -> dict[str, Any]:
        return {**other, **self}

    def copy(self) -> dict[str, Any]:
        return dict(self)

    __copy__ = copy

    def whole(self) -> Any:
        """The dict itself."""
        self._frame.note_listed()
        return _dict_of(self._frame.owner)


def _no_function() -> None: ...


# --- as ``object`` does it ------------------------------------------------------------------------


def attributes(owner: Any) -> Attributes | None:
    """The attributes of an object that has any of its own."""
    if isinstance(owner, (type, ModuleType, FunctionType)) or not is_users(owner):
        return None
    own, has_slots = _dict_of(owner), bool(slots_of(type(owner)))
    if own is None and not has_slots:
        return None
    known, key = ledger().objects, id(owner if has_slots else own)
    if key not in known:
        known[key] = Attributes(owner, _depth(owner))
    frame = known[key]
    assert isinstance(frame, Attributes)
    return frame


def _dict_of(owner: Any) -> dict[str, Any] | None:
    try:
        own = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None
    return own if type(own) is dict else None


def is_stored(owner: Any, name: str) -> bool:
    """Whether ``owner.name`` is in the object itself, and nothing of the class comes before it."""
    frame = attributes(owner)
    return frame is not None and name in frame.names and _may_store(owner, name)


def _may_store(owner: Any, name: str) -> bool:
    attribute = found(type(owner), name)
    return attribute is MISSING or is_slot(attribute) or not is_data(attribute)


def read(owner: Any, name: str) -> Any:
    """``owner.name``, if no function of the user's has a say in it."""
    frame = attributes(owner)
    if frame is not None:
        if is_stored(owner, name):
            return frame.local(name)
        if name == "__dict__" and _dict_of(owner) is not None:
            return Namespace(frame)
        frame.note_missing(name)
    elif name == "__dict__" and isinstance(owner, ModuleType):
        ledger().outside.whole(vars(owner))
    return _natively(owner, "__getattribute__")(owner, name)


def write(owner: Any, name: str, value: Any) -> None:
    """``owner.name = value``, if no function of the user's has a say in it."""
    frame = attributes(owner)
    if frame is not None and _may_store(owner, name):
        return _bind(frame, name, value)
    _note_outside(owner, name)
    if type(value) is Namespace and name == "__dict__":
        value = value.whole()
    _natively(owner, "__setattr__")(owner, name, value)
    return None


def delete(owner: Any, name: str) -> None:
    """``del owner.name``, if no function of the user's has a say in it."""
    frame = attributes(owner)
    if frame is not None and _may_store(owner, name) and name in frame.names:
        return _unbind(frame, name)
    _note_outside(owner, name)
    _natively(owner, "__delattr__")(owner, name)
    return None


def _natively(owner: Any, rule: str) -> Any:
    """How the nearest class that is none of the user's finds or binds attributes."""
    for base in type(owner).__mro__:
        if rule in base.__dict__ and is_library(base.__module__):
            return base.__dict__[rule]
    raise AssertionError(rule)


def is_bound(owner: Any, name: str) -> Any:
    """Whether an object has an attribute of its own; traced where a branch has decided that."""
    frame = attributes(owner)
    value = MISSING if frame is None else frame.names.get(name, MISSING)
    return value.bound if type(value) is Maybe else value is not MISSING


def _bind(frame: Attributes, name: str, value: Any) -> None:
    _check_copy(frame.owner)
    check_alone(frame.owner)
    frame.note_change(name)
    frame.assumed.discard(name)
    frame.names[name] = value


def _unbind(frame: Attributes, name: str) -> None:
    _check_copy(frame.owner)
    check_alone(frame.owner)
    if name in frame.assumed:
        raise UnrecordableError(
            at_place(
                f"the attribute {name!r} is deleted, and a branch or loop before has bound it or "
                "left it to the class. Bind it on each path."
            )
        )
    if name not in frame.names:
        raise KeyError(name)
    frame.note_change(name)
    del frame.names[name]


def _note_outside(owner: Any, name: str) -> None:
    """``owner.name`` changes, which no loop or branch carries; note what is to be put back."""
    inner = region()
    if inner is not None and id(owner) not in inner.made:
        raise UnrecordableError(
            at_place(
                f"the body of a loop or branch binds {_said(owner)}.{name}, which is no variable "
                "of it, and is recorded once for all its steps. Bind it before, or carry the value "
                "in a variable or in an attribute of an object."
            )
        )
    if isinstance(owner, type):
        _check_assumed(owner, name)
    if isinstance(owner, (type, ModuleType, FunctionType)):
        ledger().outside.attribute(owner, name, vars(owner).get(name, MISSING))
    elif id(owner) not in ledger().made:
        ledger().outside.attribute(owner, name, getattr(owner, name, MISSING), always=True)


def _said(owner: Any) -> str:
    known = isinstance(owner, (type, ModuleType, FunctionType))
    return owner.__name__ if known else f"{type(owner).__name__}()"


def _check_assumed(owner: type, name: str) -> None:
    frames = (x for x in ledger().objects.values() if isinstance(x, Attributes))
    if any(name in x.assumed and issubclass(type(x.owner), owner) for x in frames):
        raise UnrecordableError(
            at_place(
                f"{owner.__name__}.{name} is changed, and a branch or loop before has bound "
                f"{name!r} of an object of it, or left it to the class. Bind it on each path."
            )
        )


def _check_copy(owner: Any) -> None:
    """An object that a loop binds a name to anew stands for others; its class may see which."""
    inner = region()
    while inner is not None:
        if id(owner) in inner.copies:
            raise UnrecordableError(
                at_place(
                    f"the body of a loop changes a {type(owner).__name__} and binds its name to "
                    "another one. Which objects are changed is not recorded. Bind a new object, "
                    "or exchange their attributes."
                )
            )
        inner = inner.outer


def _depth(owner: Any) -> int:
    """The depth of the body that has made an object; 0 for straight code, or from outside."""
    inner = region()
    while inner is not None:
        if id(owner) in inner.made:
            return inner.depth
        inner = inner.outer
    return 0
