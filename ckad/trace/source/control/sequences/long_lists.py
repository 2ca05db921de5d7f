"""Long lists of numbers, which loops and comprehensions run over as if they were arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.place import at_place
from ckad.trace.source.control.sequences.iteration import Items, of_known
from ckad.trace.source.memory.contents import is_unclear, stack_of
from ckad.trace.source.values import slot_of
from ckad.trace.values.tracer import Tracer

#: Lists of so many numbers are run over as arrays are; the types of these.
LONG = 32
_NUMBERS = (float, int, np.float64, np.int64, Tracer)


def listed_numbers(x: Any) -> Items | None:
    """The items of a long list or tuple of numbers, as those of an array; None for any other."""
    if type(x) not in (list, tuple) or stack_of(x) is not None or len(x) < LONG:
        return None
    if not all(type(one) in _NUMBERS for one in x) or len(kinds := set(map(slot_of, x))) > 1:
        return None
    (kind,) = kinds
    return None if kind is None or kind.type.shape else of_known(x)


class Unchanged:
    """A list that a loop runs over by its numbers as they were: its steps may not change it."""

    def __init__(self, items: Any) -> None:
        self._items, self._before = items, tuple(items)

    def check(self) -> None:
        now = () if stack_of(self._items) or is_unclear(self._items) else tuple(self._items)
        if len(now) != len(self._before) or any(map(operator.is_not, now, self._before)):
            raise UnrecordableError(
                at_place("a loop runs over a list that its steps change, which is not recorded")
            )
