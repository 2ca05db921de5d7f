"""A large matrix by its own transpose, by BLAS: one triangle is computed, the other is its mirror.

The result is cut into strips of rows, which threads share as they share blocks of other products.
A strip is computed from the diagonal on, and written as the columns below it as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ckad.engines.native.ir.element import I32, Array, Value, load, store, whole
from ckad.engines.native.ir.flow import count, smaller
from ckad.engines.native.kernels.blas import (
    MOST_SIDE,
    Product,
    call_product,
    call_routine,
    constant,
    number,
    product_of,
    sides,
)
from ckad.engines.native.kernels.rows import moved, offset
from ckad.tape.types import DType, Type

#: The symbols of the routines for a strip's part on the diagonal.
SYRK = {DType.F64: "ckad_dsyrk", DType.F32: "ckad_ssyrk"}


def is_gram(operands: Sequence[int], attrs: Sequence[int], out: Type) -> bool:
    """Whether a product of these rows is that of a matrix by its own transpose."""
    x, y = operands
    return x == y and attrs[0] != attrs[1] and out.shape[1] <= MOST_SIDE


def emit_strips(
    b: ir.IRBuilder, attrs: Sequence[int], arrays: Sequence[Array], first: Value, last: Value
) -> None:
    """The strips [first, last) of the result, which is the first of the arrays."""
    out, x = arrays[:2]
    p = product_of(attrs, out.type, x.type)
    height, _ = sides(p, out.type.dtype)
    n_strips = -(-p.m // height)
    rows, rest = (b.alloca(I32) for _ in range(2))
    with count(b, first, last) as strip:
        page, start = b.sdiv(strip, whole(n_strips)), b.srem(strip, whole(n_strips))
        start = b.mul(start, whole(height))
        stop = smaller(b, b.add(start, whole(height)), whole(p.m))
        own = moved(b, out, b.mul(page, whole(p.m * p.m)))
        given = moved(b, x, b.mul(page, whole(p.m * p.k)))
        b.store(b.trunc(b.sub(stop, start), I32), rows)
        b.store(b.trunc(b.sub(whole(p.m), stop), I32), rest)
        along = [1 if p.tx else p.k]
        upper, lower = (moved(b, given, offset(b, [at], along)) for at in (start, stop))
        _call_syrk(b, p, rows, moved(b, own, offset(b, [start, start], [p.m, 1])), upper)
        with b.if_then(b.icmp_signed("<", stop, whole(p.m))):
            right = moved(b, own, offset(b, [start, stop], [p.m, 1]))
            call_product(b, p, (rows, rest), right, upper, lower)
        _mirror(b, p.m, own, start, stop)


def _call_syrk(b: ir.IRBuilder, p: Product, n: Value, out: Array, x: Array) -> None:
    """BLAS counts by columns: what it calls the lower triangle is the upper one of rows."""
    dtype = out.type.dtype
    letters = [constant(b, ir.IntType(8), ord(letter)) for letter in ("L", "NT"[p.ty])]
    k, by_x, by_out = (constant(b, I32, s) for s in (p.k, p.m if p.tx else p.k, p.n))
    one, zero = (number(b, dtype, v) for v in (1.0, 0.0))
    call_routine(b, SYRK[dtype], [*letters, n, k, one, x.pointer, by_x, zero, out.pointer, by_out])


def _mirror(b: ir.IRBuilder, n: int, out: Array, start: Value, stop: Value) -> None:
    """What rows [start, stop) have right of the diagonal, below it."""
    with count(b, start, whole(n)) as row, count(b, start, smaller(b, row, stop)) as column:
        above = load(b, out, offset(b, [column, row], [n, 1]))
        store(b, out, offset(b, [row, column], [n, 1]), above)
