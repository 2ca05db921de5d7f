"""How arrays lie in memory in NumPy, as far as that is known: it decides what is a view of what.

A new array is dense, and its axes lie in memory in some order: in their own if those of all that it
is made of do. A view of it lies as its strides say. Of what a loop or a branch chose, less may be
known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, permutations, product
from typing import Any, NamedTuple, Protocol, TypeGuard, TypeVar

import numpy as np

from ckad.trace.memory.storage import Storage
from ckad.trace.memory.views import (
    BroadcastView,
    PartView,
    Path,
    SliceView,
    TransposeView,
    is_static,
)

T = TypeVar("T")


class Laid(Protocol):
    """What is asked of a tracer here: its memory, and how it looks at that."""

    @property
    def storage(self) -> Storage: ...

    @property
    def path(self) -> Path: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def scalar(self) -> bool: ...


def _is_laid(x: Any) -> TypeGuard[Laid]:
    return hasattr(x, "storage")


class Layout(NamedTuple):
    """What is known of an array: its axes lie in their order, and it has no gaps (`Storage`)."""

    plain: bool
    dense: bool

    def or_as(self, other: Layout) -> Layout:
        return Layout(self.plain and other.plain, self.dense and other.dense)


def layout(x: Any) -> Layout:
    """The layout of an array, which what stands for it by value keeps."""
    if isinstance(x, np.ndarray):
        return Layout(is_plain(x), x.flags.c_contiguous)
    if not _is_laid(x) or x.scalar:
        return Layout(True, True)
    turned = all(isinstance(view, TransposeView) for view in x.path)
    return Layout(is_plain(x), (x.storage.dense and turned) or bool(contiguity(x)))


def layout_of_part(array: np.ndarray) -> Layout:
    """The layout of the complex array of which ``array`` is the real or imaginary part."""
    steps = np.cumprod([2 * array.itemsize, *array.shape[:0:-1]])[::-1]
    return Layout(is_plain(array), array.strides == tuple(map(int, steps)))


def is_plain(x: Any) -> bool:
    """Whether the axes certainly lie in memory in their order, or the layout does not matter.

    Then NumPy's new arrays of the same layout (elementwise results, copies) are C-contiguous.
    """
    if isinstance(x, np.ndarray):
        steps = [abs(s) for s, n in zip(x.strides, x.shape, strict=True) if n > 1]
        return len(steps) < 2 or all(s >= t > 0 for s, t in pairwise(steps))
    if not _is_laid(x) or len(x.shape) < 2:
        return True
    if not x.path:
        return x.storage.plain
    return x.storage.plain and not any(
        isinstance(v, (TransposeView, BroadcastView)) for v in x.path
    )


def plain_layout(xs: Sequence[Any], result: Any) -> Any:
    """Mark the result's memory layout as unknown if the axes of an operand are not in order.

    NumPy gives the result of an elementwise function the layout of its operands (as they were
    before conversion and broadcasting); whether a later reshape of it is a view depends on that.
    """
    if len(result.shape) > 1 and not all(map(is_plain, xs)):
        result.storage.plain = False
    return result


# --- does NumPy share memory? ------------------------------------------------------------------


def contiguity(x: Laid) -> bool | None:
    """Whether NumPy's array is C-contiguous; None if that cannot be known."""
    return _agreed(x, _is_contiguous)


def is_view(x: Laid, shape: Sequence[int]) -> bool | None:
    """Whether NumPy's reshape of ``x`` is a view of it; None if that cannot be known."""
    return _agreed(x, _can_reshape, tuple(shape))


def strides(x: Laid) -> tuple[int, ...] | None:
    """How many elements lie between neighbours along each axis; None if that cannot be known."""
    if any(isinstance(view, PartView) and view.whole % view.part for view in x.path):
        return None
    return _agreed(x, _steps)


def offset(x: Laid) -> int | None:
    """Where the first element lies in the memory; None if that cannot be known."""
    if not (x.storage.plain and x.storage.dense and is_static(x.path)):
        return None
    if any(isinstance(view, PartView) for view in x.path):  # other memory lies between
        return None
    memory = shadow(x.storage.type.shape, ())
    seen = _seen(memory, x.path)
    return (seen.ctypes.data - memory.ctypes.data) // memory.itemsize


def _agreed(x: Laid, question: Callable[..., T], *about: Any) -> T | None:
    storage, path = x.storage, x.path
    known = storage.type.shape, storage.plain, storage.dense
    if not is_static(path):
        return _answer(*known, path, question, about)
    found: T | None = _answered(*known, path, tuple(map(type, path)), question, about)
    return found


@lru_cache(maxsize=4096)
def _answered(
    shape: tuple[int, ...],
    plain: bool,
    dense: bool,
    path: Path,
    kinds: tuple[type, ...],  # views of two kinds may be equal as tuples
    question: Callable[..., Any],
    about: tuple[Any, ...],
) -> Any:
    return _answer(shape, plain, dense, path, question, about)


def _answer(
    shape: tuple[int, ...],
    plain: bool,
    dense: bool,
    path: Path,
    question: Callable[..., T],
    about: tuple[Any, ...],
) -> T | None:
    try:
        answers = {question(x, *about) for x in _possible_layouts(shape, plain, dense, path)}
    except ValueError:  # ``x.flat`` of what lies in another order: an iterator, and no view
        return None
    return answers.pop() if len(answers) == 1 else None


def _possible_layouts(
    shape: tuple[int, ...], plain: bool, dense: bool, path: Path
) -> Iterator[np.ndarray]:
    """Arrays with the strides that a view may have, its axes in any order and with any gaps."""
    orders = [tuple(range(len(shape)))] if plain else permutations(range(len(shape)))
    steps = list(product((1,) if dense else (1, 2), repeat=len(shape)))
    for order, step in product(orders, steps):
        whole = [shape[k] * s for k, s in zip(order, step, strict=True)]
        part = SliceView((*(0 for _ in step), *step), tuple(shape[k] for k in order))
        turn = TransposeView(tuple(int(k) for k in np.argsort(order)))
        yield shadow(whole, (part, turn, *path))


def _is_contiguous(array: np.ndarray) -> bool:
    return array.flags.c_contiguous


def _steps(array: np.ndarray) -> tuple[int, ...]:
    return tuple(s // array.itemsize for s in array.strides)


def _can_reshape(array: np.ndarray, shape: tuple[int, ...]) -> bool:
    try:
        array.reshape(shape, copy=False)
    except ValueError:
        return False
    return True


def shadow(shape: Sequence[int], path: Path) -> np.ndarray:
    """An array that has the strides NumPy would give this view; its elements are never read."""
    strides = np.cumprod([8, *shape[:0:-1]])[::-1] if len(shape) else ()
    base = np.lib.stride_tricks.as_strided(np.empty(1), tuple(shape), tuple(map(int, strides)))
    return _seen(base, path)


def _seen(base: np.ndarray, path: Path) -> np.ndarray:
    for view in path:
        base = view.on(base)
    return base
