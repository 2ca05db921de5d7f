"""Integers shorter than the tape's while tracing: the tape's own, and the dtype that NumPy has.

The numbers are always within the range of the dtype. ``uint64``, which sums of unsigned integers
have, is one of them: its numbers are below 2**63, and nothing is computed in it that may leave
that.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import ConcreteValueError, DtypeError
from ckad.trace import dispatch
from ckad.trace.memory.opened import is_text
from ckad.trace.values.array import Shaped
from ckad.trace.values.part import Part
from ckad.trace.values.tracer import Tracer, lift
from ckad.trees import SHORT

#: What unsigned integers are added up in.
UINT64 = np.dtype(np.uint64)


class Short(Shaped):
    """An array, a part of one or a NumPy scalar of short integers being recorded."""

    __slots__ = ("dtype", "numbers")
    kind = dispatch.SHORT
    __array_priority__ = 5000

    dtype: np.dtype
    numbers: Any  # Tracer or Part

    def __init__(self, numbers: Tracer | Part, dtype: np.dtype) -> None:
        self.numbers, self.dtype = numbers, np.dtype(dtype).newbyteorder("=")

    @property
    def scalar(self) -> bool:
        return isinstance(self.numbers, Tracer) and self.numbers.scalar

    @property
    def storage(self) -> Any:
        return self.numbers.storage

    @property
    def shape(self) -> tuple[Any, ...]:
        shape: tuple[Any, ...] = self.numbers.shape
        return shape

    @property
    def size(self) -> Any:
        return self.numbers.size

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        is_text(self)
        return f"<traced {self.dtype} of shape {self.shape}>"

    # --- numbers that may be known ---------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        numbers = self.numbers._known() if isinstance(self.numbers, Tracer) else None
        if numbers is not None:
            return np.array(numbers).astype(self.dtype if dtype is None else dtype)
        raise ConcreteValueError.here(
            f"a traced {self.dtype} value is turned into a plain NumPy array, or used where "
            "ckad takes longer numbers alone. Convert it before, with .astype(np.int64) or "
            ".astype(float)."
        )

    def __bool__(self) -> bool:
        return bool(self.numbers)

    def __float__(self) -> float:
        return float(self.numbers)

    def __int__(self) -> int:
        return int(self.numbers)

    def __index__(self) -> int:
        return operator.index(self.numbers)

    def __complex__(self) -> complex:
        return complex(self.numbers)

    def __format__(self, spec: str) -> str:
        return format(self.numbers, spec)

    def __hash__(self) -> int:
        return hash(self.numbers)


trees.register_short(Short, Tracer, Part)


# --- what is in range ----------------------------------------------------------------------------


def holds_traced(x: Any) -> bool:
    """Whether a traced value of any kind is in nested lists and tuples."""
    if isinstance(x, (list, tuple)):
        return any(map(holds_traced, x))
    return isinstance(x, dispatch.Traced)


def is_short(dtype: Any) -> bool:
    """Whether arrays of ``dtype`` are ``Short``."""
    return dtype in SHORT or dtype == UINT64


def is_plain_short(x: Any) -> bool:
    """Whether ``x`` is a plain array or scalar of integers too short for a tape."""
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype in SHORT


def constant(x: Any) -> Short:
    """A plain array or scalar of short integers."""
    return Short(lift(np.asarray(x).astype(np.int64) if np.ndim(x) else np.int64(x)), x.dtype)


def refuse_dtype(fact: str) -> NoReturn:
    raise DtypeError.here(
        f"{fact}, which ckad does not compute with. "
        "Convert the operands with .astype(np.float64) or .astype(np.int64)."
    )
