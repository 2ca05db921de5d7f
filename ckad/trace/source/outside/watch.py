"""What is noted of the world outside while a function is recorded.

Every way from outside into the recording comes past here: names, attributes, items, arrays,
functions. What a recording has made itself is its ``own``, and needs no note. Where it is not known
what Python or a library does, the watch gives up: such a function is recorded at each call.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import (
    CellType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from ckad.patterns import attributes_of, is_sparse, is_superlu
from ckad.trace.dispatch import Traced
from ckad.trace.source.libraries import is_library, is_of_library
from ckad.trace.source.outside.guard import ABSENT, IMMUTABLE, Guard, content, contents, items_of
from ckad.trace.source.outside.kinds import (
    CONTAINERS,
    INERT,
    METHODS,
    attributes,
    comparable,
    is_console,
    is_distribution,
    is_known,
    is_namespace,
    is_operator,
    is_ours,
    is_plain,
    is_shown_or_drawn,
    users,
)

#: A function that reads more than this from arrays, in bytes, is recorded at each call,
LARGEST = 2**25
#: and so is one that reads a container of more items.
MOST = 2**16
_PARTIAL = ("func", "args", "keywords")
_FUNCTION = ("__code__", "__defaults__", "__kwdefaults__")
_NAMES_OF_CLASSES = ("__name__", "__qualname__", "__module__", "__doc__", "__mro__", "__bases__")


class Watch:
    """What one recording has read from outside so far."""

    def __init__(self) -> None:
        self.guard = Guard()
        self.reason: str | None = None  # why it was given up
        self.looked_up: set[tuple[Any, Any]] = set()  # of which all that they read is noted
        self.own: dict[int, Any] = {}
        self.noted: set[tuple[int, str]] = set()
        self.assigned: dict[tuple[int, str], Any] = {}  # names bound before they were read
        self._entered: dict[int, Any] = {}
        self._of_classes: set[tuple[type, str]] = set()
        self._nbytes = 0
        self.streams: list[Any] = []  # of random numbers that the recording has seeded
        self.at_end: list[Callable[[], None]] = []

    def give_up(self, reason: str) -> None:
        """The recording may depend on, or change, what is not known."""
        self.reason = reason
        if _watching.now is self:
            _watching.now = None
        self.close()

    def close(self) -> None:
        """Forget what was only needed while recording."""
        self.own.clear()
        self._entered.clear()
        self.assigned.clear()

    def is_own(self, x: Any) -> bool:
        return id(x) in self.own

    def is_noted(self, owner: Any, name: str) -> bool:
        """Whether a name in a class, in a dict of names or in a cell was looked up."""
        if isinstance(owner, type):
            return any(n == name and issubclass(kind, owner) for kind, n in self._of_classes)
        return (id(owner), name) in self.noted

    # --- names ----------------------------------------------------------------------------------

    def name(self, names: Mapping[str, Any], name: str) -> None:
        """A name of a module or a class is looked up, or is about to be bound anew."""
        key = id(names), name
        if key not in self.noted:
            self.noted.add(key)
            if type(names) not in (dict, MappingProxyType):  # it may look up anything
                return self.give_up(f"names in a {type(names).__name__}")
            self.enter(self.guard.name(names, name))
        return self.guard.note(names, name, names.get(name))

    def cell(self, cell: CellType) -> None:
        """The same for a variable of a closure; a traced one is the recording's own."""
        key = id(cell), "cell"
        self.guard.note(cell, "cell", content(cell))
        if key not in self.noted:
            self.noted.add(key)
            value = content(cell)
            if not isinstance(value, Traced):
                self.guard.cells.append((cell, value))
                self.enter(value)

    def function(self, function: FunctionType) -> None:
        """A function from outside is run."""
        for part in _FUNCTION:
            self.holds(function, part)

    def partial(self, function: partial[Any]) -> None:
        """The same for a function with some of its arguments."""
        if id(function) not in self.own:
            for part in _PARTIAL:
                self.attribute(function, part)

    def holds(self, owner: Any, part: str) -> None:
        """The same for what holds a function: Numba's, which is run as Python has it, NumPy's."""
        key = id(owner), part
        if key not in self.noted:
            self.noted.add(key)
            self._part(owner, part)

    def printed(self, args: Sequence[Any], options: Mapping[str, Any]) -> None:
        """What is printed is printed again when the recording is used again."""
        if not set(options) <= {"sep", "end", "flush"}:
            return self.give_up("print to a file")
        return self.shown(print, args, options)

    def shown(self, show: Any, args: Sequence[Any], options: Mapping[str, Any]) -> None:
        self.guard.shown.append(partial(show, *map(str, args), **options))

    def _part(self, owner: Any, part: str) -> None:
        value = getattr(owner, part, ABSENT)
        self.guard.parts.append((owner, part, value))
        self.enter(value)

    # --- attributes -----------------------------------------------------------------------------

    def attribute(self, owner: Any, name: str) -> None:
        """An attribute is read, or is about to be bound anew."""
        kind: Any = type(owner)
        key = id(owner), name
        if kind in (FunctionType, ModuleType):
            self.guard.note(vars(owner), name, vars(owner).get(name))
        if kind in INERT or isinstance(owner, Traced) or key in self.noted:
            return
        if id(owner) in self.own:
            self.on_class(kind, name)
            return
        self.noted.add(key)
        self._entered[id(owner)] = owner
        if is_console(owner):
            return
        if kind is ModuleType:
            self._of_module(owner, name)
        elif isinstance(owner, type):
            self._of_class(owner, name)
        elif kind is FunctionType:
            self._of_function(owner, name)
        elif kind is partial and name in _PARTIAL:
            self._part(owner, name)
        elif kind is MethodType and name in ("__self__", "__func__", "__name__"):
            self.enter(getattr(owner, name))
        elif not is_library(kind.__module__) or is_namespace(owner):
            self._of_object(owner, kind, name)
        elif isinstance(owner, BaseException):
            self._part(owner, name)
        elif kind is super:
            for base in type(owner.__self__).__mro__:
                self.on_class(base, name)
        elif is_sparse(owner) or is_superlu(owner) or is_distribution(owner):
            self.enter(owner)
        elif is_operator(owner):
            self._part(owner, "A")
        elif is_shown_or_drawn(owner) and type(getattr(owner, name, None)) in IMMUTABLE:
            self._part(owner, name)
        elif isinstance(owner, tuple) and is_library(kind.__module__):
            self.enter(owner)  # sys.float_info and its like
        elif not (is_ours(kind) or isinstance(owner, np.dtype) or is_shown_or_drawn(owner)):
            self.give_up(f"{kind.__module__}.{kind.__qualname__}.{name}")

    def _of_module(self, owner: ModuleType, name: str) -> None:
        self.guard.objects.append((owner, ModuleType, None))
        if name not in vars(owner):
            getattr(owner, name, None)  # some are imported when they are first asked for
        if name not in vars(owner) and name != "__dict__":
            return self.give_up(f"{owner.__name__}.{name}")
        return self.name(vars(owner), name)

    def _of_class(self, owner: type, name: str) -> None:
        if is_library(owner.__module__):
            return
        if type(owner) not in (type, abc.ABCMeta, enum.EnumType):
            self.give_up(f"the metaclass of {owner.__name__}")
        elif name in _NAMES_OF_CLASSES:
            self._part(owner, name)
        else:
            self.on_class(owner, name)

    def _of_function(self, owner: FunctionType, name: str) -> None:
        if is_library(owner.__module__):
            return
        if hasattr(type(owner), name):
            self._part(owner, name)
        else:
            self.name(vars(owner), name)

    def _of_object(self, owner: Any, kind: Any, name: str) -> None:
        if users(kind, "__getattribute__") is not ABSENT:
            return self.give_up(f"{kind.__qualname__}.__getattribute__")
        self.object(owner)
        self.on_class(kind, name)
        held = getattr(owner, "__dict__", None)
        if isinstance(owner, enum.Enum):
            self.name(vars(owner), {"value": "_value_", "name": "_name_"}.get(name, name))
        elif name == "__dict__":
            self._container(held)
        elif type(held) is dict:
            self.name(held, name)
        found = type(users(kind, name))
        if found is MemberDescriptorType:
            self._part(owner, name)
        elif found is GetSetDescriptorType and name != "__dict__":
            return self.give_up(f"{kind.__qualname__}.{name}")
        return None

    def object(self, owner: Any) -> None:
        """What an object from outside is an instance of is read."""
        key = id(owner), "class"
        if key not in self.noted and id(owner) not in self.own:
            self.noted.add(key)
            self._entered[id(owner)] = owner
            held = getattr(owner, "__dict__", None)
            self.guard.objects.append((owner, type(owner), held if type(held) is dict else None))

    def on_class(self, kind: type, name: str) -> None:
        """A name is looked up in a class, for an object of it or for itself."""
        key = kind, name
        if key in self._of_classes:
            return
        self._of_classes.add(key)
        if (kind, "__mro__") not in self._of_classes:
            self._of_classes.add((kind, "__mro__"))
            self.guard.parts.append((kind, "__mro__", kind.__mro__))
        for base in kind.__mro__:
            if not is_library(base.__module__) and not self.is_own(base):
                self._of_base(base, name)
                if name in base.__dict__:
                    return

    def _of_base(self, base: type, name: str) -> None:
        value = base.__dict__.get(name, ABSENT)
        self.guard.names.append((base.__dict__, name, value))
        kind: type = type(value)
        if kind not in METHODS and hasattr(kind, "__get__") and is_library(kind.__module__):
            self.give_up(f"{base.__qualname__}.{name}, a {kind.__name__}")
        else:
            self.enter(value)

    # --- values ---------------------------------------------------------------------------------

    def enter(self, value: Any) -> None:
        """A value comes in from outside: what it holds is noted."""
        kind: Any = type(value)
        if kind in IMMUTABLE or isinstance(value, Traced) or id(value) in self.own:
            return
        if value is ABSENT or id(value) in self._entered or is_console(value):
            return
        self._entered[id(value)] = value
        if kind in CONTAINERS:
            self._container(value)
        elif kind is np.ndarray:
            self._array(value)
        elif isinstance(value, (tuple, frozenset)):
            self._enter_items(value)
        elif isinstance(value, Iterator):
            self.give_up(f"a {kind.__name__} from outside")
        elif is_sparse(value):
            for name in vars(value):
                self.name(vars(value), name)
        elif is_namespace(value):
            self.guard.containers.append((vars(value), items_of(vars(value))))
            self._enter_items(comparable(vars(value)))
        elif is_library(kind.__module__):
            if not is_known(value):
                self.give_up(f"a {kind.__module__}.{kind.__qualname__} from outside")
            elif kind is MethodType and not is_library(type(value.__self__).__module__):
                self.enter(value.__self__)
            elif kind is FunctionType and is_of_library(value):
                for cell in value.__closure__ or ():  # singledispatch keeps its table there
                    if type(content(cell)) in CONTAINERS:
                        self.cell(cell)
        elif not is_plain(kind):
            self.give_up(f"a {kind.__qualname__}: Python looks into it by itself")
        elif dataclasses.is_dataclass(kind):  # loops and branches look into them
            for field in dataclasses.fields(value):
                self.attribute(value, field.name)

    def _container(self, value: Any) -> None:
        if len(value) > MOST:
            return self.give_up(f"a {type(value).__name__} of {len(value):,} items")
        items = items_of(value)
        self.guard.containers.append((value, items))
        if type(value) is defaultdict:
            self.enter(value.default_factory)
        self._enter_items(items)
        return None

    def _enter_items(self, items: Iterable[Any]) -> None:
        for item in items:
            self.enter(item)

    def _array(self, value: np.ndarray) -> None:
        self._nbytes += value.nbytes
        if self._nbytes > LARGEST or value.dtype.hasobject:
            return self.give_up(f"arrays of {self._nbytes:,} bytes, {value.dtype}")
        self.guard.arrays.append((value, contents(value)))
        return None

    # --- what is made ---------------------------------------------------------------------------

    def adopt(self, value: Any) -> Any:
        """``value`` was made by the recording."""
        self.own[id(value)] = value
        return value

    def adopt_all(self, value: Any) -> None:
        """The same for a copy, and all that it holds."""
        kind: Any = type(value)
        if kind in IMMUTABLE or id(value) in self.own or isinstance(value, (type, FunctionType)):
            return
        self.adopt(value)
        if kind in CONTAINERS or isinstance(value, tuple):
            for part in value.values() if isinstance(value, dict) else value:
                self.adopt_all(part)
        elif not is_library(kind.__module__):
            for part in attributes(value).values():
                self.adopt_all(part)

    def given(self, value: Any) -> None:
        """The same for the structure of arguments, which is made anew for each call."""
        kind: Any = type(value)
        if kind is dict:
            parts: Any = value.values()
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts = [getattr(value, name, None) for name in attributes_of(value)]
        elif isinstance(value, (tuple, list)):
            parts = value
        else:
            return self.enter(value)
        self.adopt(value)
        for part in parts:
            self.given(part)
        return None


class _Watching(threading.local):
    def __init__(self) -> None:
        self.now: Watch | None = None


_watching = _Watching()


def watch() -> Watch | None:
    """The watch of the present recording; None if none is kept, or it was given up."""
    return _watching.now


@contextmanager
def watching() -> Iterator[Watch]:
    """Note what is read from outside from here on, for this watch alone."""
    before = _watching.now
    _watching.now = opened = Watch()
    try:
        yield opened
        if opened.reason is None:
            for note in opened.at_end:
                note()
    finally:
        _watching.now = before
        opened.close()
