"""What the items of a list have in common: their structure, and the kinds of their leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckad import trees
from ckad.trace.source.choices import Choice, as_choice, can_be_chosen
from ckad.trace.source.values import Slot, flatten, is_kept, join, slot_of


class Kind:
    """What the items of a list have in common: their structure, and the kinds of their leaves.

    A leaf that is one of several known objects has their numbers as its ``options``.
    """

    __slots__ = ("options", "slots", "tree")

    def __init__(
        self,
        tree: trees.Treedef,
        slots: Sequence[Slot],
        options: Sequence[frozenset[int] | None] | None = None,
    ) -> None:
        self.tree, self.slots = tree, tuple(slots)
        self.options = (None,) * len(self.slots) if options is None else tuple(options)

    @property
    def nbytes(self) -> int:
        """Bytes of one item."""
        return sum(slot.type.nbytes for slot in self.slots)

    @property
    def is_of_numbers(self) -> bool:
        return all(x is None for x in self.options)

    def joined(self, other: Kind) -> Kind | None:
        """The kind that holds items of both; None if there is none."""
        if self.tree != other.tree:
            return None
        slots = []
        for one, two in zip(self.slots, other.slots, strict=True):
            both = join(one, two)
            if both is None or not (is_kept(one, both) and is_kept(two, both)):
                return None
            if one.scalar != two.scalar:
                return None
            slots.append(both)
        pairs = list(zip(self.options, other.options, strict=True))
        if any((one is None) != (two is None) for one, two in pairs):
            return None
        return Kind(self.tree, slots, [one and one | (two or one) for one, two in pairs])

    def is_like(self, other: Kind) -> bool:
        return self.slots == other.slots and self.options == other.options

    def holds(self, other: Kind) -> bool:
        return (both := self.joined(other)) is not None and both.is_like(self)


def kind_of(item: Any) -> Kind | None:
    """The kind of one item; None if not all in it are numbers and arrays."""
    leaves, tree = leaves_of(item)
    slots = [slot_of(0) if type(x) is _Known else slot_of(x) for x in leaves]
    found = [s for s in slots if s is not None]
    if not slots or len(found) < len(slots):
        return None
    return Kind(tree, found, [x.choice.options if type(x) is _Known else None for x in leaves])


def kind_of_numbers(items: Sequence[Any]) -> Kind | None:
    """One kind for items that are numbers; None if some are not."""
    slots = [slot_of(x) for x in items]
    return kind_of_all(items) if all(s is not None and s.scalar for s in slots) else None


class _Known:
    """A leaf that is one of several known objects, as its number among them."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice


def leaves_of(item: Any) -> tuple[list[Any], trees.Treedef]:
    """The leaves of an item, among them objects of which one is chosen."""
    leaves, tree = flatten(_closed(item))
    return [_closed(x) if can_be_chosen(x) else x for x in leaves], tree


def _closed(x: Any) -> Any:
    if type(x) is Choice or (x is not None and can_be_chosen(x)):
        return _Known(as_choice(x))
    if isinstance(x, tuple) and any(type(part) is Choice for part in x):
        return trees.with_items(x, [_closed(part) if type(part) is Choice else part for part in x])
    return x


def row_of(slot: Slot, leaf: Any) -> int:
    return slot.row(leaf.choice.number if type(leaf) is _Known else leaf)


def kind_of_all(items: Sequence[Any]) -> Kind | None:
    """One kind for all items."""
    kinds = [kind_of(item) for item in items]
    found = kinds[0] if kinds else None
    for one in kinds[1:]:
        found = None if found is None or one is None else found.joined(one)
    return found
