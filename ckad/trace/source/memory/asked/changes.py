"""What methods of the user's change that Python runs by itself.

The reader does not see them. So what is within their reach is held against what it was before: a
change is noted as if a statement had made it, or refused where such a statement would be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from functools import cache, partial
from types import BuiltinFunctionType, CellType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import CkadError, UnrecordableError
from ckad.trace.dispatch import Traced
from ckad.trace.source.libraries import is_library
from ckad.trace.source.memory.contents import ITEMS, contents
from ckad.trace.source.memory.objects import attributes_of, delete, write
from ckad.trace.source.memory.twins import changing
from ckad.trace.source.names.closures import Closure
from ckad.trace.source.names.frame import MISSING, Frame, depth_of, outside, region
from ckad.trace.source.names.region import check_changeable
from ckad.trace.source.outside.guard import ABSENT, IMMUTABLE
from ckad.trace.source.outside.kinds import CONTAINERS, attributes, is_written, users

#: Methods that the reader runs where an object is made, or that Python runs at no other time.
_OF_MAKING = frozenset(
    "__init__ __post_init__ __init_subclass__ __class_getitem__ __set_name__ __del__".split()
)
#: Methods of containers that ask items whether they are equal, or which comes first.
_ASKING = frozenset("count index remove sort".split())
#: What names are followed to, and arrays of how many numbers are held against what they were.
_REACHED, _LARGEST = (*CONTAINERS, tuple, np.ndarray, FunctionType), 1_000_000
#: Functions as classes hold them.
_FUNCTIONS = (FunctionType, Closure, classmethod, staticmethod)


class _Names(NamedTuple):
    """Attributes, or names of a module, as they were; ``note`` says that one has changed."""

    owner: Any
    now: Callable[[], MutableMapping[str, Any]]
    before: dict[str, Any]
    note: Callable[[Any, str, Any, Any], None]


class Held:
    """What is in reach of methods of some objects: attributes, items, names of modules. In a
    ``with``, what has changed of that is noted behind it."""

    def __init__(self, given: Iterable[Any]) -> None:
        self._met: dict[int, Any] = {}
        self._names: list[_Names] = []
        self._items: list[tuple[Any, Any]] = []
        self._arrays: list[tuple[np.ndarray, np.ndarray]] = []
        self._cells: list[tuple[dict[str, Any], str, CellType, Any]] = []
        for x in given:
            self._reach(x, False)

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *error: object) -> None:
        self.note_changes()

    def _reach(self, x: Any, is_within: bool) -> None:
        kind: Any = type(x)
        if kind in IMMUTABLE or isinstance(x, Traced) or id(x) in self._met:
            return
        module = kind.__module__
        if type(module) is not str or module.startswith("_cython"):  # a function that it made
            return
        self._met[id(x)] = x
        if isinstance(x, (tuple, *CONTAINERS)):
            if is_within and kind is not tuple:
                self._items.append((x, _copied(x)))
            for item in _parts(x):
                self._reach(item, is_within)
        if kind is FunctionType:
            self._function(x)
        elif kind is MethodType:
            self._reach(x.__func__, True)
            self._reach(x.__self__, True)
        elif kind is BuiltinFunctionType:
            if x.__name__ in _ASKING and isinstance(x.__self__, CONTAINERS):
                self._reach(x.__self__, False)
        elif isinstance(x, type):
            own = type(x) is not type or users(x, "__new__") is not ABSENT
            if not is_library(x.__module__) and (is_within or own):
                self._class(x)
        elif kind is np.ndarray and is_within and x.size <= _LARGEST:
            self._arrays.append((x, x.copy()))
        elif not is_library(kind.__module__) and (is_within or _is_asked(kind)):
            held = attributes(x)
            self._names.append(_Names(x, partial(attributes, x), dict(held), _attribute))
            self._reach(kind, True)
            for name, value in [*held.items()]:
                if (frame := attributes_of(x, name)) is not None:
                    frame.note_read(name)
                self._reach(value, True)

    def _class(self, kind: type) -> None:
        meta: Any = type(kind)
        for base in (*kind.__mro__, *meta.__mro__):
            if is_library(base.__module__) or (base is not kind and id(base) in self._met):
                continue
            self._met[id(base)] = base
            held = _held_by(base)
            self._names.append(_Names(base, partial(_held_by, base), held, _of_class))
            for value in held.values():
                self._reach_value(getattr(value, "__func__", value))

    def _reach_value(self, x: Any) -> None:
        """What a name of a module or class is bound to, but for other modules and classes."""
        kind: type = type(x)
        if kind in _REACHED or not (isinstance(x, type) or is_library(kind.__module__)):
            self._reach(x, True)

    def _function(self, x: FunctionType) -> None:
        """A function may bind names of its module and of the calls around it."""
        around = x.__globals__
        if is_library(x.__module__):
            return
        if id(around) not in self._met:
            self._met[id(around)] = around
            self._names.append(_Names(around, partial(_itself, around), dict(around), _global))
        for name in x.__code__.co_names:
            outside(around).note_read(name)
            self._reach_value(around.get(name))
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
            outside(around, cell).note_read(name)
            if id(cell) not in self._met:
                self._met[id(cell)] = cell
                self._cells.append((around, name, cell, content := _content(cell)))
                self._reach(content, True)
        for value in (*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()):
            self._reach(value, True)

    def note_changes(self) -> None:
        """Note what has changed; an error once all that no statement could change is as it was."""
        errors: list[Exception] = []
        for note in self._changes():
            try:
                note()
            except CkadError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _changes(self) -> Iterator[Callable[[], None]]:
        for owner, now, before, note in self._names:
            held = now()
            for name in {**before, **held} if len(held) != len(before) else before:
                old, new = before.get(name, MISSING), held.get(name, MISSING)
                if old is not new:
                    yield partial(note, owner, name, old, new)
        for owner, items in self._items:
            if not _is_same(owner, items):
                yield partial(_items, owner, items)
        for array, numbers in self._arrays:
            if not np.array_equal(array, numbers, equal_nan=array.dtype.kind in "fc"):
                yield partial(_array, array, numbers)
        for around, name, cell, content in self._cells:
            if (new := _content(cell)) is not content:
                yield partial(_noted, outside(around, cell), name, content, new)


def _held_by(kind: type) -> dict[str, Any]:
    return dict(vars(kind))


def _itself(names: dict[str, Any]) -> dict[str, Any]:
    return names


@cache
def _is_asked(kind: type) -> bool:
    """Whether a class of the user has methods that Python may run by itself."""
    return any(
        name.startswith("__") and name not in _OF_MAKING and not is_written(value)
        for base in kind.__mro__
        if not is_library(base.__module__)
        for name, value in vars(base).items()
        if isinstance(value, _FUNCTIONS)
    )


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _parts(x: Any) -> list[Any]:
    """What a container holds, asked for by no method of the user's."""
    if isinstance(x, dict):
        return [*dict.values(x), *dict.keys(x)]
    kind: Any = next(k for k in (tuple, *CONTAINERS) if isinstance(x, k))
    return [*kind.__iter__(x)]


