"""Powers of integers, which wrap around as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.trace.arrays import Array
from ckad.trace.integers.affine import is_at_least
from ckad.trace.memory.context import current
from ckad.trace.values.apply import apply, astype, broadcast
from ckad.trace.values.tracer import Tracer, fresh, known, lift, value

#: Of larger exponents, the last bit is enough for bases that are even, 1 or -1.
MOST = 127
#: Bits of an exponent.
_BITS = 63


def power(base: Tracer, exponent: Any, is_held: bool) -> Tracer:
    """``base ** exponent``; ``is_held``: the program stops where 64 bits do not hold it."""
    if isinstance(exponent, Tracer) or np.ndim(exponent):
        return _by_bits(base, lift(exponent), is_held)
    if exponent < 0:
        raise ValueError(at_place("Integers to negative integer powers are not allowed."))
    return _by_squares(base, int(exponent))


def _one(x: Tracer) -> Tracer:
    return fresh(current().builder.full(x.type, 1))


def _by_squares(x: Tracer, n: int) -> Tracer:
    result, square = _one(x), x
    while n:
        result = result * square if n & 1 else result
        n >>= 1
        square = square * square if n else square
    return result


def _by_bits(base: Tracer, exponent: Tracer, is_held: bool) -> Tracer:
    """Repeated squaring for an exponent that is not known yet; a negative one stops the program."""
    is_short = is_held or _is_small(exponent) or _has_short_period(base)
    base, exponent = broadcast(base, astype(exponent, np.int64))
    negative = astype(np.less(exponent, 0), np.int64)
    bits: Array = exponent + apply(Op.WRAP, negative, attrs=(1,))
    if is_short:
        bits = np.where(bits > MOST, MOST - 1 + bits % 2, bits)
    result: Array = _one(base)
    square = base
    for bit in range(MOST.bit_length() if is_short else _BITS):
        result = np.where(np.equal((bits // (1 << bit)) % 2, 1), result * square, result)
        square = square * square
    return fresh(value(result))


def _is_small(exponent: Tracer) -> bool:
    numbers = known(exponent)
    if numbers is not None:
        return bool(np.all(numbers <= MOST))
    return exponent.scalar and is_at_least(MOST, exponent)


def _has_short_period(base: Tracer) -> bool:
    numbers = known(base)
    return numbers is not None and bool(np.all((numbers % 2 == 0) | (np.abs(numbers) == 1)))
