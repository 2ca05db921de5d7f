"""Classes of values: what Python and libraries do with them by themselves.

Whether methods of the user's may run when an object is compared, shown or read; who walks through
objects (`watch`, `judge`, copies) asks here first.
"""

from __future__ import annotations

import abc
import argparse
import enum
import functools
import operator
import random
import sys
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterator, Mapping, MutableMapping
from functools import partial
from itertools import chain
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    NotImplementedType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any, Generic, Protocol

import numpy as np

from ckad.patterns import is_superlu
from ckad.trace.source.libraries import is_library, python_function, scalar_function
from ckad.trace.source.outside.guard import ABSENT, BUILTIN, IMMUTABLE
from ckad.trace.source.outside.purity import INDEXED
from ckad.trace.source.outside.standard import CONSTANT

SEQUENCES = (list, deque)
MAPPINGS = (dict, defaultdict, OrderedDict, Counter)
#: What holds items and can be changed; subclasses of these are the user's objects.
CONTAINERS = (*MAPPINGS, *SEQUENCES, set)
#: Values whose attributes and methods reach nothing else; what they hold was noted with them.
INERT = frozenset(
    {*IMMUTABLE, *CONTAINERS, tuple, frozenset, np.ndarray, np.matrix, *BUILTIN, *CONSTANT}
    | {CodeType}
)
_NAMESPACES = (SimpleNamespace, argparse.Namespace)
#: Classes of libraries whose objects hold nothing,
STATELESS = (object, abc.ABC, Generic, Protocol)
#: and others from which a class of the user may be derived and stay one of the user's.
_BASES = (
    *(*STATELESS, tuple, enum.Enum),
    *(BaseException, SimpleNamespace, *argparse.Namespace.__mro__),
)
#: The objects from which NumPy's and Python's functions draw; who draws from them is watched.
SHARED: tuple[Any, ...] = np.random.mtrand._rand, vars(random)["_inst"]
#: Packages whose calls change no number of a program: they show something.
DISPLAYS = frozenset(
    "IPython PIL logging matplotlib mpl_toolkits pprint rich seaborn tqdm warnings".split()
)


def users(kind: type, name: str) -> Any:
    """What a class has by a name; ABSENT if a library defines it, or nobody."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return ABSENT if is_library(base.__module__) else base.__dict__[name]
    return ABSENT


def is_computed(kind: type, name: str, put: bool = False) -> bool:
    """Whether a function of the user's is called where an attribute is read, or ``put``."""
    found = users(kind, name)
    own = ("__set__", "__setattr__") if put else ("__get__", "__getattr__", "__getattribute__")
    if type(found) in (property, functools.cached_property):
        return True
    return any(users(kind, x) is not ABSENT for x in own[1:]) or (
        found is not ABSENT and users(type(found), own[0]) is not ABSENT
    )


class Slots(MutableMapping[str, Any]):
    """The attributes of an object whose class keeps them in slots, as ``vars`` shows others'.

    Where it has both slots and ``vars``, these are the others.
    """

    def __init__(self, owner: Any, others: dict[str, Any]) -> None:
        kind: Any = type(owner)
        self.owner, self.slots, self.others = owner, _slots_of(kind), others

    def __getitem__(self, name: str) -> Any:
        if name not in self.slots:
            return self.others[name]
        try:
            return self.slots[name].__get__(self.owner)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self.slots:
            self.slots[name].__set__(self.owner, value)
        else:
            self.others[name] = value

    def __delitem__(self, name: str) -> None:
        if name in self.slots:
            self.slots[name].__delete__(self.owner)
        else:
            del self.others[name]

    def __iter__(self) -> Iterator[str]:
        filled = (name for name in self.slots if hasattr(self.owner, name))
        return chain(filled, tuple(self.others))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@functools.cache
def _has_slots(kind: type) -> bool:
    """Whether a class of the user's has slots, of its own or from another one."""
    ours = {name for k in kind.__mro__ if not is_library(k.__module__) for name in vars(k)}
    return any(name in ours for name in _slots_of(kind))