def _copied(x: Any) -> Any:
    return dict(dict.items(x)) if isinstance(x, dict) else _parts(x)


def _is_same(x: Any, before: Any) -> bool:
    """Whether a container holds the very items that it held."""
    if len(x) != len(before):
        return False
    if isinstance(x, dict):
        pairs = zip(x.items(), before.items(), strict=True)
        return all(a is b and u is v for (a, u), (b, v) in pairs)
    return all(a is b for a, b in zip(x, before, strict=True))


def _is_noted(frame: Frame, name: str) -> bool:
    """Whether a statement has changed a name meanwhile, too, or nobody outside sees it."""
    inner = region()
    if inner is None or inner.depth <= frame.depth:
        return True
    return (frame, name) in inner.changed


def _noted(frame: Frame, name: str, old: Any, new: Any) -> None:
    if not _is_noted(frame, name):
        frame.restore(name, old)
        frame.note_read(name)
        frame.note_change(name)
    frame.restore(name, new)


def _attribute(owner: Any, name: str, old: Any, new: Any) -> None:
    held, frame = attributes(owner), attributes_of(owner, name)
    if frame is not None and _is_noted(frame, name):
        return
    inner = region()
    if frame is None and inner is not None and depth_of(owner) >= inner.depth:
        return
    if old is MISSING:
        held.pop(name, None)
    else:
        held[name] = old
    if frame is None:
        check_changeable(owner)
    elif new is MISSING:
        delete(owner, name)
    else:
        write(owner, name, new)


def _of_class(owner: Any, name: str, old: Any, new: Any) -> None:
    if old is MISSING:
        type.__delattr__(owner, name)
    else:
        type.__setattr__(owner, name, old)
    _refuse(f"{owner.__name__}.{name}, an attribute of a class")


def _global(owner: Any, name: str, old: Any, new: Any) -> None:
    if name != "__builtins__":
        _noted(outside(owner), name, old, new)


def _items(owner: Any, before: Any) -> None:
    """Note that a container holds other items."""
    plain = type(owner) in CONTAINERS
    if plain and _is_noted(contents(owner), ITEMS):
        return
    now = _copied(owner)
    _fill(owner, before)
    if plain:
        changing(owner)
    else:
        check_changeable(owner)
    _fill(owner, now)


def _fill(owner: Any, items: Any) -> None:
    owner.clear()
    if isinstance(owner, (dict, set)):
        owner.update(items)
    else:
        owner.extend(items)


def _array(array: np.ndarray, before: np.ndarray) -> None:
    array[...] = before
    _refuse("an array that was made outside of the function")


def _refuse(what: str) -> None:
    raise UnrecordableError.here(
        f"the body of a loop or branch is recorded once for all its steps, and a method that "
        f"Python runs by itself here changes {what}. Call a method by its name, "
        "which is followed, and change attributes of objects that the function has made."
    )
