"""Methods of the user's that Python may run by itself, while a body is recorded once for all steps.

They are not followed: what they may read is noted before, and what they have changed after it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np

from ckad.trace.memory.context import current
from ckad.trace.source.libraries import is_library
from ckad.trace.source.memory.asked.changes import Held
from ckad.trace.source.memory.contents import read as read_items
from ckad.trace.source.memory.objects import attributes_of
from ckad.trace.source.names import classes
from ckad.trace.source.names.frame import outside, region
from ckad.trace.source.names.region import check_iterated
from ckad.trace.source.outside.guard import ABSENT, IMMUTABLE
from ckad.trace.source.outside.kinds import CONTAINERS, attributes, users
from ckad.trace.source.outside.python import asked, equated
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.values import holds_tracer

#: What Python may ask an object of the user's for, by itself.
_ASKED = """__iter__ __next__ __getitem__ __reversed__ __contains__ __len__ __array__ __float__
    __int__ __index__ __complex__""".split()
_NOTHING = nullcontext()
#: Indices of Python's and NumPy's own.
_INERT = IMMUTABLE - {slice}
#: What it asks keys of dicts and items of sets for.
_OF_KEYS = ("__hash__", "__eq__")


def check_run_over(x: Any) -> None:
    """Python runs over all items of ``x``."""
    if type(x) is np.ndarray:
        current().note_known(x)
    note_given(x)


def iterated(x: Any, asks_length: bool = False) -> Any:
    """What the user's ``__iter__`` gives, run from source, for who runs over ``x``; ``x`` itself
    where there is none. Some ask for the length before."""
    if is_library(type(x).__module__) or classes.method(x, "__iter__") is None:
        return x
    found = classes.invoke(x, "__iter__")
    if asks_length and found is not x and classes.method(x, "__len__") is not None:
        with suppress(TypeError):
            classes.invoke(x, "__len__")
    return found


def all_of(x: Any, asks_length: bool = False) -> Any:
    """What Python runs over all items of: of an object of the user's, a list of them."""
    x = iterated(x, asks_length)
    check_run_over(x)
    if is_library(type(x).__module__) or isinstance(x, Iterator):
        return x
    if region() is None:
        return [*x] if asks_length else x
    with noting_changes(x):
        return [*x] if asks_length else [*iter(x)]


def note_given(*given: Any, asks: bool = True) -> None:
    """A function of a library is given these, which ``asks`` them for items, numbers or texts: what
    methods may read is as it is in the step."""
    if asks:
        _note_read(given, _ASKED)
    for x in given:
        check_iterated(x)
        if region() is not None:
            _note_asked(x, set(), False)


def note_keys(*keys: Any) -> None:
    """Python asks these which keys or integers they are."""
    _note_read(keys, (*_OF_KEYS, "__index__"))


def _note_read(given: Sequence[Any], names: Sequence[str]) -> None:
    """Note for who uses the recording again what methods read that Python may run on these."""
    for x in given:
        if watched := watch():
            asked(watched, x, names)


def noting_changes(*given: Any) -> AbstractContextManager[Any]:
    """Python does something with these, and may run methods of the user's."""
    return _NOTHING if region() is None else Held(given)


def done(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, as Python does it."""
    with noting_changes(*args):
        return function(*args)


def contained(owner: Any, x: Any) -> Any:
    """``x in owner``, which asks items whether they are equal."""
    items = owner if isinstance(owner, (*CONTAINERS, tuple)) else ()
    check_iterated(owner)
    watched = watch()
    if watched and not IMMUTABLE.issuperset({type(x), *map(type, items)}):
        for part in (x, *items):
            equated(watched, part)
    return done(operator.contains, owner, x)


def compares_traced(x: Any) -> bool:
    """Whether the user's ``__eq__`` of ``x`` reads attributes that are traced: Python, which
    decides on what it gives, cannot run it."""
    kind: Any = type(x)
    if type(users(kind, "__eq__")) is not FunctionType or not hasattr(x, "__dict__"):
        return False
    return any(holds_tracer(vars(x).get(name)) for name in _names_read(kind))


@lru_cache(maxsize=256)
def _names_read(kind: type) -> frozenset[str]:
    """What ``__eq__`` of a class reads, itself or by properties and methods of that class."""
    names: set[str] = set()
    left = ["__eq__"]
    while left:
        own = users(kind, left.pop())
        code = getattr(own.fget if isinstance(own, property) else own, "__code__", None)
        new = set(() if code is None else code.co_names) - names
        names |= new
        left += new
    return frozenset(names)


def put_all(items: dict[Any, Any], xs: Any) -> None:
    """``items.update(xs)``."""
    check_run_over(xs)
    with noting_changes(xs):
        items.update(xs)


def by_index(function: Callable[..., Any], owner: Any, index: Any, *value: Any) -> Any:
    """``owner[index]``, read, put or deleted by a function of ``operator``: objects of the user's
    may say which integer they stand for, or which key they are."""
    if type(owner) is np.ndarray:
        current().note_known(owner)
    if not _is_users(index):
        return function(owner, index, *value)
    note_keys(index)
    if region() is None:
        return function(owner, index, *value)
    with noting_changes(owner, index):
        return function(owner, index, *value)


def _is_users(index: Any) -> bool:
    if type(index) in _INERT:
        return False
    if type(index) is slice:
        return any(map(_is_users, (index.start, index.stop, index.step)))
    if type(index) is tuple:
        return any(map(_is_users, index))
    return not is_library(type(index).__module__)


def _note_asked(x: Any, met: set[int], is_within: bool) -> None:
    """Note that methods which Python runs may read what an object holds, and what is within."""
    if id(x) in met:
        return
    met.add(id(x))
    kind: Any = type(x)
    if isinstance(x, (tuple, *CONTAINERS)):
        if is_within:
            read_items(x)
        for item in [*x.values()] if isinstance(x, dict) else x:
            _note_asked(item, met, is_within)
        return
    methods = [method for name in _ASKED if (method := users(kind, name)) is not ABSENT]
    for method in methods:
        if type(method) is FunctionType:
            names, around = method.__code__, method.__globals__
            for name in names.co_names:
                outside(around).note_read(name)
            for name, cell in zip(names.co_freevars, method.__closure__ or (), strict=True):
                outside(around, cell).note_read(name)
    if is_within or methods:
        for name, value in [*attributes(x).items()]:
            if (found := attributes_of(x, name)) is not None:
                found.note_read(name)
                _note_asked(value, met, True)
