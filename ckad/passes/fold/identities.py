"""Rows on elements that are one of their operands, or a cheaper row, to the bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row
from ckad.tape.types import DType

UNIFORM = (Op.CONST, Op.BROADCAST)


def array(b: Builder, x: int) -> np.ndarray | None:
    row = b.rows[x]
    return b.constants[row.attrs[0]] if row.op is Op.CONST else None


def uniform(b: Builder, x: int) -> np.ndarray | None:
    """The scalar that a constant holds everywhere, if it was made from one or has one element."""
    row = b.rows[x]
    if row.op is Op.BROADCAST:
        return uniform(b, row.operands[0])
    known = array(b, x)
    return known.reshape(()) if known is not None and known.size == 1 else None


def _is(b: Builder, x: int, number: float) -> bool:
    if b.rows[x].op not in UNIFORM:
        return False
    u = uniform(b, x)
    return u is not None and bool(u == number)


def _product(b: Builder, row: Row, xs: list[int]) -> int | None:
    x, y = xs
    if _is(b, y, 1.0):
        return x
    return y if _is(b, x, 1.0) else None


def _power(b: Builder, row: Row, xs: list[int]) -> int | None:
    """A square, which derivatives of cubes are made of, is a product, rounded once as well."""
    return b.mul(xs[0], xs[0]) if _is(b, xs[1], 2.0) else None


def _fused(b: Builder, row: Row, xs: list[int]) -> int | None:
    x, y, z = xs
    if _is(b, y, 1.0):
        return b.add(x, z)
    return b.add(y, z) if _is(b, x, 1.0) else None


def _sum(b: Builder, row: Row, xs: list[int]) -> int | None:
    x, y = xs
    if row.type.dtype is DType.I64 and (_is(b, x, 0) or _is(b, y, 0)):
        return y if _is(b, x, 0) else x
    if b.rows[y].op is Op.NEG:
        return b.sub(x, b.rows[y].operands[0])
    return b.sub(y, b.rows[x].operands[0]) if b.rows[x].op is Op.NEG else None


def _difference(b: Builder, row: Row, xs: list[int]) -> int | None:
    x, y = xs
    return b.add(x, b.rows[y].operands[0]) if b.rows[y].op is Op.NEG else None


def _negation(b: Builder, row: Row, xs: list[int]) -> int | None:
    inner = b.rows[xs[0]]
    return inner.operands[0] if inner.op is Op.NEG else None


def same_type(b: Builder, row: Row, xs: list[int]) -> int | None:
    return xs[0] if b.type(xs[0]) == row.type else None


def _quotient(b: Builder, row: Row, xs: list[int]) -> int | None:
    return xs[0] if _is(b, xs[1], 1.0) else None


def _or(b: Builder, row: Row, xs: list[int]) -> int | None:
    x, y = xs
    if _is(b, x, False):
        return y
    return x if _is(b, y, False) else None


def _and(b: Builder, row: Row, xs: list[int]) -> int | None:
    """Of truth values; of integers it is bit by bit."""
    x, y = xs
    if row.type.dtype is not DType.BOOL:
        return None
    if _is(b, x, True):
        return y
    return x if _is(b, y, True) else None


#: What a row is, by its op; None if it is no other one.
IDENTITIES: dict[Op, Callable[[Builder, Row, list[int]], int | None]] = {
    Op.MUL: _product,
    Op.POW: _power,
    Op.DIV: _quotient,
    Op.FMA: _fused,
    Op.ADD: _sum,
    Op.SUB: _difference,
    Op.NEG: _negation,
    Op.CONVERT: same_type,
    Op.OR: _or,
    Op.AND: _and,
}
