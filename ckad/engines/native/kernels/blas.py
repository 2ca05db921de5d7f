"""Large matrix products, by BLAS: blocks of the result, each a call.

Threads of ours share the blocks, and BLAS keeps to one thread meanwhile: which blocks there are
follows from the shape, so that bits depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir

from ckad.engines.native.ir.element import I32, STORED, Array, Value, whole
from ckad.engines.native.ir.flow import count, smaller
from ckad.engines.native.kernels.rows import LANES, further, moved
from ckad.tape.types import DType, Type

#: The symbols that calls to BLAS expect.
GEMM = {DType.F64: "ckad_dgemm", DType.F32: "ckad_sgemm"}
#: From this many multiplications on a product of two matrices is left to BLAS. Below, the loops are
#: as fast, and need neither SciPy nor a call.
LARGE_PRODUCT = 1 << 18
#: Loops add a float32 up as a double, which takes longer.
LARGE_SINGLE = 1 << 14
#: Up to so many, loops that add a float32 up as such are faster than SciPy's BLAS; up to how many,
#: where the right factor lies transposed.
MIDDLE_SINGLE, MIDDLE_TRANSPOSED = 1 << 20, 1 << 18
#: So few rows by the transpose of a matrix are dots of at least such a length: BLAS would pack the
#: whole matrix.
FEW_ROWS, LONG_ROW = (16, 32), 64
#: The same with both factors transposed, where nothing that is read together lies together.
LARGE_BOTH = 1 << 14
#: The longer side of the result is cut in two beyond the first of these, in four beyond the second:
#: each call packs its factors anew, which weighs more where products take half as long.
CUTS = {DType.F64: (128, 384), DType.F32: (256, 1024)}
#: Blocks have at most so many rows or columns: between calls Ctrl-C is answered.
MOST_SIDE = 1024
#: Blocks begin at multiples of what the kernels of BLAS do at once.
GRAIN = 16


class Product(NamedTuple):
    """[m, k] @ [k, n]; ``tx`` and ``ty`` say which factor lies transposed."""

    m: int
    k: int
    n: int
    tx: int
    ty: int

    def is_large(self, dtype: DType) -> bool:
        size = self.m * self.k * self.n
        if dtype not in GEMM or 1 in (self.m, self.k, self.n):
            return False
        if dtype is DType.F32:
            return size >= LARGE_SINGLE
        return size >= (LARGE_BOTH if self.tx and self.ty else LARGE_PRODUCT)

    def is_middle(self, dtype: DType) -> bool:
        """Whether loops do it as BLAS would, with products that are fused."""
        if not self.is_large(dtype) or (self.tx and self.ty):
            return False
        if dtype is not DType.F32:
            is_few = FEW_ROWS[0] <= self.m <= FEW_ROWS[1] and self.k >= LONG_ROW
            return bool(self.ty) and is_few and self.m * self.k * self.n < MIDDLE_SINGLE
        most = MIDDLE_TRANSPOSED if self.ty else MIDDLE_SINGLE
        return self.m * self.k * self.n <= most and min(self.k, self.n) >= LANES


def product_of(attrs: Sequence[int], out: Type, x: Type) -> Product:
    """What a row of MATMUL does for each matrix of a stack."""
    tx, ty = attrs
    return Product(out.shape[1], x.shape[1 if tx else 2], out.shape[2], tx, ty)


def n_blocks(attrs: Sequence[int], out: Type, x: Type) -> int:
    rows, columns = sides(product_of(attrs, out, x), out.dtype)
    return out.shape[0] * -(-out.shape[1] // rows) * -(-out.shape[2] // columns)


def sides(p: Product, dtype: DType) -> tuple[int, int]:
    """Rows and columns of a block."""
    longer = max(p.m, p.n)
    side = -(-longer // 2 ** sum(longer > cut for cut in CUTS[dtype]))
    cut = min(MOST_SIDE, -(-side // GRAIN) * GRAIN)
    rows, columns = min(p.m, MOST_SIDE), min(p.n, MOST_SIDE)
    return (min(cut, rows), columns) if p.m >= p.n else (rows, min(cut, columns))


def emit_blocks(
    b: ir.IRBuilder,
    attrs: Sequence[int],
    arrays: Sequence[Array],
    first: Value,
    last: Value,
) -> None:
    """The blocks [first, last) of the result, which is the first of the arrays."""
    p = product_of(attrs, arrays[0].type, arrays[1].type)
    rows, columns = sides(p, arrays[0].type.dtype)
    down, across = -(-p.m // rows), -(-p.n // columns)
    sizes = [b.alloca(I32) for _ in range(2)]
    with count(b, first, last) as block:
        page, within = _divided(b, block, down * across)
        r, c = (b.mul(k, whole(n)) for k, n in zip(_divided(b, within, across), (rows, columns),
                                                   strict=True))  # fmt: skip
        for place, at, side, n in zip(sizes, (r, c), (rows, columns), (p.m, p.n), strict=True):
            b.store(b.trunc(smaller(b, b.sub(whole(n), at), whole(side)), I32), place)
        at_out = _place(b, (page, p.m * p.n), (r, p.n), (c, 1))
        at_x = _place(b, (page, p.m * p.k), (r, 1 if p.tx else p.k))
        at_y = _place(b, (page, p.k * p.n), (c, p.k if p.ty else 1))
        parts = (moved(b, a, at) for a, at in zip(arrays, (at_out, at_x, at_y), strict=True))
        call_product(b, p, sizes, *parts)


def _divided(b: ir.IRBuilder, x: Value, n: int) -> tuple[Value, Value]:
    return (x, whole(0)) if n == 1 else (b.sdiv(x, whole(n)), b.srem(x, whole(n)))


def _place(b: ir.IRBuilder, *parts: tuple[Value, int]) -> Value:
    total = whole(0)
    for index, stride in parts:
        total = further(b, total, b.mul(index, whole(stride)))
    return total


def call_product(
    b: ir.IRBuilder, p: Product, sizes: Sequence[Value], out: Array, x: Array, y: Array
) -> None:
    """BLAS counts by columns: the result's transpose is the product of the factors' transposes.

    ``sizes`` are the places of the rows and columns that are wanted.
    """
    dtype, (m, n) = out.type.dtype, sizes
    letters = [constant(b, ir.IntType(8), ord("NT"[t])) for t in (p.ty, p.tx)]
    k, by_y, by_x, by_out = (
        constant(b, I32, s) for s in (p.k, p.k if p.ty else p.n, p.m if p.tx else p.k, p.n)
    )
    one, zero = (number(b, dtype, v) for v in (1.0, 0.0))
    arguments = [*letters, n, m, k, one, y.pointer, by_y, x.pointer, by_x, zero,
                 out.pointer, by_out]  # fmt: skip
    call_routine(b, GEMM[dtype], arguments)


def call_routine(b: ir.IRBuilder, name: str, arguments: Sequence[Value]) -> None:
    if name not in b.module.globals:
        ir.Function(b.module, ir.FunctionType(ir.VoidType(), [a.type for a in arguments]), name)
    b.call(b.module.globals[name], arguments)


def number(b: ir.IRBuilder, dtype: DType, value: float) -> Value:
    return constant(b, STORED[dtype], value)


def constant(b: ir.IRBuilder, type: ir.Type, value: float) -> Value:
    """A constant in memory: BLAS takes the address of everything."""
    name = f"ckad_{type}_{value}"
    if name not in b.module.globals:
        place = ir.GlobalVariable(b.module, type, name)
        place.initializer, place.global_constant = ir.Constant(type, value), True
        place.linkage = "internal"
    return b.module.globals[name]