@functools.cache
def _slots_of(kind: type) -> dict[str, Any]:
    """The slots that are reached by their own names."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        for name, value in vars(base).items():
            found.pop(name, None)  # it hides that of a base
            if type(value) is MemberDescriptorType and value.__name__ == name:
                found[name] = value
    return found


def attributes(owner: Any) -> MutableMapping[str, Any]:
    """What the attributes of an object of the user's are bound to; empty if it has none."""
    kind: Any = type(owner)
    own = getattr(owner, "__dict__", None)
    if own is not None and (type(own) is not dict or is_library(kind.__module__)):
        return own if type(own) is dict else {}
    if own is not None and not _has_slots(kind):
        return own
    return {} if is_library(kind.__module__) else Slots(owner, {} if own is None else own)


_Sample = namedtuple("_Sample", "item")
#: What a class may hold that is not looked into, since it is followed where it is run.
METHODS = (
    *(FunctionType, property, functools.cached_property, classmethod, staticmethod, *BUILTIN),
    *(MemberDescriptorType, GetSetDescriptorType, type(_Sample.item)),
    functools._lru_cache_wrapper,
)


def is_plain(kind: type) -> bool:
    """Whether the objects of a class of the user hold attributes alone, or a tuple's items, or
    are members of an enumeration.

    How they are compared Python asks their methods, where they are keys or in lists.
    """
    for base in kind.__mro__:
        if is_library(base.__module__):
            if base not in _BASES and not isinstance(kind, enum.EnumMeta):
                return False
        elif not all(is_written(base.__dict__.get(name)) for name in ("__eq__", "__hash__")):
            return False
    return True


def is_namespace(value: Any) -> bool:
    return isinstance(value, _NAMESPACES) and is_plain(type(value))


def comparable(names: Mapping[str, Any]) -> list[Any]:
    """What Python may look into where it compares namespaces, which it does by what they hold: all
    but arrays of several elements."""
    return [x for x in names.values() if not (type(x) is np.ndarray and x.size > 1)]


def is_member(kind: type) -> bool:
    """Whether objects of a class are members of an enumeration, with no special methods of the
    user's."""
    if not isinstance(kind, enum.EnumMeta):
        return False
    own = [vars(base) for base in kind.__mro__ if not is_library(base.__module__)]
    special = [x for names in own for name, x in names.items() if name.startswith("__")]
    return not any(type(x) is FunctionType and not is_library(x.__module__) for x in special)


def is_written(function: Any) -> bool:
    """Whether Python has written a method itself (of a dataclass), or there is none."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return function in (ABSENT, None) or (code is not None and code.co_filename == "<string>")


#: Objects of libraries that stay what they are, or are looked into where they are called.
_KNOWN = (
    *(
        type,
        CodeType,
        ModuleType,
        MethodType,
        partial,
        *METHODS,
        NotImplementedType,
    ),
    *CONSTANT,
    *(operator.attrgetter, operator.itemgetter, operator.methodcaller),
    *(np.dtype, np.finfo, np.iinfo, np.vectorize, MethodDescriptorType, WrapperDescriptorType),
)


def is_known(value: Any) -> bool:
    """Whether it is known what an object of a library does; of others it may be anything."""
    kind: type = type(value)
    if isinstance(value, _KNOWN) or is_ours(kind) or is_shown_or_drawn(value):
        return True
    if is_superlu(value) or is_distribution(value) or is_operator(value):
        return True
    if python_function(value) is not None or scalar_function(value) is not None:
        return True
    return any(value is x for x in INDEXED)


def is_shown_or_drawn(owner: Any) -> bool:
    """Whether it shows something, or is one of the objects from which all functions draw."""
    shows = top_of(type(owner)) in DISPLAYS and not isinstance(owner, dict)  # as rcParams
    return shows or any(owner is x for x in SHARED)


def is_distribution(value: Any) -> bool:
    """Whether it is one of the distributions of ``scipy.stats`` itself, as ``norm``."""
    if not type(value).__module__.startswith("scipy.stats."):
        return False
    return any(value is one for one in vars(sys.modules["scipy.stats"]).values())


def is_operator(value: Any) -> bool:
    """Whether it is one of SciPy's operators that hold a matrix, as ``aslinearoperator`` gives."""
    kind = type(value)
    if not kind.__module__.startswith("scipy.sparse.linalg"):
        return False
    return any(base.__name__ == "MatrixLinearOperator" for base in kind.__mro__)


def is_console(value: Any) -> bool:
    """Whether what is written into a file is shown to the user, as what is printed."""
    return value is sys.stdout or value is sys.stderr


def is_ours(kind: type) -> bool:
    return top_of(kind) == "ckad"


def top_of(kind: type) -> str:
    return kind.__module__.partition(".")[0]
