"""Arrays of integers among the arguments for whose numbers a function was recorded.

Indices, as those of a sparse matrix, decide what is recorded where the tape has no number for them.
Such a recording is kept together with these numbers, from the second time on that they are met:
where they are others at each call, nothing is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from ckad import locks
from ckad.trace.arguments import Arguments
from ckad.transforms.reuse import Alone, Recorded, find

#: Functions of which it is known that they ask for numbers, and how many of these are remembered.
KEPT, MET = 128, 4
_met: OrderedDict[Hashable, list[int]] = OrderedDict()
_lock = locks.lock()


class Numbers:
    """Arrays as what they hold."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self._arrays = arrays

    def __hash__(self) -> int:
        return hash(tuple((x.dtype, x.shape, x.ravel()[:8].tobytes()) for x in self._arrays))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Numbers) or len(self._arrays) != len(other._arrays):
            return False
        pairs = zip(self._arrays, other._arrays, strict=True)
        return all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in pairs)

    @property
    def digest(self) -> int:
        return hash(tuple(x.tobytes() for x in self._arrays))


class _Key(NamedTuple):
    """What a recording for some numbers is kept under."""

    of_call: Hashable
    numbers: Numbers


def key_for(key: Hashable | Alone, given: Arguments) -> Hashable | Alone:
    """What a recording is kept under that has asked for the numbers of integers."""
    if isinstance(key, Alone) or not given.integers:
        return key
    numbers = Numbers([x.copy() for x in given.integers])  # the function may write into them
    digest = numbers.digest
    with _lock:
        met = _met.setdefault(key, [])
        _met.move_to_end(key)
        is_known = digest in met
        if not is_known:
            met[:] = [digest, *met][:MET]
        while len(_met) > KEPT:
            _met.popitem(last=False)
    return _Key(key, numbers) if is_known else Alone("it asks for an argument's numbers")


def kept_for(key: Hashable, given: Arguments) -> Recorded | None:
    """The recording that was made for these numbers."""
    return find(_Key(key, Numbers(given.integers)))


def are_asked(key: Hashable) -> bool:
    """Whether the numbers of integers have decided what calls with this key record."""
    return key in _met


def clear() -> None:
    """Forget all of it."""
    with _lock:
        _met.clear()
