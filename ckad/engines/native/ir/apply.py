"""An elementwise op on registers, by the emitters of its rule block.

Rows in registers, nests and kernels come here with operands of one width, and get the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ckad.engines.native.ir.element import (
    I32,
    Value,
    count_of,
    letter,
    narrow,
    register_type,
    rounded,
    widen,
)
from ckad.rules import RULES
from ckad.tape.ops import Op
from ckad.tape.types import DType

Emitter = Callable[..., Value]
#: Ops whose float32 result needs no rounding.
_EXACT = {Op.NEG, Op.ABS, Op.SIGN, Op.SELECT, Op.MAXIMUM, Op.MINIMUM, Op.COPYSIGN, Op.FLOOR,
          Op.CEIL, Op.TRUNC, Op.RINT, Op.STOP}  # fmt: skip
#: Ops of float32 that are written for it; of the rest LLVM sees that they could be.
_SINGLE = {Op.FMA, Op.SELECT, Op.MAXIMUM, Op.MINIMUM, Op.SQRT, Op.SAFEDIV}


def emitter(op: int, operands: Sequence[DType], out: DType) -> Emitter:
    """The emitter of an op for registers of these dtypes."""
    rule = RULES[op]
    emit = rule.emit
    if rule.single is not None and out is DType.F32:
        return rule.single
    if op == Op.SELECT:  # moves registers as they are, whatever they hold
        return emit["iii->i"]
    reads = "".join(letter(d) for d in operands)
    if op == Op.CONVERT and out is DType.BOOL and operands[0] is not DType.BOOL:
        return emit[f"{reads}->b"]
    return emit[f"{reads}->{letter(out)}"]


def apply(
    b: ir.IRBuilder, op: int, operands: Sequence[DType], out: DType, values: Sequence[Value]
) -> Value:
    """The result of an elementwise op on registers of one width."""
    emit = emitter(op, operands, out)
    vector = isinstance(values[0].type, ir.VectorType)
    if vector and getattr(emit, "scalar_only", False):
        result = _lane_by_lane(b, emit, values, out)
    elif out is DType.F32 and op in _SINGLE:
        stored = (narrow(b, d, x) if d is out else x for d, x in zip(operands, values, strict=True))
        return widen(b, out, emit(b, *stored), count_of(values[0]))
    else:
        result = emit(b, *values)
    return result if op in _EXACT else rounded(b, out, result)


def _lane_by_lane(b: ir.IRBuilder, emit: Emitter, values: Sequence[Value], out: DType) -> Value:
    lanes = values[0].type.count
    result = ir.Constant(register_type(out, lanes), ir.Undefined)
    for k in range(lanes):
        lane = ir.Constant(I32, k)
        one = emit(b, *(b.extract_element(x, lane) for x in values))
        result = b.insert_element(result, one, lane)
    return result
