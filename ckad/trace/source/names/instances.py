"""Objects that the bodies of loops and branches make: told by what they hold, as dataclasses are.

Every step makes another object, so that there is none which a name could be the number of. Where a
loop carries such an object, or a branch chooses it, its attributes are carried and chosen, and the
name shows a new object of the class that holds them.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Container, Iterable
from dataclasses import is_dataclass
from typing import Any

from ckad import trees
from ckad.trace.source.libraries import is_library
from ckad.trace.source.names.frame import enclosing, ledger, ledgers, made
from ckad.trace.source.outside.kinds import CONTAINERS, attributes


class Instance:
    """What an object holds, as the children of a structure; unflattened it is an object again."""

    __slots__ = ("held", "origin")

    def __init__(self, origin: Any, held: dict[str, Any]) -> None:
        self.origin, self.held = origin, held

    def holding(self, values: Iterable[Any]) -> Instance:
        """The same object with other values of its attributes."""
        return Instance(self.origin, dict(zip(self.held, values, strict=True)))


def note(x: Any) -> Any:
    """Note an object that a body has made."""
    if next(enclosing(), None) is not None and is_plain(x):
        ledger().passing[id(x)] = x
    return x


def is_passing(x: Any) -> bool:
    """Whether ``x`` is an object that a body has made, or stands for one."""
    return bool(ledgers()) and id(x) in ledger().passing


def is_plain(x: Any) -> bool:
    """Whether an object is no more than what its attributes hold."""
    kind: Any = type(x)
    if type(kind) not in (type, abc.ABCMeta) or is_library(kind.__module__) or is_dataclass(x):
        return False
    by_python = kind.__setattr__ is object.__setattr__ and kind.__new__ is object.__new__
    return by_python and kind.__getattribute__ is object.__getattribute__


class InBuffers:
    """A list or dict that is kept in buffers, in which Python sees no items: one without leaves,
    which is no other one."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __eq__(self, other: object) -> bool:
        return type(other) is InBuffers and self.owner is other.owner

    def __hash__(self) -> int:
        return id(self.owner)

    def __repr__(self) -> str:
        return f"a {type(self.owner).__name__} whose length is only known when the program runs"


trees.register(InBuffers, lambda x: ((), x, None), lambda x, _: x.owner)


def _is_whole(x: Any) -> bool:
    if type(x) not in CONTAINERS or not ledgers():
        return False
    found = ledger().contents.get(id(x))
    return getattr(found, "in_buffers", None) is not None


def holds_wholes(x: Any) -> bool:
    """Whether a list or dict in buffers is in ``x``."""
    return bool(ledgers()) and any(map(_is_whole, trees.flatten(x, _is_whole)[0]))


def flatten(x: Any) -> tuple[list[Any], trees.Treedef]:
    """Leaves and structure, with those of passing objects, and lists in buffers as wholes."""
    inner = ledgers() and ledger().contents and isinstance(x, (tuple, *CONTAINERS, Instance))
    leaves, tree = trees.flatten(x, _is_whole if inner or is_dataclass(x) else None)
    if any(is_passing(leaf) or _is_whole(leaf) for leaf in leaves):
        return trees.flatten(opened(x))
    return leaves, tree


def opened(x: Any, around: tuple[Any, ...] = ()) -> Any:
    """``x`` with what passing objects in it hold in their place."""
    if type(x) is Instance:
        return x.holding([opened(value, around) for value in x.held.values()])
    if is_passing(x):
        is_within = any(x is y for y in around)
        return x if is_within else opened(Instance(x, dict(attributes(x))), (*around, x))
    if _is_whole(x):
        return InBuffers(x)
    leaves, tree = trees.flatten(x, lambda y: type(y) is Instance or is_passing(y) or _is_whole(y))
    now = [opened(leaf, around) if leaf is not x else leaf for leaf in leaves]
    return x if all(map(operator.is_, leaves, now)) else trees.unflatten(tree, now)


def among(*values: Any) -> bool:
    """Whether there is a passing object in one of these containers."""
    return any(is_passing(leaf) for value in values for leaf in trees.flatten(value)[0])


def paired(x: Any, y: Any, changed: Container[int]) -> tuple[Instance, Instance] | None:
    """Two objects by what they hold, if they are of one class and at least one is passing.

    What a body has ``changed`` of an object that is not passing is not to be seen any more.
    """
    one, other = _held(x), _held(y)
    if one is None or other is None or type(one.origin) is not type(other.origin):
        return None
    objects = one.origin, other.origin
    known = [id(origin) for origin in objects if not is_passing(origin)]
    if len(known) == 2 or any(key in changed for key in known):
        return None
    if one.held.keys() != other.held.keys() or any(map(_holds_itself, objects)):
        return None
    return one, Instance(other.origin, {name: other.held[name] for name in one.held})


def _holds_itself(x: Any, around: tuple[Any, ...] = ()) -> bool:
    if not is_plain(x):
        return False
    inner = (*around, x)
    return any(x is y for y in around) or any(
        _holds_itself(value, inner) for value in attributes(x).values()
    )


def _held(x: Any) -> Instance | None:
    if type(x) is Instance:
        return x
    return Instance(x, dict(attributes(x))) if is_plain(x) else None


def fitted(x: Any, tree: trees.Treedef) -> Any:
    """An object by what it holds, where ``tree`` is the structure of that."""
    keys, own = tree.entries(), _held(x)
    if own is None or not keys or keys[0][0] is not type(own.origin):
        return x
    names = [name for _, name in keys]
    return Instance(own.origin, {n: own.held[n] for n in names}) if {*names} == {*own.held} else x


def _children(x: Instance) -> tuple[list[Any], Any, list[tuple[type, str]]]:
    kind, names = type(x.origin), tuple(x.held)
    return list(x.held.values()), (kind, names), [(kind, name) for name in names]


def _rebuilt(kind_and_names: tuple[type, tuple[str, ...]], values: Any) -> Any:
    kind, names = kind_and_names
    return _object(kind, zip(names, values, strict=True))


def copied(x: Any) -> Any:
    """Another object that holds what a passing one does now."""
    return _object(type(x), attributes(x).items())


def _object(kind: type, held: Iterable[tuple[str, Any]]) -> Any:
    new: Any = object.__new__(kind)
    for name, value in held:
        object.__setattr__(new, name, value)
    if ledgers():
        ledger().made[id(new)] = ledger().passing[id(new)] = made(new)
    return new


trees.register(Instance, _children, _rebuilt)


def pair_all(items: Iterable[Any], shared: Any) -> None:
    """Note that any of the items may be the same object; ``shared`` stands for that."""
    twins = ledger().twins
    for x in items:
        if id(x) in ledger().passing or type(x) in CONTAINERS or is_dataclass(type(x)):
            twins.setdefault(id(x), (x, {}))[1][id(shared)] = shared
            twins.setdefault(id(shared), (shared, {}))[1][id(x)] = x
