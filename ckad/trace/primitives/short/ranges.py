"""Numbers brought into the range of a short dtype: wrapped around, or held to lie in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad import trees
from ckad.tape.ops import Op
from ckad.tape.reasons import Reason
from ckad.trace import dispatch
from ckad.trace.integers.affine import ANY, declare, range_of
from ckad.trace.values.apply import apply, astype
from ckad.trace.values.part import Part
from ckad.trace.values.short import UINT64, Short, constant, holds_traced, refuse_dtype
from ckad.trace.values.tracer import Tracer, fresh, known, value


def wrapped(numbers: Any, dtype: Any) -> Short:
    """Integers of the tape as the integers of ``dtype`` that are the same in its last bits."""
    found = marked(numbers, dtype)
    if np.iinfo(dtype).bits == 64:
        refuse_dtype(f"the result would have dtype {dtype}")
    if isinstance(found.numbers, Part):
        base = wrapped(found.numbers.base, dtype).numbers
        return Short(found.numbers.over(base), found.dtype)
    return found if _in_range(found.numbers, dtype) else Short(_cut(found.numbers, dtype), dtype)


def _in_range(x: Tracer, dtype: Any) -> bool:
    low, high = range_of(x) if not x.shape else ANY
    return bool(np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max)


def _cut(x: Tracer, dtype: np.dtype) -> Tracer:
    """The last bits of integers, in two's complement."""
    full, row = x.type, value(x)
    half = -int(np.iinfo(dtype).min)
    b = fresh(row).storage.trace.builder
    if half:
        row = b.emit(Op.ADD, [row, b.full(full, half)])
    row = b.emit(Op.AND, [row, b.full(full, (1 << np.iinfo(dtype).bits) - 1)])
    if half:
        row = b.emit(Op.SUB, [row, b.full(full, half)])
    cut = fresh(row, scalar=x.scalar)
    if not x.shape:
        declare(cut, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    return cut


def marked(numbers: Any, dtype: Any) -> Short:
    """Integers that are known to be in range."""
    if isinstance(numbers, Part):
        return Short(numbers.over(astype(numbers.base, np.int64)), np.dtype(dtype))
    if not isinstance(numbers, Tracer):
        refuse_dtype(f"the result would have dtype {dtype}")
    return Short(astype(numbers, np.int64), np.dtype(dtype))


def fitting(x: Any, dtype: np.dtype) -> Any:
    """A Python number, which has to be in the range of ``dtype``: else the program stops."""
    number = known(x)
    if number is None:
        return _stopping(astype(x, np.int64), dtype)
    found = np.asarray(number).item()
    if type(found) is int:
        dtype.type(found)  # OverflowError, as in NumPy
    return found


def _stopping(x: Tracer, dtype: np.dtype) -> Tracer:
    if _in_range(x, dtype):
        return x
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    outside = np.logical_or(np.less(x, low), np.greater(x, high))
    stop = apply(Op.WRAP, astype(outside, np.int64), attrs=(1, int(Reason.RANGE)))
    return apply(Op.ADD, x, stop)


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
            found = fitting(x, dtype)
            return (
                marked(found, dtype) if isinstance(found, Tracer) else constant(dtype.type(found))
            )
        return wrapped(x, dtype)
    if isinstance(x, Part):
        return wrapped(x, dtype)
    if isinstance(x, dispatch.Traced):
        refuse_dtype(f"a value of dtype {getattr(x, 'dtype', type(x))} is converted to {dtype}")
    if type(x) in (int, bool):
        return constant(dtype.type(x))
    plain = np.asarray(x).astype(dtype)
    return constant(plain if isinstance(x, np.ndarray) else plain[()])


def shortened(x: Any, y: Any) -> tuple[Any, Any]:
    """A short integer and a Python int that a name has by turns, as two of one dtype."""
    short, other = (x, y) if trees.is_short(x) else (y, x)
    is_number = not np.shape(short) and not isinstance(short, np.ndarray)
    if not is_number or not (type(other) is int or _is_int(other)):
        return x, y
    other = cast(other, short.dtype)
    return (short, other) if short is x else (other, short)


def _is_int(x: Any) -> bool:
    return isinstance(x, Tracer) and x.weak and x.dtype.kind == "i" and not x.classes
