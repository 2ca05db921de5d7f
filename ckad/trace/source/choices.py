"""Names that are one of some known objects, such as members of an `enum.Enum` or words.

Where a branch binds a name to one of them on one side and to another on the other, the name becomes
a number: which of all objects of this kind it is. It can be compared with them.
"""

from __future__ import annotations

import enum
import threading
from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import ConcreteValueError
from ckad.place import at_place
from ckad.trace.values.tracer import Tracer

_objects: list[Any] = []
_numbers: dict[tuple[type, Any], int] = {}
_lock = threading.Lock()


class Choice:
    """One of the known objects: the number of which it is, an integer that may be traced."""

    __slots__ = ("number",)

    def __init__(self, number: Any) -> None:
        self.number = number

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


def refuse() -> NoReturn:
    raise ConcreteValueError(
        at_place(
            "which of several objects this is depends on a traced value, and it can only be "
            "compared with them. Choose by if state is ...: and elif, and compute in each branch."
        )
    )


def _is_itself_alone(x: Any) -> bool:
    """Whether ``==`` says of an object that it is the very same."""
    compared: Any = type(x).__eq__
    return compared is object.__eq__


def can_be_chosen(x: Any) -> bool:
    """Whether ``x`` is a known object that equals itself alone."""
    return x is None or type(x) is str or (isinstance(x, enum.Enum) and _is_itself_alone(x))


def number_of(x: Any) -> int:
    with _lock:
        key = type(x), x
        if key not in _numbers:
            _numbers[key] = len(_objects)
            _objects.append(x)
        return _numbers[key]


def as_choice(x: Any) -> Any:
    return Choice(number_of(x)) if can_be_chosen(x) else x


def unified(x: Any, y: Any) -> tuple[Any, Any]:
    """Two values of a name, as choices if they are different objects that can be chosen."""
    one, other = type(x) is Choice, type(y) is Choice
    both = can_be_chosen(x) and can_be_chosen(y) and (type(x), x) != (type(y), y)
    return (as_choice(x), as_choice(y)) if one or other or both else (x, y)


def equal(x: Any, y: Any) -> Any:
    """Whether two values are one object, of which at least one is a choice."""
    for one, other in ((x, y), (y, x)):
        if type(one) is Choice and type(other) is not Choice and not can_be_chosen(other):
            if _is_itself_alone(other) or isinstance(other, (int, float, tuple)):
                return False
            refuse()
    return np.equal(as_choice(x).number, as_choice(y).number)


def _rebuilt(_: Any, children: Any) -> Any:
    (number,) = children
    known = not isinstance(number, Tracer) and isinstance(number, (int, np.integer, np.ndarray))
    return _objects[int(number)] if known else Choice(number)


trees.register(Choice, lambda x: ((x.number,), None, ("number",)), _rebuilt)
