"""``np.nditer`` over traced arrays in C order, run from source as a user's code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ckad.trace.dispatch import reject
from ckad.trace.values.array import Array

#: What may be asked for; all of it is there always.
FLAGS = frozenset({"c_index", "multi_index", "refs_ok", "zerosize_ok"})
#: NumPy's options in their order.
OPTIONS = ("flags", "op_flags", "op_dtypes", "order", "casting", "op_axes", "itershape")


class Elements:
    """One element after the other of an array, or of several side by side."""

    def __init__(self, arrays: Any, is_one: bool) -> None:
        self.operands = arrays
        self.is_one = is_one
        self.nop = len(arrays)
        self.shape = arrays[0].shape
        self.ndim = len(self.shape)
        self.itersize = arrays[0].size
        self.iterindex = 0

    @property
    def finished(self) -> Any:
        return self.iterindex >= self.itersize

    @property
    def index(self) -> Any:
        return self.iterindex

    @property
    def multi_index(self) -> Any:
        if self.ndim == 1:
            return (self.iterindex,)
        rest: Any = self.iterindex
        found: list[Any] = []
        for n in reversed(self.shape):
            found.insert(0, rest % n)
            rest = rest // n
        return tuple(found)

    @property
    def value(self) -> Any:
        return self[0] if self.is_one else tuple([self[k] for k in range(self.nop)])

    def iternext(self) -> Any:
        self.iterindex += 1
        return self.iterindex < self.itersize

    def reset(self) -> None:
        self.iterindex = 0

    def close(self) -> None:
        return None

    def __len__(self) -> int:
        return self.nop

    def __getitem__(self, k: int) -> Any:
        """A view of the element, as NumPy gives it."""
        return self.operands[k][(*self.multi_index, ...)]

    def __setitem__(self, k: int, x: Any) -> None:
        self.operands[k][self.multi_index] = x

    def __enter__(self) -> Elements:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def __iter__(self) -> Iterator[Any]:
        for k in range(self.itersize):
            self.iterindex = k
            yield self.value
        self.iterindex = self.itersize


def iterated(op: Any, *rest: Any, **options: Any) -> Elements:
    """``np.nditer(op, ...)``."""
    is_one = not isinstance(op, (list, tuple))
    return Elements((op,) if is_one else tuple(op), is_one)


def stand_in(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What is run for ``np.nditer`` of traced arrays; None for anything else."""
    if callee is not np.nditer or not args:
        return None
    arrays = args[0] if isinstance(args[0], (list, tuple)) else [args[0]]
    if not any(isinstance(x, Array) for x in arrays):
        return None
    given = dict(zip(OPTIONS, args[1:], strict=False)) | options
    reject(bool(set(given.pop("flags", ())) - FLAGS), "np.nditer with flags that order or buffer")
    order = given.pop("order", "K")
    lies = all(isinstance(x, (Array, np.ndarray)) and x.flags.c_contiguous for x in arrays)
    alike = len({np.shape(x) for x in arrays}) == 1
    reject(not alike, "np.nditer of arrays of several shapes, or of None")
    reject(
        order not in ("C", "K") or not (lies or order == "C"), "np.nditer in another order than C"
    )
    given.pop("op_flags", None)
    reject(bool(given), f"np.nditer with {' and '.join(given)}")
    return iterated
