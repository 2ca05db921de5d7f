"""Integers shorter than the tape's while tracing: the tape's own, and the dtype that NumPy has.

The numbers are always within the range of the dtype. ``uint64``, which sums of unsigned integers
have, is one of them: its numbers are below 2**63, and nothing is computed in it that may leave
that.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import ConcreteValueError, DtypeError
from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.tape.types import DType
from ckad.trace import dispatch
from ckad.trace.memory.opened import is_text
from ckad.trace.values.apply import astype
from ckad.trace.values.array import Shaped
from ckad.trace.values.tracer import Tracer, fresh, known, lift, value
from ckad.trees import SHORT

UINT64 = np.dtype(np.uint64)
#: What short integers are promoted to, or added up in.
_FURTHER = frozenset({UINT64, np.dtype(np.int16), np.dtype(np.int32)})


class Short(Shaped):
    """An array or NumPy scalar of short integers being recorded."""

    __slots__ = ("dtype", "numbers")
    kind = dispatch.SHORT
    __array_priority__ = 5000

    dtype: np.dtype
    numbers: Tracer

    def __init__(self, numbers: Tracer, dtype: np.dtype) -> None:
        self.numbers, self.dtype = numbers, dtype

    @property
    def scalar(self) -> bool:
        return bool(self.numbers.scalar)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape

    @property
    def size(self) -> int:
        return self.numbers.size

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        is_text(self)
        return f"<traced {self.dtype} of shape {self.shape}>"

    # --- numbers that may be known ---------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        numbers = self.numbers._known()
        if numbers is not None:
            return np.array(numbers).astype(self.dtype if dtype is None else dtype)
        raise ConcreteValueError(
            at_place(
                f"a traced {self.dtype} value is turned into a plain NumPy array, or used where "
                "ckad takes longer numbers alone. Convert it before, with .astype(np.int64) or "
                ".astype(float)."
            )
        )

    def __bool__(self) -> bool:
        return bool(self.numbers)

    def __float__(self) -> float:
        return float(self.numbers)

    def __int__(self) -> int:
        return int(self.numbers)

    def __index__(self) -> int:
        return self.numbers.__index__()

    def __complex__(self) -> complex:
        return complex(self.numbers)

    def __format__(self, spec: str) -> str:
        return format(self.numbers, spec)

    def __hash__(self) -> int:
        return hash(self.numbers)


trees.register_short(Short, Tracer)


# --- what is in range ----------------------------------------------------------------------------


def holds_traced(x: Any) -> bool:
    """Whether a traced value of any kind is in nested lists and tuples."""
    if isinstance(x, (list, tuple)):
        return any(map(holds_traced, x))
    return isinstance(x, dispatch.Traced)


def is_short(dtype: Any) -> bool:
    """Whether arrays of ``dtype`` are ``Short``."""
    return dtype in SHORT or dtype in _FURTHER


def is_plain_short(x: Any) -> bool:
    """Whether ``x`` is a plain array or scalar of integers too short for a tape."""
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype in SHORT


def wrapped(numbers: Any, dtype: Any) -> Short:
    """Integers of the tape as the integers of ``dtype`` that are the same in its last bits."""
    bits = np.iinfo(dtype).bits
    if not isinstance(numbers, Tracer) or bits == 64:
        refuse_dtype(f"the result would have dtype {dtype}")
    if numbers.type.dtype is DType.BOOL:
        return Short(astype(numbers, np.int64), np.dtype(dtype))
    is_scalar = numbers.scalar
    full = numbers.type.with_dtype(DType.I64)
    row = value(astype(numbers, np.int64))
    half = 1 << (bits - 1) if np.iinfo(dtype).min else 0
    b = fresh(row).storage.trace.builder
    if half:
        row = b.emit(Op.ADD, [row, b.full(full, half)])
    row = b.emit(Op.AND, [row, b.full(full, (1 << bits) - 1)])
    if half:
        row = b.emit(Op.SUB, [row, b.full(full, half)])
    return Short(fresh(row, scalar=is_scalar), np.dtype(dtype))


def marked(numbers: Any, dtype: Any) -> Short:
    """Integers that are known to be in range."""
    if not isinstance(numbers, Tracer):
        refuse_dtype(f"the result would have dtype {dtype}")
    return Short(astype(numbers, np.int64), np.dtype(dtype))


def constant(x: Any) -> Short:
    """A plain array or scalar of short integers."""
    return Short(lift(np.asarray(x).astype(np.int64) if np.ndim(x) else np.int64(x)), x.dtype)


def fitting(x: Any, dtype: np.dtype) -> Any:
    """A Python number, which has to be in the range of ``dtype``."""
    number = known(x)
    if number is None:
        refuse_dtype(
            f"a Python number that is not known while the program is recorded meets {dtype} "
            "numbers, whose range it may leave"
        )
    found = np.asarray(number).item()
    if type(found) is int:
        dtype.type(found)  # OverflowError, as in NumPy
    return found


def cast(x: Any, dtype: np.dtype) -> Short:
    """``x`` as integers of ``dtype``, as an assignment and ``.astype`` convert it."""
    if isinstance(x, (list, tuple)):
        traced = holds_traced(x)
        x = dispatch.call(np.asarray, (x,), {}) if traced else np.asarray(x, dtype)
    if isinstance(x, Short) and x.dtype == dtype:
        return x
    if isinstance(x, Short):
        unsigned = dtype == UINT64 and x.dtype.kind == "u"
        return marked(x.numbers, dtype) if unsigned else wrapped(x.numbers, dtype)
    if isinstance(x, Tracer):
        if x.weak and x.dtype.kind == "i":
            return constant(dtype.type(fitting(x, dtype)))
        return wrapped(x, dtype)
    if isinstance(x, dispatch.Traced):
        refuse_dtype(f"a value of dtype {getattr(x, 'dtype', type(x))} is converted to {dtype}")
    if type(x) in (int, bool):
        return constant(dtype.type(x))
    plain = np.asarray(x).astype(dtype)
    return constant(plain if isinstance(x, np.ndarray) else plain[()])


def refuse_dtype(fact: str) -> NoReturn:
    raise DtypeError(
        at_place(
            f"{fact}, which ckad does not compute with. "
            "Convert the operands with .astype(np.float64) or .astype(np.int64)."
        )
    )
