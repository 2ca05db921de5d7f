"""The code of each op but the control rows: rows alone, and chains in strips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from ckad.engines.vm.assembly.assembler import Assembler
from ckad.engines.vm.assembly.calls import call_routine
from ckad.engines.vm.assembly.grouping import is_splat
from ckad.engines.vm.assembly.loops import CONTROL
from ckad.engines.vm.assembly.placement import ROUND, Placement
from ckad.engines.vm.assembly.region import Region
from ckad.engines.vm.isa import STRIP, Code
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row
from ckad.tape.types import DType, c_strides, part_strides

#: Below this many multiplications plain loops beat the call into BLAS.
SMALL_PRODUCT = 4096
Lowering = Callable[[Assembler, Placement, int, Row], None]


def lower_row(a: Assembler, placement: Placement, k: int) -> None:
    row = placement.tape.rows[k]
    if row.op in CONTROL:
        CONTROL[row.op](a, placement, k, row)
    elif row.op is Op.RESULT:
        a.take_result(placement, k, row)
        if a.stops is not None:
            a.check(placement, k)
    elif k in placement.absorbed or (
        placement.last.get(k, -1) < placement.now and row.op is not Op.WRAP
    ):
        return  # nobody reads it by itself, or chains have read the scalar it repeats
    elif is_elementwise(row.op) and row.op is not Op.WRAP:
        _elementwise(a, placement, k, row)
        a.check(placement, k)
    else:
        _LOWERINGS[row.op](a, placement, k, row)
        a.check(placement, k)


def _elementwise(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    n = row.type.size
    dst = a.new(n)
    operands = [placement.region[x].offset for x in placement.operands(k)]
    for key in placement.kernels(k):
        a.element(key, n, dst.offset, operands, cost=n)
        operands = [dst.offset]
    a.bind(placement, k, dst)


# --- copies with strides -----------------------------------------------------------------------


def merged(dims: Sequence[int], *strides: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """Axes of length one dropped, axes that lie behind one another in all arrays made one."""
    axes = [k for k, d in enumerate(dims) if d != 1]
    out: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for k in axes:
        joins = bool(out) and all(
            s[-1] == by[k] * dims[k] for s, by in zip(steps, strides, strict=True)
        )
        if joins:
            out[-1] *= dims[k]
        else:
            out.append(dims[k])
        for s, by in zip(steps, strides, strict=True):
            if joins:
                s[-1] = by[k]
            else:
                s.append(by[k])
    return (out, steps) if out else ([1], [[1] for _ in strides])


def copy_nd(
    a: Assembler,
    dims: Sequence[int],
    dst: int,
    to: Sequence[int],
    src: int,
    by: Sequence[int],
    kernel: str = "copy_nd",
) -> None:
    if 0 in dims:
        return
    shape, (to, by) = merged(dims, to, by)
    if kernel == "copy_nd" and len(shape) == 1 and to == [1] and by == [1]:
        return a.copy(dst, src, shape[0])
    n = prod(shape)
    a.whole(kernel, dst, src, len(shape), *shape, *to, *by, cost=n / 2)
    return None


def view_of(placement: Placement, row: Row) -> tuple[int, list[int]]:
    """Offset and strides at which a SLICE, TRANSPOSE or BROADCAST reads its operand."""
    source = placement.tape.rows[row.operands[0]].type
    steps = c_strides(source.shape)
    if row.op is Op.SLICE:
        rank = len(source.shape)
        starts, by = row.attrs[:rank], row.attrs[rank:]
        offset = sum(s * t for s, t in zip(starts, steps, strict=True))
        return offset, [s * t for s, t in zip(by, steps, strict=True)]
    if row.op is Op.TRANSPOSE:
        return 0, [steps[axis] for axis in row.attrs]
    lead = len(row.type.shape) - len(source.shape)
    stretched = [s if d != 1 else 0 for s, d in zip(steps, source.shape, strict=True)]
    return 0, [0] * lead + stretched


def _view(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    if row.op is Op.BROADCAST and is_splat(placement.tape, k):
        return _fill(a, placement, k, row)
    dst = a.new(row.type.size)
    offset, by = view_of(placement, row)
    src = placement.region[row.operands[0]].offset + offset
    copy_nd(a, row.type.shape, dst.offset, c_strides(row.type.shape), src, by)
    a.bind(placement, k, dst)
    return None


def _fill(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    if not _read_as_array(placement, k):
        # Chains read the scalar itself.
        region = placement.region[row.operands[0]]
        return a.bind(placement, k, region)
    dst = a.new(row.type.size)
    fill(a, dst, row.type.size, placement.region[row.operands[0]].offset)
    return a.bind(placement, k, dst)


def fill(a: Assembler, dst: Region, n: int, src: int) -> None:
    a.whole("fill", n, dst.offset, src, cost=n / 8)


def _read_as_array(placement: Placement, k: int) -> bool:
    """Whether anything but elementwise rows of chains reads a splat."""
    tape = placement.tape
    if tape.rows[k].type.size <= STRIP or k in tape.outputs:
        return True
    chained = {r for item in placement.items if isinstance(item, list) for r in item}
    return any(
        k in row.operands and not (r in chained and is_elementwise(row.op))
        for r, row in enumerate(tape.rows)
    )


def _reshape(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    a.bind(placement, k, placement.region[row.operands[0]])


def _zeros(a: Assembler, dst: Region, n: int) -> None:
    fill(a, dst, n, a.zero.offset)


def _pad(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    source = placement.tape.rows[row.operands[0]].type
    dst = a.new(row.type.size)
    _zeros(a, dst, row.type.size)
    offset, to = part_strides(row.attrs, row.type.shape)
    src = placement.region[row.operands[0]].offset
    copy_nd(a, source.shape, dst.offset + offset, to, src, c_strides(source.shape))
    a.bind(placement, k, dst)


def _copy_or_take(a: Assembler, placement: Placement, row: Row) -> Region:
    """The region for an array that is its first operand with some elements changed."""
    x, n = row.operands[0], row.type.size
    aliased = any(placement.region[y] is placement.region[x] for y in row.operands[1:])
    taken = None if aliased else a.take_over(placement, x, n)
    if taken is not None:
        return taken
    dst = a.new(n)
    a.copy(dst.offset, placement.region[x].offset, n)
    return dst


def _update(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    part = placement.tape.rows[row.operands[1]].type
    dst = _copy_or_take(a, placement, row)
    offset, to = part_strides(row.attrs, row.type.shape)
    src = placement.region[row.operands[1]].offset
    add = row.op is Op.SLICE_ADD
    kernel = _kernel("add_nd", row.type.is_float) if add else "copy_nd"
    copy_nd(a, part.shape, dst.offset + offset, to, src, c_strides(part.shape), kernel)
    if add and row.type.dtype is DType.F32:
        _round(a, dst.offset, row.type.size)
    a.bind(placement, k, dst)


def _round(a: Assembler, at: int, n: int) -> None:
    a.element(ROUND, n, at, [at], cost=n)


def _kernel(name: str, is_float: bool) -> str:
    return name if is_float else f"{name}_integers"


def _concat(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    (axis,) = row.attrs
    dst, at = a.new(row.type.size), 0
    steps = c_strides(row.type.shape)
    for x in row.operands:
        shape = placement.tape.rows[x].type.shape
        src = placement.region[x].offset
        copy_nd(a, shape, dst.offset + at * steps[axis], steps, src, c_strides(shape))
        at += shape[axis]
    a.bind(placement, k, dst)


def roll_rows(row: Row) -> tuple[int, int]:
    """A roll as turning rows: (length of a row, places)."""
    shift, axis = row.attrs
    inner = prod(row.type.shape[axis + 1 :])
    n = row.type.shape[axis]
    return n * inner, (shift % n if n else 0) * inner


def _roll(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    length, shift = roll_rows(row)
    region = a.new(row.type.size)
    dst, src = region.offset, placement.region[row.operands[0]].offset
    rows = row.type.size // length if length else 0
    steps = [length, 1]
    copy_nd(a, (rows, length - shift), dst + shift, steps, src, steps)
    copy_nd(a, (rows, shift), dst, steps, src + length - shift, steps)
    a.bind(placement, k, region)


# --- reductions --------------------------------------------------------------------------------

_KINDS = {
    Op.SUM: "sum",
    Op.PROD: "prod",
    Op.REDUCE_MAX: "max",
    Op.REDUCE_MIN: "min",
    Op.ARGMAX: "argmax",
    Op.ARGMIN: "argmin",
}


def _reduce(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    """Neighbouring axes are reduced as one, the last ones first."""
    x = row.operands[0]
    type, src = placement.tape.rows[x].type, placement.region[x]
    kernel = _kernel(_KINDS[row.op], type.is_float)
    runs = _runs(row.attrs, len(type.shape))
    shape, region = list(type.shape), src
    for first, last in reversed(runs):
        outer, n, inner = (
            prod(shape[s]) for s in (slice(first), slice(first, last), slice(last, None))
        )
        dst = a.new(outer * inner)
        cost = outer * n * inner
        a.whole(kernel, dst.offset, region.offset, outer, n, inner, cost=cost)
        if region is not src:
            a.heap.release(region.offset, region.size)
        shape[first:last] = []
        region = dst
    if row.type.dtype is DType.F32:
        _round(a, region.offset, row.type.size)
    a.bind(placement, k, region)


def _runs(axes: Sequence[int], rank: int) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for axis in sorted(axes):
        if runs and runs[-1][1] == axis:
            runs[-1] = (runs[-1][0], axis + 1)
        else:
            runs.append((axis, axis + 1))
    return runs


def _around(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def _cumsum(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    axis, backward = row.attrs
    dst = a.new(row.type.size)
    src = placement.region[row.operands[0]].offset
    kernel = _kernel("cumsum", row.type.is_float)
    around = _around(row.type.shape, axis)
    a.whole(kernel, dst.offset, src, *around, backward, cost=row.type.size)
    if row.type.dtype is DType.F32:
        _round(a, dst.offset, row.type.size)
    a.bind(placement, k, dst)


def _recurrence(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    axis, backward = row.attrs
    dst = a.new(row.type.size)
    factors, x = (placement.region[o].offset for o in row.operands)
    kernel = _kernel("recurrence", row.type.is_float)
    around = _around(row.type.shape, axis)
    a.whole(kernel, dst.offset, factors, x, *around, backward, cost=2 * row.type.size)
    if row.type.dtype is DType.F32:
        _round(a, dst.offset, row.type.size)
    a.bind(placement, k, dst)


# --- indexing and products ---------------------------------------------------------------------


def _gather(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    x, idx = row.operands
    outer, n, inner = _around(placement.tape.rows[x].type.shape, row.attrs[0])
    count = placement.tape.rows[idx].type.size
    dst = a.new(row.type.size)
    source, at = placement.region[x], placement.region[idx].offset
    kernel = "gather_far" if source.far else "gather"
    a.whole(kernel, dst.offset, source.offset, at, outer, n, count, inner, cost=2 * row.type.size)
    a.bind(placement, k, dst)


def _scatter(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    _, idx, y = row.operands
    dst = _copy_or_take(a, placement, row)
    outer, n, inner = _around(row.type.shape, row.attrs[0])
    count = placement.tape.rows[idx].type.size
    adds = row.op is Op.SCATTER_ADD
    kernel = _kernel("scatter_add", row.type.is_float) if adds else "scatter"
    places = dst.offset, placement.region[idx].offset, placement.region[y].offset
    cost = 2 * outer * count * inner
    a.whole(kernel, *places, outer, n, count, inner, cost=cost)
    if adds and row.type.dtype is DType.F32:
        _round(a, dst.offset, row.type.size)
    a.bind(placement, k, dst)


def _wrap(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    n = row.type.size
    dst, src = a.new(n), placement.region[row.operands[0]].offset
    a.emit(Code.WRAP, n, dst.offset, src, row.attrs[0], a.place(placement.tape, k), cost=n)
    a.bind(placement, k, dst)


def _matmul(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    x, y = row.operands
    tx, ty = row.attrs
    batch, m, n = row.type.shape
    inner = placement.tape.rows[x].type.shape[1 if tx else 2]
    dst = a.new(row.type.size)
    places = dst.offset, placement.region[x].offset, placement.region[y].offset
    by_blas = row.type.is_float and m * inner * n >= SMALL_PRODUCT
    kernel = "product" if by_blas else _kernel("matmul", row.type.is_float)
    cost = batch * m * n * inner / 4
    a.whole(kernel, *places, batch, m, inner, n, tx, ty, cost=cost)
    if row.type.dtype is DType.F32:
        _round(a, dst.offset, row.type.size)
    a.bind(placement, k, dst)


_LOWERINGS: dict[int, Lowering] = {
    Op.RESHAPE: _reshape,
    Op.SLICE: _view,
    Op.TRANSPOSE: _view,
    Op.BROADCAST: _view,
    Op.PAD: _pad,
    Op.UPDATE: _update,
    Op.SLICE_ADD: _update,
    Op.CONCAT: _concat,
    Op.ROLL: _roll,
    **dict.fromkeys(_KINDS, _reduce),
    Op.CUMSUM: _cumsum,
    Op.RECURRENCE: _recurrence,
    Op.GATHER: _gather,
    Op.SCATTER: _scatter,
    Op.SCATTER_ADD: _scatter,
    Op.WRAP: _wrap,
    Op.MATMUL: _matmul,
    Op.CALL: call_routine,
}
