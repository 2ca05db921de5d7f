"""Kernels of cumulative sums and of first-order recurrences along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ckad.engines.native.ir.element import Array, Value, load, store, whole
from ckad.engines.native.ir.flow import carry
from ckad.engines.native.kernels.rows import (
    around,
    further,
    moved,
    nest,
    number,
    offset,
    plus,
    tiles,
    times,
)
from ckad.tape.ops import Op
from ckad.tape.types import DType

#: (builder, dtype, state, the operands' elements) -> the next state, which is also the result
Step = Callable[..., Value]


def _scan(
    b: ir.IRBuilder, step: Step, attrs: Sequence[int], out: Array, operands: Sequence[Array]
) -> None:
    """Columns side by side in vectors, the state of each in a register."""
    axis, backward = attrs
    outer, n, inner = around(out.type.shape, axis)
    if out.type.size == 0:
        return
    dtype = out.type.dtype
    with nest(b, [outer]) as (o,):
        page = offset(b, [o], [n * inner])

        def tile(first: Value, parts: Sequence[tuple[int, int]]) -> None:
            start = [number(dtype, -0.0, lanes) for _, lanes in parts]
            with carry(b, whole(0), whole(n), start) as (k, states, put):
                k = b.sub(whole(n - 1), k) if backward else k
                row = further(b, page, offset(b, [k], [inner]))
                rows = [moved(b, a, row) for a in (out, *operands)]
                put([_one(b, step, state, further(b, first, part), *rows)
                     for state, (part, _) in zip(states, parts, strict=True)])  # fmt: skip

        tiles(b, inner, tile)


def _one(
    b: ir.IRBuilder, step: Step, state: Value, at: Value, out: Array, *operands: Array
) -> Value:
    lanes = state.type.count if isinstance(state.type, ir.VectorType) else 1
    value = step(b, out.type.dtype, state, *[load(b, x, at, lanes) for x in operands])
    store(b, out, at, value)
    return value


def _recur(b: ir.IRBuilder, dtype: DType, state: Value, a: Value, x: Value) -> Value:
    return plus(b, dtype, x, times(b, dtype, a, state))


def _emitter(step: Step) -> Callable[..., None]:
    return lambda b, attrs, out, *operands: _scan(b, step, attrs, out, operands)


SCANS = {Op.CUMSUM: _emitter(plus), Op.RECURRENCE: _emitter(_recur)}
