"""Kernels that find the place of the largest or smallest element along an axis.

The first of equal elements counts, and the first NaN before all numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ckad.engines.native.ir.element import I64, Array, Value, load, store, whole
from ckad.engines.native.ir.flow import carry
from ckad.engines.native.kernels.rows import (
    LANES,
    along,
    around,
    halves,
    moved,
    nest,
    offset,
    splat,
)
from ckad.tape.ops import Op
from ckad.tape.types import DType

#: A value and its place.
Found = tuple[Value, Value]


class Search:
    """Which of two elements is wanted."""

    def __init__(self, b: ir.IRBuilder, dtype: DType, largest: bool) -> None:
        self.b, self.dtype, self.relation = b, dtype, ">" if largest else "<"

    def ahead(self, x: Value, best: Value) -> Value:
        """Whether ``x`` replaces ``best``, which stands before it."""
        b = self.b
        if self.dtype > DType.F32:
            return b.icmp_signed(self.relation, x, best)
        better = b.fcmp_ordered(self.relation, x, best)
        first_nan = b.and_(b.fcmp_unordered("uno", x, x), b.fcmp_ordered("ord", best, best))
        return b.or_(better, first_nan)

    def later(self, best: Found, x: Found) -> Found:
        """The better one, ``x`` standing after ``best``."""
        return self._choose(self.ahead(x[0], best[0]), x, best)

    def either(self, x: Found, y: Found) -> Found:
        """The better one, wherever they stand."""
        b = self.b
        equal = b.not_(b.or_(self.ahead(x[0], y[0]), self.ahead(y[0], x[0])))
        first = b.and_(equal, b.icmp_signed("<", y[1], x[1]))
        return self._choose(b.or_(self.ahead(y[0], x[0]), first), y, x)

    def _choose(self, condition: Value, x: Found, y: Found) -> Found:
        return self.b.select(condition, x[0], y[0]), self.b.select(condition, x[1], y[1])


def _emit(b: ir.IRBuilder, largest: bool, attrs: Sequence[int], out: Array, x: Array) -> None:
    outer, n, inner = around(x.type.shape, attrs[0])
    if out.type.size == 0:
        return
    search = Search(b, x.type.dtype, largest)
    with nest(b, [outer]) as (o,):
        base = moved(b, x, offset(b, [o], [n * inner]))
        if inner == 1:
            store(b, out, o, _in_row(search, base, n))
            return
        target = moved(b, out, offset(b, [o], [inner]))

        def columns(first: Value, lanes: int) -> None:
            start = load(b, base, first, lanes), splat(b, whole(0), lanes)
            with carry(b, whole(1), whole(n), start) as (k, best, put):
                value = load(b, moved(b, base, offset(b, [k], [inner])), first, lanes)
                put(search.later((best[0], best[1]), (value, splat(b, k, lanes))))
            store(b, target, first, best[1])

        along(b, inner, columns)


def _in_row(search: Search, x: Array, n: int) -> Value:
    b, full = search.b, n - n % LANES
    best = load(b, x, whole(0)), whole(0)
    if full >= 2 * LANES:
        best = _in_vectors(search, x, full)
    else:
        full = 1
    with carry(b, whole(full), whole(n), best) as (at, found, put):
        put(search.later((found[0], found[1]), (load(b, x, at), at)))
    return found[1]


def _in_vectors(search: Search, x: Array, n: int) -> Found:
    """Every lane searches its own elements; then the lanes against each other, in halves."""
    b = search.b
    lanes = ir.Constant(ir.VectorType(I64, LANES), list(range(LANES)))
    with carry(b, whole(LANES), whole(n), [load(b, x, whole(0), LANES), lanes], LANES) as turn:
        at, best, put = turn
        places = b.add(splat(b, at, LANES), lanes)
        put(search.later((best[0], best[1]), (load(b, x, at, LANES), places)))
    value, place = best
    while isinstance(value.type, ir.VectorType):
        (x0, x1), (p0, p1) = halves(b, value), halves(b, place)
        value, place = search.either((x0, p0), (x1, p1))
    return value, place


def _emitter(largest: bool) -> Callable[..., None]:
    return lambda b, attrs, out, x: _emit(b, largest, attrs, out, x)


POSITIONS = {Op.ARGMAX: _emitter(True), Op.ARGMIN: _emitter(False)}
