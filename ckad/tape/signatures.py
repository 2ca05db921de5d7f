"""What every op takes: the types and attributes that its operands and its result may have.

One row of ``SIGNATURES`` per op that computes. A check says what is wrong by raising TapeError;
``verify`` adds the row it happened in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ckad.errors import TapeError
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.reasons import Reason
from ckad.tape.routines import result_type
from ckad.tape.types import DType, Type

Types = Sequence[Type]
#: (result, operands, attributes) -> None; TapeError if they do not fit
Check = Callable[[Type, Types, Sequence[int]], None]


def need(condition: bool, message: str) -> None:
    if not condition:
        raise TapeError(message)


def listed(types: Types) -> str:
    return f"({', '.join(map(str, types))})"


def count(attrs: Sequence[int], n: int) -> None:
    need(len(attrs) == n, f"{len(attrs)} attributes; it takes {n}")


def _flag(value: int) -> None:
    need(value in (0, 1), f"attribute {value} where 0 or 1 is meant")


def _axes(attrs: Iterable[int], t: Type) -> None:
    attrs = list(attrs)
    fits = all(0 <= a < len(t.shape) for a in attrs) and len(set(attrs)) == len(attrs)
    need(fits, f"axes {attrs} of a {t}")


# --- elementwise -------------------------------------------------------------------------------

_FLOAT = {DType.F64, DType.F32}
_NUMBER = _FLOAT | {DType.I64}
_ANY = _NUMBER | {DType.BOOL}


def _elementwise(domain: set[DType], result: DType | None = None) -> Check:
    """Operands of one type, its dtype in ``domain``; the result has that dtype, or ``result``."""

    def check(out: Type, xs: Types, attrs: Sequence[int]) -> None:
        x = xs[0]
        need(all(y == x for y in xs), f"operands {listed(xs)}; they need one type")
        need(x.dtype in domain, f"it is not defined on {x}")
        expected = x if result is None else x.with_dtype(result)
        need(out == expected, f"its type is {out}; the operands make it {expected}")

    return check


def _select(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    c, x, y = xs
    need(c == x.with_dtype(DType.BOOL), f"its condition is {c} for operands of {x}")
    need(x == y == out, f"choices {x} and {y} for a result of {out}")


def _convert(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    need(out.shape == xs[0].shape, f"{xs[0]} to {out}: the shape may not change")


def _wrap(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    count(attrs[:1], 1)
    need(len(attrs) < 3, f"attributes {tuple(attrs)}; it has a length and a reason")
    need(len(attrs) < 2 or attrs[1] in set(Reason), f"the reason {attrs[-1]}, which is unknown")
    need(xs[0].dtype == DType.I64 and out == xs[0], f"{xs[0]} to {out}; indices are int64")
    need(attrs[0] >= 0, f"an axis of length {attrs[0]}")


# --- shape -------------------------------------------------------------------------------------


def _same_dtype(out: Type, xs: Types) -> None:
    fits = all(x.dtype == out.dtype for x in xs)
    need(fits, f"{listed(xs)} to {out}: the dtype may not change")


def _reshape(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    _same_dtype(out, xs)
    need(out.size == xs[0].size, f"{xs[0].size} elements of {xs[0]} into {out.size} of {out}")


def _broadcast(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    _same_dtype(out, xs)
    shape, lead = xs[0].shape, len(out.shape) - len(xs[0].shape)
    fits = lead >= 0 and all(d in (1, e) for d, e in zip(shape, out.shape[lead:], strict=True))
    need(fits, f"{xs[0]} does not broadcast to {out}")


def _transpose(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    count(attrs, len(xs[0].shape))
    _axes(attrs, xs[0])
    _same_dtype(out, xs)


def _slice_of(whole: Type, part: Type, attrs: Sequence[int]) -> None:
    """``part`` lies in ``whole``: starts, then steps, one of each per axis."""
    n = len(whole.shape)
    need(len(part.shape) == n, f"a part {part} of {whole}: the ranks differ")
    need(part.dtype == whole.dtype, f"a part {part} of {whole}: the dtypes differ")
    count(attrs, 2 * n)
    for axis in range(n):
        start, step = attrs[axis], attrs[n + axis]
        length, last = part.shape[axis], start + step * (part.shape[axis] - 1)
        need(step != 0, f"the step along axis {axis} is 0")
        fits = length == 0 or (min(start, last) >= 0 and max(start, last) < whole.shape[axis])
        need(fits, f"places {start} to {last} along axis {axis} of {whole}")


def _slice(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    _slice_of(xs[0], out, attrs)


def _pad(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    _slice_of(out, xs[0], attrs)


def _update(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    _slice_of(xs[0], xs[1], attrs)
    need(out == xs[0], f"its type is {out}, not that of the array written to, {xs[0]}")


def _concat(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    count(attrs, 1)
    need(len(xs) > 0, "nothing to join")
    _axes(attrs, xs[0])
    _same_dtype(out, xs)
    axis = attrs[0]
    others = {(*t.shape[:axis], -1, *t.shape[axis + 1 :]) for t in (*xs, out)}
    need(len(others) == 1, f"{listed(xs)} to {out}: only axis {axis} may differ")
    total = sum(t.shape[axis] for t in xs)
    need(out.shape[axis] == total, f"parts of total length {total} in {out}")


def _roll(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    count(attrs, 2)
    _axes(attrs[1:], xs[0])
    need(out == xs[0], f"{xs[0]} to {out}: a roll keeps the type")


# --- index, reduce, linalg ---------------------------------------------------------------------


def _gather_type(x: Type, idx: Type, axis: int) -> Type:
    _axes([axis], x)
    need(idx.dtype == DType.I64, f"indices are {idx}; they have to be int64")
    return x.with_shape((*x.shape[:axis], *idx.shape, *x.shape[axis + 1 :]))


def _gather(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    count(attrs, 1)
    expected = _gather_type(xs[0], xs[1], attrs[0])
    need(out == expected, f"its type is {out}; the operands make it {expected}")


def _scatter(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    expected = _gather_type(xs[0], xs[1], attrs[0])
    need(xs[2] == expected, f"{xs[2]} is put where {expected} is needed")
    need(out == xs[0], f"its type is {out}, not that of the array written to, {xs[0]}")


def _scatter_set(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    count(attrs, 2)
    _flag(attrs[1])
    _scatter(out, xs, attrs)


def _scatter_add(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    count(attrs, 1)
    _scatter(out, xs, attrs)


def _reduce(domain: set[DType], n_axes: int | None = None, empty: bool = True) -> Check:
    def check(out: Type, xs: Types, attrs: Sequence[int]) -> None:
        if n_axes is not None:
            count(attrs, n_axes)
        _axes(attrs, xs[0])
        need(xs[0].dtype in domain, f"it is not defined on {xs[0]}")
        defined = empty or not out.size or all(xs[0].shape[a] for a in attrs)
        need(defined, f"{xs[0]} over axes {list(attrs)}: no elements to choose from")

    return check


def _cumulative(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    count(attrs, 2)
    _axes(attrs[:1], xs[0])
    _flag(attrs[1])
    fits = xs[0].dtype in _NUMBER and all(x == out for x in xs)
    need(fits, f"{listed(xs)} to {out}; it needs numbers of one type")


def _matmul(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    count(attrs, 2)
    for attr in attrs:
        _flag(attr)
    _same_dtype(out, xs)
    fits = xs[0].dtype in _NUMBER and all(len(x.shape) == 3 for x in xs)
    need(fits, f"{listed(xs)}; it needs numbers in three axes")
    (batch, *x), (batches, *y) = xs[0].shape, xs[1].shape
    fits = batch == batches and x[1 - attrs[0]] == y[attrs[1]]
    need(fits, f"{listed(xs)} with transposed={tuple(attrs)} do not fit together")


def _call(out: Type, xs: Types, attrs: Sequence[int]) -> None:
    fits = all(t.dtype in (DType.F64, DType.I64) for t in (out, *xs))
    need(fits, f"{listed(xs)} -> {out}; a routine takes float64 and int64")
    expected = result_type(*xs, attrs=attrs)
    need(out == expected, f"its type is {out}; the operands make it {expected}")


SIGNATURES: dict[int, Check] = {
    **{op: _elementwise(_FLOAT) for op, row in OPS.items() if row.group is Group.ELEMENTWISE},
    **{Op[name]: _elementwise(_NUMBER) for name in "NEG ABS SIGN ADD SUB MUL FLOORDIV MOD".split()},
    **{op: _elementwise(_ANY) for op in (Op.MAXIMUM, Op.MINIMUM)},
    **{Op[name]: _elementwise(_ANY, DType.BOOL) for name in "EQ NE LT LE GT GE".split()},
    **{op: _elementwise({DType.I64, DType.BOOL}) for op in (Op.AND, Op.OR, Op.XOR)},
    Op.NOT: _elementwise({DType.BOOL}),
    Op.ISNAN: _elementwise(_FLOAT, DType.BOOL),
    Op.ISINF: _elementwise(_FLOAT, DType.BOOL),
    Op.SELECT: _select,
    Op.CONVERT: _convert,
    Op.WRAP: _wrap,
    Op.RESHAPE: _reshape,
    Op.BROADCAST: _broadcast,
    Op.TRANSPOSE: _transpose,
    Op.SLICE: _slice,
    Op.PAD: _pad,
    Op.UPDATE: _update,
    Op.SLICE_ADD: _update,
    Op.CONCAT: _concat,
    Op.ROLL: _roll,
    Op.GATHER: _gather,
    Op.SCATTER: _scatter_set,
    Op.SCATTER_ADD: _scatter_add,
    Op.SUM: _reduce(_NUMBER),
    Op.PROD: _reduce(_NUMBER, 1),
    Op.REDUCE_MAX: _reduce(_ANY, empty=False),
    Op.REDUCE_MIN: _reduce(_ANY, empty=False),
    Op.ARGMAX: _reduce(_ANY, 1, empty=False),
    Op.ARGMIN: _reduce(_ANY, 1, empty=False),
    Op.CUMSUM: _cumulative,
    Op.RECURRENCE: _cumulative,
    Op.MATMUL: _matmul,
    Op.CALL: _call,
}
