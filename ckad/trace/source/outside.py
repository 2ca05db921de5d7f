"""What a recording binds outside of its function, on classes, modules and among global names.

In Python it would stay. So it does here, but for what only means something while it is recorded,
traced values and functions made of them: there the value from before is put back.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from types import CellType, ModuleType
from typing import Any

from ckad.trace.source.missing import MISSING

#: Containers and objects are looked into to this depth.
DEEPEST = 4


class Outside:
    """What was there before."""

    def __init__(self) -> None:
        self._attributes: list[tuple[Any, str, Any, bool]] = []
        self._cells: list[tuple[CellType, Any]] = []
        self._items: list[tuple[MutableMapping[str, Any], str, Any]] = []
        self._whole: dict[int, tuple[MutableMapping[str, Any], dict[str, Any]]] = {}

    def attribute(self, owner: Any, name: str, before: Any, always: bool = False) -> None:
        """``owner.name`` is bound, and if ``always`` has its value from before in the end."""
        self._attributes.append((owner, name, before, always))

    def cell(self, cell: CellType) -> None:
        self._cells.append((cell, _content(cell)))

    def item(self, names: MutableMapping[str, Any], name: str) -> None:
        self._items.append((names, name, names.get(name, MISSING)))

    def whole(self, names: MutableMapping[str, Any]) -> None:
        """The program has got hold of a dict of names."""
        self._whole.setdefault(id(names), (names, dict(names)))

    def put_back(self, everything: bool) -> None:
        """At the end of the recording; ``everything`` if there is none."""
        for owner, name, before, always in reversed(self._attributes):
            if everything or always or is_recorded(getattr(owner, name, None)):
                _set(owner, name, before)
        for cell, before in reversed(self._cells):
            if everything or is_recorded(_content(cell)):
                _fill(cell, before)
        for names, copy in self._whole.values():
            self._items += [(names, name, copy.get(name, MISSING)) for name in {**names, **copy}]
        for names, name, before in reversed(self._items):
            now = names.get(name, MISSING)
            if now is not before and (everything or is_recorded(now)):
                _put(names, name, before)


def _set(owner: Any, name: str, before: Any) -> None:
    if before is not MISSING:
        setattr(owner, name, before)
    elif name in vars(owner):
        delattr(owner, name)


def _put(names: MutableMapping[str, Any], name: str, before: Any) -> None:
    if before is MISSING:
        names.pop(name, None)
    else:
        names[name] = before


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _fill(cell: CellType, value: Any) -> None:
    if value is MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def is_recorded(x: Any, depth: int = DEEPEST) -> bool:
    """Whether a value is, or holds, something that belongs to the recording."""
    if type(x).__module__.startswith("ckad.trace"):
        return True
    if not depth or isinstance(x, (str, bytes, int, float, complex, type, ModuleType)):
        return False
    return any(is_recorded(part, depth - 1) for part in _parts(x))


def _parts(x: Any) -> Any:
    if isinstance(x, (list, tuple, set, frozenset)):
        return x
    if isinstance(x, dict):
        return x.values()
    inner = getattr(x, "__self__", None)
    own = getattr(x, "__dict__", None)
    return [inner, *(own.values() if type(own) is dict else ())]
