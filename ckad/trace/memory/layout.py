"""How arrays lie in NumPy's memory, as far as that is known: whether a reshape shares it.

An array names a storage, whose axes lie in their order if it is ``plain``, and a path of views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Protocol

import numpy as np

from ckad.trace.memory.storage import Storage
from ckad.trace.memory.views import BroadcastView, Path, TransposeView


class Laid(Protocol):
    """What is asked of a tracer here."""

    @property
    def storage(self) -> Storage: ...

    @property
    def path(self) -> Path: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


def is_plain(x: Laid) -> bool:
    """Whether the axes certainly lie in memory in their order, or the layout does not matter.

    Then NumPy's new arrays of the same layout (elementwise results, copies) are C-contiguous.
    """
    if len(x.shape) < 2:
        return True
    return x.storage.plain and not any(
        isinstance(v, (TransposeView, BroadcastView)) for v in x.path
    )


def contiguity(x: Laid) -> bool | None:
    """Whether NumPy's array is C-contiguous; None if that cannot be known."""
    return agreed(x, lambda array: array.flags.c_contiguous)


def agreed(x: Laid, question: Callable[[np.ndarray], bool]) -> bool | None:
    answers = {question(array) for array in _possible_layouts(x)}
    return answers.pop() if len(answers) == 1 else None


def _possible_layouts(x: Laid) -> Iterator[np.ndarray]:
    """Arrays with the strides that ``x`` may have: a new array has its axes in some order."""
    shape = x.storage.type.shape
    orders = [tuple(range(len(shape)))] if x.storage.plain else permutations(range(len(shape)))
    for order in orders:
        turn = TransposeView(tuple(int(k) for k in np.argsort(order)))
        yield shadow([shape[k] for k in order], (turn, *x.path))


def can_reshape(array: np.ndarray, shape: Sequence[int]) -> bool:
    try:
        array.reshape(shape, copy=False)
    except ValueError:
        return False
    return True


def shadow(shape: Sequence[int], path: Path) -> np.ndarray:
    """An array that has the strides NumPy would give this view; its elements are never read."""
    strides = np.cumprod([8, *shape[:0:-1]])[::-1] if len(shape) else ()
    base = np.lib.stride_tricks.as_strided(np.empty(1), tuple(shape), tuple(map(int, strides)))
    for view in path:
        base = view.on(base)
    return base
