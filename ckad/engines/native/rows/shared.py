"""Products and reductions that threads share: a function over parts of the result, as a nest is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from llvmlite import ir

from ckad.engines.native.ir.element import Array, Value, whole
from ckad.engines.native.ir.flow import count
from ckad.engines.native.ir.unit import internal
from ckad.engines.native.kernels.blas import product_of
from ckad.engines.native.kernels.gram import emit_strips, is_gram
from ckad.engines.native.kernels.products import emit_parts, n_parts
from ckad.engines.native.kernels.reductions import FOLDS, emit_fold
from ckad.engines.native.kernels.rows import moved
from ckad.engines.native.kernels.sweeps import GROUP, Sweep, emit_sweep, emit_total
from ckad.engines.native.kernels.sweeps import Places as Swept
from ckad.engines.native.nests.emit import SIGNATURE
from ckad.engines.native.nests.threads import LEAST_WORK, PARTS, call_shared
from ckad.engines.native.rows.places import Places
from ckad.engines.native.values import registers
from ckad.engines.native.values.held import Memory
from ckad.engines.native.values.registers import is_small
from ckad.tape.ops import Op
from ckad.tape.tape import Row
from ckad.tape.types import Type

#: Elements of a matrix from which on its product with a vector is a pass over blocks of its rows.
LARGE_MATRIX = 1 << 15
#: So many items on, another product of the same matrix is looked for.
NEAR = 64

#: (builder, arrays, first, last) -> code of the parts [first, last)
Emit = Callable[[ir.IRBuilder, Sequence[Array], Value, Value], None]


class ByVector(NamedTuple):
    """A row that multiplies a matrix, or its transpose, by a vector."""

    matrix: int
    shape: tuple[int, int]
    vector: int
    transposed: bool

    def shares(self, other: ByVector, rows: Sequence[Row]) -> bool:
        """Whether one pass over one matrix may do both."""
        same = _named(rows, self.matrix) == _named(rows, other.matrix)
        return same and self.shape == other.shape and self.transposed is not other.transposed


def is_shared(places: Places, row: Row) -> bool:
    """Whether a row is work for several threads."""
    if row.op in FOLDS:
        return _is_large_reduction(row, places.rows[row.operands[0]].type)
    return _is_large_product(places, row) or by_vector(places, row) is not None


def lower_shared(places: Places, k: int, row: Row) -> None:
    """The code of a row for which ``is_shared`` holds."""
    if row.op in FOLDS:
        _reduction(places, k, row)
    elif _is_large_product(places, row):
        _product(places, k, row)
    else:
        _sweep(places, k, row)


# --- reductions ----------------------------------------------------------------------------------


def _is_large_reduction(row: Row, x: Type) -> bool:
    return bool(row.attrs) and 0 not in row.attrs and x.shape[0] > 1 and x.size >= LEAST_WORK


def _reduction(places: Places, k: int, row: Row) -> None:
    """Of axes but the first one, by whose places it is shared: each is reduced by itself."""
    out, x = _room(places, k), places.memory(row.operands[0])
    types = [out.array.type, x.type]
    pages = [t.with_shape(t.shape[1:]) for t in types]
    axes = [axis - 1 for axis in row.attrs]

    def emit(b: ir.IRBuilder, given: Sequence[Array], first: Value, last: Value) -> None:
        with count(b, first, last) as at:
            starts = [b.mul(at, whole(t.size)) for t in pages]
            parts = [moved(b, a, start).pointer for a, start in zip(given, starts, strict=True)]
            emit_fold(b, FOLDS[row.op], axes, *map(Array, parts, pages))

    name = f"ckad_pages({row.op.name})({row.attrs})({' '.join(map(str, types))})"
    function = _function(places.unit.module, name, types, emit)
    given, n, work = [out.array.pointer, x.pointer], x.type.shape[0], x.type.size
    places.writer.shares |= call_shared(places.unit, function, given, n, work)
    _keep(places, k, out)


# --- two matrices --------------------------------------------------------------------------------


def _is_large_product(places: Places, row: Row) -> bool:
    if row.op is not Op.MATMUL or is_small(row.type):
        return False
    x = places.rows[row.operands[0]].type
    return product_of(row.attrs, row.type, x).is_large(row.type.dtype)


def _product(places: Places, k: int, row: Row) -> None:
    out = places.place(k)
    arrays = [out.array, *(places.memory(x) for x in row.operands)]
    x = arrays[1].type
    n = n_parts(row.attrs, row.type, x)
    product = product_of(row.attrs, row.type, x)
    work = row.type.size * product.k
    types = [a.type for a in arrays]

    is_own = is_gram(row.operands, row.attrs, row.type) and not product.is_middle(row.type.dtype)
    part = emit_strips if is_own else emit_parts

    def emit(b: ir.IRBuilder, given: Sequence[Array], first: Value, last: Value) -> None:
        part(b, row.attrs, given, first, last)

    name = f"ckad_{'strips' if is_own else 'blocks'}({row.attrs})({' '.join(map(str, types))})"
    function = _function(places.unit.module, name, types, emit)
    pointers = [a.pointer for a in arrays]
    places.writer.shares |= call_shared(places.unit, function, pointers, n, work, PARTS)
    places.bind(k, out)


# --- a matrix and vectors ------------------------------------------------------------------------


def by_vector(places: Places, row: Row) -> ByVector | None:
    """What a row multiplies, if that is one large matrix and a vector."""
    if row.op is not Op.MATMUL or not row.type.is_float or row.type.shape[0] != 1:
        return None
    _, m, n = row.type.shape
    if (m == 1) is (n == 1):
        return None
    place = 1 if m == 1 else 0
    matrix, vector = row.operands[place], row.operands[1 - place]
    _, rows, columns = places.rows[matrix].type.shape
    if rows * columns < LARGE_MATRIX or min(rows, columns) < GROUP:
        return None
    transposed = bool(row.attrs[place]) is (n == 1)
    return ByVector(matrix, (rows, columns), vector, transposed)


def _named(rows: Sequence[Row], k: int) -> int:
    """The row whose value has another shape in row ``k``."""
    while rows[k].op is Op.RESHAPE:
        k = rows[k].operands[0]
    return k


def _mate(places: Places, k: int, own: ByVector) -> tuple[int, ByVector] | None:
    """A later row that the same pass over the matrix may compute."""
    for item in places.fusion.items[places.now + 1 : places.now + 1 + NEAR]:
        if not isinstance(item, int) or item in places.held or item in places.fusion.products:
            continue
        other = by_vector(places, places.rows[item])
        if other is None or not own.shares(other, places.rows):
            continue
        chained = other.transposed and _named(places.rows, other.vector) == k
        if chained or _known(places, other.vector) is not None:
            return item, other
    return None


def _known(places: Places, k: int) -> int | None:
    """A row that holds the value of row ``k`` already."""
    return next((x for x in (k, _named(places.rows, k)) if x in places.held), None)


def _sweep(places: Places, k: int, row: Row) -> None:
    own = by_vector(places, row)
    assert own is not None
    uses = [(k, own)] if (mate := _mate(places, k, own)) is None else [(k, own), mate]
    outs = {x: _room(places, x) for x, _ in uses}
    matrix = places.memory(own.matrix)._replace(type=Type(row.type.dtype, own.shape))
    arrays, done = {"matrix": matrix}, set[int]()
    for x, use in sorted(uses, key=lambda pair: pair[1].transposed):
        done.add(x)
        if not use.transposed:
            arrays |= {"right": _vector(places, use.vector), "dots": outs[x].array}
            continue
        if _named(places.rows, use.vector) not in done:
            arrays["left"] = _vector(places, use.vector)
        blocks = Sweep(matrix.type).partial
        arrays["partial"] = places.passing(blocks).array
    _call_sweep(places, arrays)
    for x, use in uses:
        if use.transposed:
            _call_total(places, outs[x].array, arrays["partial"])
        _keep(places, x, outs[x])


def _vector(places: Places, k: int) -> Array:
    known = _known(places, k)
    return places.memory(k if known is None else known)


def _call_sweep(places: Places, arrays: dict[str, Array]) -> None:
    types = [a.type for a in arrays.values()]
    sweep = Sweep(arrays["matrix"].type)

    def emit(b: ir.IRBuilder, given: Sequence[Array], first: Value, last: Value) -> None:
        emit_sweep(b, sweep, Swept(**dict(zip(arrays, given, strict=True))), first, last)

    name = f"ckad_sweep({' '.join(arrays)})({' '.join(map(str, types))})"
    function = _function(places.unit.module, name, types, emit)
    pointers = [a.pointer for a in arrays.values()]
    n, work = sweep.n_blocks, sweep.matrix.size * (("dots" in arrays) + ("partial" in arrays))
    places.writer.shares |= call_shared(places.unit, function, pointers, n, work, PARTS)


def _call_total(places: Places, out: Array, partial: Array) -> None:
    def emit(b: ir.IRBuilder, given: Sequence[Array], first: Value, last: Value) -> None:
        emit_total(b, *given)

    name = f"ckad_total({out.type.dtype.name})({partial.type})"
    function = _function(places.unit.module, name, [out.type, partial.type], emit)
    call_shared(places.unit, function, [out.pointer, partial.pointer], 1, 0)


def _room(places: Places, k: int) -> Memory:
    type = places.rows[k].type
    return places.passing(type) if is_small(type) else places.place(k)


def _keep(places: Places, k: int, out: Memory) -> None:
    if is_small(out.array.type):
        places.held[k] = registers.read(places.b, out.array)
    else:
        places.bind(k, out)


# --- functions -----------------------------------------------------------------------------------


def _function(
    module: ir.Module,
    name: str,
    types: Sequence[Type],
    emit: Emit,
) -> ir.Function:
    """``void f(i8** arrays, i64 first, i64 last)``, one for all rows that need the same code."""
    if name in module.globals:
        return module.globals[name]
    function = internal(module, name, SIGNATURE)
    block, first, last = function.args
    b = ir.IRBuilder(function.append_basic_block())
    given = [Array(b.load(b.gep(block, [whole(at)])), type) for at, type in enumerate(types)]
    emit(b, given, first, last)
    b.ret_void()
    return function
