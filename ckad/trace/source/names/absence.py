"""Names that are None or a value, which of them depends on a traced condition.

``is None`` reads a flag. Any other use needs the value, as in Python, where None would raise: the
program stops there if the flag says so. On the side of a branch that the flag itself decides, the
value is known to be there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import ConcreteValueError, UnrecordableError
from ckad.place import at_place
from ckad.trace.dispatch import Traced
from ckad.trace.memory.context import current
from ckad.trace.source.actions import certain, none_used
from ckad.trace.source.names.bindings import MISSING
from ckad.trace.source.names.frame import region
from ckad.trace.source.names.instances import flatten
from ckad.trace.source.outside.kinds import CONTAINERS
from ckad.trace.values.tracer import Tracer


class OrNone:
    """``value`` where ``present``, a flag, is true; else None."""

    __slots__ = ("_absent", "present", "value")

    def __init__(self, value: Any, present: Any) -> None:
        self.value, self.present = value, present
        self._absent: Any = None

    @property
    def absent(self) -> Any:
        """The flag of None."""
        if self._absent is None or current() is not self._absent[0]:
            self._absent = current(), np.logical_not(self.present)
        return self._absent[1]

    @property
    def is_there(self) -> bool:
        """Whether it is known to be no None: always, or on the side of a branch."""
        if self.present is True or (_flag(self.present), True) in _assumed.flags:
            return True
        return self._absent is not None and (_flag(self._absent[1]), False) in _assumed.flags

    def __repr__(self) -> str:
        return "<traced: None or a value>"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def _refuse(self, *_: Any) -> Any:
        refuse("it is used where ckad does not look for None")

    __bool__ = __hash__ = __len__ = __iter__ = __getitem__ = __contains__ = __array__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __call__ = _refuse
    __float__ = __int__ = __index__ = __setitem__ = _refuse


def refuse(why: str) -> NoReturn:
    raise ConcreteValueError.here(
        f"whether this is None depends on a traced value, and {why}. Test it by 'if x is "
        "None:' before, or start with a number in place of None."
    )


trees.register(
    OrNone, lambda x: ((x.value, x.present), None, ("value", "present")), lambda _, xs: OrNone(*xs)
)


def or_none(x: Any) -> OrNone:
    return x if type(x) is OrNone else OrNone(x, True)


def spread(x: Any, tree: trees.Treedef) -> tuple[list[Any], trees.Treedef]:
    """The leaves of a name that is carried or merged as ``tree``, and their own structure.

    Where a value may be None, None is so many leaves that are missing, and the flag.
    """
    if tree.type is OrNone:
        if x is None:
            return [*[MISSING] * (tree.num_leaves - 1), False], tree
        return flatten(or_none(x))
    leaves, own = flatten(x)
    fits = isinstance(x, (tuple, dict)) and tree.type is type(x) and tree.num_children == len(x)
    if own == tree or not fits or (isinstance(x, dict) and sorted(x) != tree.entries()):
        return leaves, own
    items = trees.items_of(x)
    parts = [spread(item, child) for item, child in zip(items, tree.children(), strict=True)]
    whole = trees.with_children(x, [part for _, part in parts])
    return [leaf for found, _ in parts for leaf in found], whole


def shared(x: Any, y: Any) -> trees.Treedef | None:
    """The structure of both if something is None in one of two values and not in the other.

    None if there is no such thing, or if it could be changed by other names.
    """
    if type(x) is OrNone or type(y) is OrNone or (x is None) != (y is None):
        held = y if x is None else x
        return None if is_changeable(held) else flatten(or_none(held))[1]
    if not isinstance(x, (tuple, dict)) or type(x) is not type(y) or len(x) != len(y):
        return None
    if flatten(x)[1] == flatten(y)[1]:
        return None
    if isinstance(x, dict) and (set(x) != set(y) or any(type(key) is not str for key in x)):
        return None
    items = trees.items_of(x)
    found = [shared(one, other) for one, other in zip(items, trees.items_of(y), strict=True)]
    if not any(found):
        return None
    pairs = zip(found, items, strict=True)
    children = [flatten(item)[1] if tree is None else tree for tree, item in pairs]
    return trees.with_children(x, children)


def is_changeable(x: Any) -> bool:
    """Whether there is something in a value that can be changed where another name shows it."""
    if type(x) is OrNone:
        return is_changeable(x.value)
    if isinstance(x, tuple):
        return any(map(is_changeable, x))
    return isinstance(x, CONTAINERS) or (is_dataclass(x) and not isinstance(x, type))


# --- using one -----------------------------------------------------------------------------------


def given(x: Any) -> Any:
    """``x`` for a use that needs a value: the program stops where it is None."""
    if type(x) is not OrNone:
        return x
    return x.value if x.is_there else certain(x)


def needed(x: Any) -> Any:
    """The same where None raises a TypeError; in a body, which may not be run, it stops there."""
    if x is None and region() is not None:
        none_used()
    return given(x)


def blamed(error: Exception, args: Sequence[Any]) -> None:
    """In a body, stop the program there where None among ``args`` is why a function has raised;
    that it asks for a number is of the recording, and not of what is run."""
    asks = isinstance(error, (ConcreteValueError, UnrecordableError))
    if not asks and any(x is None for x in args):
        needed(None)


def check_operands(*xs: Any) -> None:
    """TypeError for None among numbers, which have no class of the user's to say otherwise."""
    if any(x is None for x in xs) and all(x is None or isinstance(x, _NUMBERS) for x in xs):
        for x in xs:
            needed(x)
        raise TypeError(
            at_place("None is used where a number is needed; a function without return gives None")
        )


_NUMBERS = (Traced, bool, int, float, complex, np.ndarray, np.number)


def given_deep(x: Any) -> Any:
    """The same in lists and tuples."""
    if type(x) in (list, tuple) and any(map(_holds, x)):
        return type(x)([given_deep(item) for item in x])
    return given(x)


def _holds(x: Any) -> bool:
    return type(x) is OrNone or (type(x) in (list, tuple) and any(map(_holds, x)))


def as_told(x: Any) -> Any:
    """``x`` as a branch around has found it to be, if it has asked whether it is None; the same
    in tuples."""
    if type(x) is OrNone and x.is_there:
        return x.value
    if isinstance(x, tuple) and any(map(_holds, x)):
        return trees.with_items(x, [as_told(item) for item in x])
    return x


# --- what a branch says --------------------------------------------------------------------------


class _Assumed(threading.local):
    def __init__(self) -> None:
        self.flags: list[tuple[int, bool]] = []  # flags by their memory, and what they are


_assumed = _Assumed()


def _flag(x: Any) -> int:
    return id(x.storage.root) if isinstance(x, Tracer) else 0


def side(flag: Any, wanted: bool, run: Callable[[], Any]) -> Callable[[], Any]:
    """``run``, on the side of a branch that a flag decides."""

    def known() -> Any:
        _assumed.flags.append((_flag(flag), wanted))
        try:
            return run()
        finally:
            _assumed.flags.pop()

    return known
