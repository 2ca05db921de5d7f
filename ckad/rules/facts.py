"""What is true of an op whatever it is used for: where it is finite, what changes nothing in it."""

from __future__ import annotations

import numpy as np

from ckad.tape.ops import Op

#: Ops whose results are finite wherever their operands are, and not very large.
FINITE = frozenset(
    Op[name]
    for name in """NEG ABS SIGN SIN COS ATAN TANH ERF FLOOR CEIL TRUNC RINT STOP ISNAN ISINF CONVERT
    ADD SUB MUL FMA ATAN2 HYPOT COPYSIGN MAXIMUM MINIMUM EQ NE LT LE GT GE SELECT SUM REDUCE_MAX
    REDUCE_MIN MATMUL CONCAT ROLL PAD NOT AND OR XOR""".split()
)
#: Those whose derivatives are finite there, too: of the two others they are not at the origin.
TAME = FINITE - {Op.ATAN2, Op.HYPOT}
#: Those whose derivatives are constant, so that they are finite wherever the operands are not.
LINEAR = frozenset({Op.ADD, Op.SUB, Op.NEG})

#: A number at which every other op is finite, and so is its derivative.
HARMLESS = 0.5
#: Where not even that is in the domain.
_HARMLESS_FOR = {Op.ACOSH: 1.5}


def harmless(*ops: Op) -> float:
    """A number at which these ops are finite, and so are their derivatives."""
    return max((_HARMLESS_FOR.get(op, HARMLESS) for op in ops), default=HARMLESS)


#: What sums, products and their like start from.
_NEUTRAL = {
    **dict.fromkeys((Op.ADD, Op.SUB, Op.OR, Op.XOR, Op.SUM), 0),
    **dict.fromkeys((Op.MUL, Op.AND, Op.PROD), 1),
}
_LEAST = (Op.MAXIMUM, Op.REDUCE_MAX)


def neutral(op: Op, dtype: np.dtype) -> float:
    """The number that changes nothing in a sum, product or extremum of this dtype."""
    if op in _NEUTRAL:
        return _NEUTRAL[op]
    sign = -1 if op in _LEAST else 1
    if dtype.kind == "f":
        return sign * float("inf")
    if dtype.kind == "b":
        return int(sign > 0)
    limits = np.iinfo(np.int64)
    return int(limits.min if sign < 0 else limits.max)
