"""Kernels on whole arrays: copies with strides, reductions, indexing, matrix products.

Each is a function of the address of an instruction's words and that of cell 0. Reductions fix their
order by the shape alone: a row of n elements is summed strip by strip, each strip in eight lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ckad.engines.vm.isa import STRIP
from ckad.engines.vm.kernels.elements import copy, sum_cells
from ckad.engines.vm.kernels.writing import DOUBLE, I64, Cells, Number, Writer

#: Writes what a kernel does with the words of its instruction.
Body = Callable[["Array"], None]


class Array(Writer):
    """A kernel in the making: its words, and the cells as float64 and as int64."""

    def __init__(self, name: str) -> None:
        super().__init__(name, 2)
        self.words = self.cells(self.arguments[0])
        self.base = self.arguments[1]
        self.f, self.i = self.cells(self.base, DOUBLE), self.cells(self.base)

    def first(self, n: int) -> list[Number]:
        return [self.words[k] for k in range(n)]


def fill(w: Array) -> None:
    n, dst, src = w.first(3)
    to, number = w.i.behind(dst), w.i[src]
    for k in w.loop(0, n):
        to[k] = number


def copy_nd(w: Array, added: str = "") -> None:
    """An odometer over the outer axes, the innermost axis in one go; ``added`` are such cells."""
    dst, src, rank = w.first(3)
    dims, to, by = w.words.behind(3), w.words.behind(rank + 3), w.words.behind(rank * 2 + 3)
    last = rank - 1
    inner, to_step, by_step = dims[last], to[last], by[last]
    outer = w.variable(1)
    for a in w.loop(0, last):
        outer.set(outer.now * dims[a])
    for row in w.loop(0, outer.now):
        d, s, left = w.variable(dst), w.variable(src), w.variable(row)
        for a in w.loop(0, last):
            axis = last - 1 - a
            at = left.now % dims[axis]
            left.set(left.now // dims[axis])
            d.add(at * to[axis])
            s.add(at * by[axis])
        copy_row(w, added, d.now, to_step, s.now, by_step, inner)


def copy_row(
    w: Writer, added: str, d: Number, to_step: Number, s: Number, by_step: Number, n: Number
) -> None:
    base = w.arguments[1]
    cells = w.cells(base, DOUBLE if added == "f" else I64)
    to, source = cells.behind(d), cells.behind(s)
    if added:
        for k in w.loop(0, n):
            to[k * to_step] = to[k * to_step] + source[k * by_step]
        return
    with w.either(to_step.equals(1) & by_step.equals(1)) as (near, apart):
        with near:
            copy(w, base, d, s, n)
        with apart:
            for k in w.loop(0, n):
                to[k * to_step] = source[k * by_step]


def sum_row(w: Array, src: Number, n: Number) -> Number:
    """Strip by strip, as a chain does it."""
    total = w.variable(0.0)
    for at in w.loop(0, n, STRIP):
        total.add(sum_cells(w, w.base, src + at, (n - at).least(STRIP)))
    return total.now


def reduce(
    w: Array, fold: Callable[[Array, Cells, Number, Number], Number], integers: bool
) -> None:
    """Reduce the middle axis of (outer, n, inner)."""
    dst, src, outer, n, inner = w.first(5)
    x = w.i if integers else w.f
    for o in w.loop(0, outer):
        for c in w.loop(0, inner):
            result = fold(w, x.behind(src + o * n * inner + c), n, inner)
            to = w.f if result.value.type == DOUBLE else w.i
            to[dst + o * inner + c] = result


def sum_rows(w: Array) -> None:
    """The sum of floats, of neighbours by vectors."""
    dst, src, outer, n, inner = w.first(5)
    with w.either(inner.equals(1)) as (near, apart):
        with near:
            for o in w.loop(0, outer):
                w.f[dst + o] = sum_row(w, src + o * n, n)
        with apart:
            reduce(w, _sum, False)


def _sum(w: Array, x: Cells, n: Number, step: Number) -> Number:
    total = w.variable(0.0 if x.type == DOUBLE else 0)
    for k in w.loop(0, n):
        total.add(x[k * step])
    return total.now


def _product(w: Array, x: Cells, n: Number, step: Number) -> Number:
    total = w.variable(1.0 if x.type == DOUBLE else 1)
    with w.when(n > 0):
        total.set(x[0])
    for k in w.loop(1, n):
        total.set(total.now * x[k * step])
    return total.now


def _position(w: Array, x: Cells, n: Number, step: Number, largest: bool) -> Number:
    """Position of the first extreme element; the first NaN counts as extreme."""
    best, found = w.variable(0), w.variable(0)
    for k in w.loop(0, n):
        a, b = x[k * step], x[best.now * step]
        better = a > b if largest else a < b
        if x.type == DOUBLE:
            better = better | a.is_nan()
        best.set((better & found.now.equals(0)).chosen(k, best.now))
        if x.type == DOUBLE:
            found.set(found.now | a.is_nan().chosen(1, w.number(0)))
    return best.now


def _extreme(w: Array, x: Cells, n: Number, step: Number, largest: bool) -> Number:
    return x[_position(w, x, n, step, largest) * step]


def cumsum(w: Array, integers: bool) -> None:
    dst, src, outer, n, inner, backward = w.first(6)
    x = w.i if integers else w.f
    for o in w.loop(0, outer):
        for c in w.loop(0, inner):
            at, total = o * n * inner + c, w.variable(0 if integers else -0.0)
            for k in w.loop(0, n):
                place = at + backward.equals(0).chosen(k, n - 1 - k) * inner
                total.add(x[src + place])
                x[dst + place] = total.now


def recurrence(w: Array, integers: bool) -> None:
    dst, a, x, outer, n, inner, backward = w.first(7)
    cells = w.i if integers else w.f
    for o in w.loop(0, outer):
        for c in w.loop(0, inner):
            at, s = o * n * inner + c, w.variable(0 if integers else -0.0)
            for k in w.loop(0, n):
                place = at + backward.equals(0).chosen(k, n - 1 - k) * inner
                s.set(cells[x + place] + cells[a + place] * s.now)
                cells[dst + place] = s.now


def gather(w: Array, far: bool) -> None:
    dst, src, idx, outer, n, n_idx, inner = w.first(7)
    src = w.i[src] if far else src
    for o in w.loop(0, outer):
        for k in w.loop(0, n_idx):
            to, source = dst + (o * n_idx + k) * inner, src + (o * n + w.i[idx + k]) * inner
            _copy_elements(w, to, source, inner)


def _copy_elements(w: Array, to: Number, source: Number, n: Number) -> None:
    with w.either(n.equals(1)) as (one, more):
        with one:
            w.i[to] = w.i[source]
        with more:
            copy(w, w.base, to, source, n)


def scatter(w: Array, added: str = "") -> None:
    dst, idx, src, outer, n, n_idx, inner = w.first(7)
    cells = w.f if added == "f" else w.i
    for o in w.loop(0, outer):
        for k in w.loop(0, n_idx):
            to, source = dst + (o * n + w.i[idx + k]) * inner, src + (o * n_idx + k) * inner
            if not added:
                _copy_elements(w, to, source, inner)
                continue
            for c in w.loop(0, inner):
                cells[to + c] = cells[to + c] + cells[source + c]


def matmul(w: Array, integers: bool) -> None:
    """A small product of matrices, each sum in order."""
    dst, x, y, batch, m, inner, n, tx, ty = w.first(9)
    cells = w.i if integers else w.f
    left_row, left_column = _steps(tx, m, inner)
    right_row, right_column = _steps(ty, inner, n)
    for page in w.loop(0, batch):
        to, left, right = dst + page * m * n, x + page * m * inner, y + page * inner * n
        for r in w.loop(0, m):
            for c in w.loop(0, n):
                total = w.variable(0 if integers else 0.0)
                for q in w.loop(0, inner):
                    a = cells[left + r * left_row + q * left_column]
                    total.add(a * cells[right + q * right_row + c * right_column])
                cells[to + r * n + c] = total.now


def _steps(transposed: Number, rows: Number, columns: Number) -> tuple[Number, Number]:
    """From one row to the next, and from one column to the next, of a matrix of rows x columns."""
    is_not = transposed.equals(0)
    return is_not.chosen(columns, 1), is_not.chosen(1, rows)


def _reductions() -> dict[str, Body]:
    found: dict[str, Body] = {
        "sum": sum_rows,
        "sum_integers": partial(reduce, fold=_sum, integers=True),
    }
    for suffix, integers in (("", False), ("_integers", True)):
        found[f"prod{suffix}"] = partial(reduce, fold=_product, integers=integers)
        for name, largest in (("max", True), ("min", False)):
            value, place = (partial(x, largest=largest) for x in (_extreme, _position))
            found[f"{name}{suffix}"] = partial(reduce, fold=value, integers=integers)
            found[f"arg{name}{suffix}"] = partial(reduce, fold=place, integers=integers)
    return found


#: The kernels by their names.
BODIES: dict[str, Body] = {
    "fill": fill,
    "copy_nd": copy_nd,
    "add_nd": partial(copy_nd, added="f"),
    "add_nd_integers": partial(copy_nd, added="i"),
    "cumsum": partial(cumsum, integers=False),
    "cumsum_integers": partial(cumsum, integers=True),
    "recurrence": partial(recurrence, integers=False),
    "recurrence_integers": partial(recurrence, integers=True),
    "gather": partial(gather, far=False),
    "gather_far": partial(gather, far=True),
    "scatter": scatter,
    "scatter_add": partial(scatter, added="f"),
    "scatter_add_integers": partial(scatter, added="i"),
    "matmul": partial(matmul, integers=False),
    "matmul_integers": partial(matmul, integers=True),
    **_reductions(),
}
