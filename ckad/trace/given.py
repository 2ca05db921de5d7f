"""Arguments that are objects of dataclasses whose ``__post_init__`` computes attributes.

A derivative by such an object is one by what it was given: the others follow. So where it still is
what its class would make of that, it is a structure of that alone; where something was changed
since, its attributes are what they are, and there is no derivative by it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad import trees
from ckad.patterns import attributes_of, made_of
from ckad.trace.dispatch import Traced

Treedef = trees.Treedef


class Made:
    """An object by what its class was given."""

    def __init__(self, kind: type, fields: dict[str, Any]) -> None:
        self.kind, self.fields = kind, fields

    def whole(self) -> Any:
        """The object, with what its class computes."""
        return self.kind(**{name: whole(x) for name, x in self.fields.items()})

    def alone(self) -> Any:
        """A derivative by the object: what is computed has none."""
        made = made_of(self.kind, {name: alone(x) for name, x in self.fields.items()})
        for field in dataclasses.fields(self.kind):
            if not field.init:
                object.__setattr__(made, field.name, None)
        return made


trees.register(
    Made,
    lambda x: ((*x.fields.values(),), (x.kind, *x.fields), (*x.fields,)),
    lambda about, values: Made(about[0], dict(zip(about[1:], values, strict=True))),
)


def computes(x: Any) -> bool:
    """Whether ``x`` is an object of which ``__post_init__`` has computed something."""
    return bool(trees.is_dataclass(x) and hasattr(x, "__post_init__") and _computed(x))


def given(tree: Any, *, compare: bool = True) -> Any:
    """``tree`` with objects that are what their classes make of what these were given as that; of
    all objects if they are not to be compared."""
    return trees.map_leaves(lambda x: _given(x, compare), tree, computes)


def whole(tree: Any) -> Any:
    """The tree whose objects are given."""
    return _each(tree, Made.whole)


def alone(tree: Any) -> Any:
    """The same of derivatives."""
    return _each(tree, Made.alone)


def holds_computed(tree: Treedef) -> str:
    """The name of a class in a structure that computes attributes; empty if there is none."""
    kind: Any = tree.type
    if kind is Made:
        return ""
    may_compute = dataclasses.is_dataclass(kind) and hasattr(kind, "__post_init__")
    if may_compute and set(tree.entries()) - set(_fields(kind)):
        return str(kind.__qualname__)
    return next(filter(None, map(holds_computed, tree.children())), "")


def has_made(tree: Treedef) -> bool:
    """Whether something in a structure is given."""
    return tree.type is Made or any(map(has_made, tree.children()))


def _each(tree: Any, what: Callable[[Made], Any]) -> Any:
    return trees.map_leaves(
        lambda x: what(x) if type(x) is Made else x, tree, lambda x: type(x) is Made
    )


def _fields(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind) if field.init]


def _computed(x: Any) -> list[str]:
    fields = set(_fields(x))
    return [name for name in attributes_of(x) if name not in fields]


def _given(x: Any, compare: bool) -> Any:
    if not computes(x):
        return x
    made = Made(type(x), {name: getattr(x, name) for name in _fields(x)})
    if compare:
        try:
            if not _is_same(x, made.kind(**made.fields)):
                return x
        except Exception:  # its class is not made of its fields, or refuses these
            return x
    made.fields = {name: given(each, compare=compare) for name, each in made.fields.items()}
    return made


def _is_same(x: Any, y: Any) -> bool:
    """Whether two values are one, or hold the same numbers."""
    if type(x) is not type(y):
        return False
    if trees.is_dataclass(x):
        names = attributes_of(x)
        return names == attributes_of(y) and all(
            _is_same(getattr(x, name, None), getattr(y, name, None)) for name in names
        )
    if isinstance(x, (np.ndarray, np.generic, float, complex)):
        one, other = np.asarray(x), np.asarray(y)
        return (one.dtype, one.shape) == (other.dtype, other.shape) and (
            one.tobytes() == other.tobytes()
        )
    if isinstance(x, dict):
        return [*x] == [*y] and all(_is_same(x[key], y[key]) for key in x)
    if isinstance(x, (list, tuple)):
        return len(x) == len(y) and all(map(_is_same, x, y))
    if isinstance(x, (int, str, bytes, type(None))) or x is y:
        return bool(x == y)
    held = getattr(x, "__dict__", None)
    if held is None or callable(x) or isinstance(x, Traced):  # whose numbers nobody knows yet
        return False
    return _is_same(held, y.__dict__)
