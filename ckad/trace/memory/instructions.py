"""Rows that compute a number, as Python's instructions on Python's numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.rules.registry import RULES
from ckad.tape.ops import Op
from ckad.tape.row import Row
from ckad.tape.types import DType


class Unknown:
    """A number that is only known when the program runs."""

    def __bool__(self) -> bool:
        raise TypeError("it is not known")


UNKNOWN = Unknown()
#: Numbers, each at the place of its row.
Values = list[Any]
Instruction = Callable[[Values], Any]

_PLAIN: dict[Op, Callable[..., Any]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.NEG: operator.neg,
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
    Op.NOT: operator.not_,
}


#: The same for whole numbers; by zero NumPy's rule holds.
_PLAIN_IF_WHOLE: dict[Op, Callable[..., Any]] = {
    Op.FLOORDIV: operator.floordiv,
    Op.MOD: operator.mod,
}
_EXTREME: dict[Op, Callable[..., Any]] = {Op.MAXIMUM: max, Op.MINIMUM: min}


def elementwise(row: Row, operands: Sequence[int], rows: Sequence[Row]) -> Instruction:
    if row.op in (Op.AND, Op.OR):
        return _logical(operands[0], operands[1], row.op is Op.OR)
    if row.op is Op.SELECT:
        return _select(*operands)
    function = _function(row, rows)
    if len(operands) == 1:
        return _of_one(function, *operands)
    if len(operands) == 2:
        return _of_two(function, *operands)

    def run(values: Values) -> Any:
        xs = [values[k] for k in operands]
        return UNKNOWN if any(x is UNKNOWN for x in xs) else function(*xs)

    return run


def _of_one(function: Callable[[Any], Any], operand: int) -> Instruction:
    def run(values: Values) -> Any:
        x = values[operand]
        return UNKNOWN if x is UNKNOWN else function(x)

    return run


def _of_two(function: Callable[[Any, Any], Any], one: int, other: int) -> Instruction:
    def run(values: Values) -> Any:
        x, y = values[one], values[other]
        return UNKNOWN if x is UNKNOWN or y is UNKNOWN else function(x, y)

    return run


def _function(row: Row, rows: Sequence[Row]) -> Callable[..., Any]:
    """What computes a row of Python's numbers."""
    by_rule, dtype = _by_rule(row), row.type.dtype
    if dtype is DType.F32 or any(rows[x].type.dtype is DType.F32 for x in row.operands):
        return by_rule
    if row.op is Op.WRAP:
        return _wrapped(row.attrs[0])
    if row.op is Op.CONVERT and dtype is DType.F64:
        return float
    whole = _PLAIN_IF_WHOLE.get(row.op) if dtype is DType.I64 else None
    if whole is not None:
        return lambda x, y: whole(x, y) if y else by_rule(x, y)
    if row.op in _EXTREME and dtype is DType.I64:
        return _EXTREME[row.op]
    return _PLAIN.get(row.op, by_rule)


def _wrapped(n: int) -> Callable[[int], int]:
    def run(x: int) -> int:
        if not -n <= x < n:
            raise IndexError(x)
        return x + n if x < 0 else x

    return run


def _by_rule(row: Row) -> Callable[..., Any]:
    evaluator = RULES[row.op].evaluate
    assert evaluator is not None

    def run(*xs: Any) -> Any:
        with np.errstate(all="ignore"):
            found = evaluator(row.type, row.attrs, *map(np.asarray, xs))
        return np.asarray(found, row.type.numpy).item()

    return run


def _logical(one: int, other: int, verdict: bool) -> Instruction:
    def run(values: Values) -> Any:
        x, y = values[one], values[other]
        if (x is not UNKNOWN and bool(x) == verdict) or (y is not UNKNOWN and bool(y) == verdict):
            return verdict
        return UNKNOWN if x is UNKNOWN or y is UNKNOWN else not verdict

    return run


def _select(predicate: int, one: int, other: int) -> Instruction:
    def run(values: Values) -> Any:
        verdict, x, y = values[predicate], values[one], values[other]
        if verdict is UNKNOWN:
            return x if x is not UNKNOWN and y is not UNKNOWN and x == y else UNKNOWN
        return x if verdict else y

    return run
