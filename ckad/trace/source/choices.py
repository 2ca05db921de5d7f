"""Names that are one of some known objects, such as members of an `enum.Enum` or words.

Where a branch binds a name to one of them on one side and to another on the other, the name becomes
a number: which of all objects of this kind it is. What is asked of it is looked up among those that
it may be.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import ConcreteValueError
from ckad.place import at_place
from ckad.trace.values.tracer import Tracer, lift

_objects: list[Any] = []
_numbers: dict[tuple[type, Any], int] = {}
_lock = threading.Lock()
#: Of an enumeration with so many members, any may be met where one is.
_FEW = 32


class Choice:
    """One of the known objects: the number of which it is, an integer that may be traced.

    ``options`` are the numbers of all that it may be.
    """

    __slots__ = ("number", "options")

    def __init__(self, number: Any, options: frozenset[int]) -> None:
        self.number, self.options = number, options

    def __repr__(self) -> str:
        return "<one of several objects>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        refuse()

    def _refuse(self, *_: Any) -> Any:
        refuse()

    __bool__ = __hash__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __call__ = _refuse

    @property
    def objects(self) -> list[Any]:
        """All that it may be."""
        return [_objects[k] for k in sorted(self.options)]

    def where(self, test: Callable[[Any], Any]) -> Any:
        """Whether it is one of the objects for which ``test`` is true: a flag."""
        passed = [k for k in sorted(self.options) if test(_objects[k])]
        if len(passed) in (0, len(self.options)):
            return bool(passed)
        found: Any = False
        for k in passed:
            found = np.logical_or(found, np.equal(self.number, k))
        return found

    def looked_up(self, values: list[Any]) -> Any:
        """The number among ``values``, one for each of the objects, that belongs to it."""
        found = values[-1]
        for k, x in list(zip(sorted(self.options), values, strict=True))[-2::-1]:
            found = np.where(np.equal(self.number, k), x, found)[()]
        return found


def refuse() -> NoReturn:
    raise ConcreteValueError(
        at_place(
            "which of several objects this is depends on a traced value, and what is asked of it "
            "here is not looked up in each of them. Choose by if state is ...: and elif, and "
            "compute in each branch."
        )
    )


def can_be_chosen(x: Any) -> bool:
    """Whether ``x`` is a known object that is told by its type and value."""
    return x is None or type(x) is str or isinstance(x, enum.Enum)


def number_of(x: Any) -> int:
    with _lock:
        key = type(x), x
        if key not in _numbers:
            _numbers[key] = len(_objects)
            _objects.append(x)
        return _numbers[key]


def as_choice(x: Any) -> Any:
    if not can_be_chosen(x):
        return x
    members = list(type(x)) if isinstance(x, enum.Enum) else []
    found = [x, *members] if len(members) <= _FEW else [x]
    return Choice(number_of(x), frozenset(map(number_of, found)))


def one_of(objects: list[Any], pick: Callable[[list[int]], Any]) -> Choice:
    """The one of some objects whose number ``pick`` finds among theirs."""
    numbers = [number_of(x) for x in objects]
    return Choice(pick(numbers), frozenset(numbers))


def unified(x: Any, y: Any) -> tuple[Any, Any]:
    """Two values of a name, as choices if they are different objects that can be chosen."""
    one, other = type(x) is Choice, type(y) is Choice
    both = can_be_chosen(x) and can_be_chosen(y) and (type(x), x) != (type(y), y)
    if not (one or other or both):
        return x, y
    x, y = as_choice(x), as_choice(y)
    if type(x) is Choice and type(y) is Choice:
        options = x.options | y.options
        return Choice(x.number, options), Choice(y.number, options)
    return x, y


def fitted(x: Any, tree: trees.Treedef) -> Any:
    """``x`` as a choice if ``tree`` is the structure of one: among all that either may be."""
    if tree.type is not Choice:
        return x
    one = as_choice(x)
    known: Choice = trees.unflatten(tree, [None])
    return Choice(one.number, one.options | known.options) if type(one) is Choice else x


def equal(x: Any, y: Any) -> Any:
    """Whether two values are equal, of which at least one is a choice."""
    one, other = (x, y) if type(x) is Choice else (y, x)
    if type(other) is Choice:
        return np.equal(one.number, other.number)
    return one.where(lambda known: known == other)


def identical(x: Any, y: Any) -> Any:
    """The same of ``is``."""
    one, other = (x, y) if type(x) is Choice else (y, x)
    return equal(one, other) if type(other) is Choice else one.where(lambda known: known is other)


def is_number(x: Any) -> bool:
    """Whether a value is one of some members of an `enum.IntEnum`."""
    return type(x) is Choice and all(isinstance(known, int) for known in x.objects)


def numbered(x: Any) -> Any:
    """``x``, of members of an `enum.IntEnum` the integer."""
    return x.looked_up([lift(int(known)) for known in x.objects]) if is_number(x) else x


def _rebuilt(options: frozenset[int], children: Any) -> Any:
    (number,) = children
    known = not isinstance(number, Tracer) and isinstance(number, (int, np.integer, np.ndarray))
    return _objects[int(number)] if known else Choice(number, options)


trees.register(Choice, lambda x: ((x.number,), x.options, ("number",)), _rebuilt)
