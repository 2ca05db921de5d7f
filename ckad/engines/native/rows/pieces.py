"""Small parts of arrays, read and written where code stands: elements, and rows of a few of them.

A part is what an index of one number, or a slice, names, if its elements are neighbours. Loops over
elements consist of such rows: each is a load or a store, and no array is copied.
"""

from __future__ import annotations

from math import prod

from ckad.engines.native.ir.element import POINTER, Array, Value, address, whole
from ckad.engines.native.nests.in_place import WRITES
from ckad.engines.native.rows.places import Places
from ckad.engines.native.values import registers
from ckad.engines.native.values.held import Memory
from ckad.engines.native.values.registers import Registers, is_small
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type, c_strides

_READS = (Op.GATHER, Op.SLICE)
_INDEXED = (Op.GATHER, Op.SCATTER, Op.SCATTER_ADD)


def part_of(tape: Tape, row: Row) -> Type:
    """The type of the part that a row reads or writes."""
    return row.type if row.op in _READS else tape.rows[row.operands[-1]].type


def is_piece(tape: Tape, row: Row) -> bool:
    """Whether a row reads or writes a small part of neighbouring elements."""
    if row.op not in WRITES and row.op not in _READS:
        return False
    part, array = part_of(tape, row), tape.rows[row.operands[0]].type
    if not is_small(part) or not part.size:
        return False
    if row.op in _INDEXED:
        one = tape.rows[row.operands[1]].type.size == 1
        return one and prod(array.shape[: row.attrs[0]]) == 1
    return part.size == 1 or _are_neighbours(part, array, row.attrs[len(array.shape) :])


def _are_neighbours(part: Type, array: Type, steps: tuple[int, ...]) -> bool:
    """One axis may be cut; those before it have one index, those after it all of theirs."""
    cut = [a for a, (m, n) in enumerate(zip(part.shape, array.shape, strict=True)) if m != n]
    first = max(cut, default=0)
    return prod(part.shape[:first]) == 1 and all(s == 1 for s in steps)


def lower_piece(places: Places, k: int, row: Row) -> None:
    """The code of a row for which ``is_piece`` holds."""
    x = row.operands[0]
    if row.op in WRITES:
        return _write(places, k, row)
    source = places.repeated(x)
    if source is not None:
        picks = [0] * row.type.size
        places.held[k] = registers.shuffled(places.b, row.type, [source], picks)
    else:
        places.held[k] = registers.read(places.b, _piece(places, row, places.memory(x), row.type))
    return None


def _write(places: Places, k: int, row: Row) -> None:
    memory = None if is_small(row.type) else places.in_place(k, row) or _copied(places, k, row)
    array = places.memory(row.operands[0]) if memory is None else memory.array
    new = places.small(row.operands[-1])
    piece = _piece(places, row, array, new.type)
    if row.op in (Op.SLICE_ADD, Op.SCATTER_ADD):
        before = registers.read(places.b, piece)
        new = registers.elementwise(places.b, Op.ADD, new.type, [before, new])
    registers.write(places.b, piece, new)
    if memory is None:
        places.held[k] = registers.read(places.b, array)
    else:
        places.bind(k, memory)


def _copied(places: Places, k: int, row: Row) -> Memory:
    """Another place with the array in it."""
    memory = places.place(k)
    places.put_row(memory.array, row.operands[0])
    return memory


def _piece(places: Places, row: Row, array: Array, part: Type) -> Array:
    """The part of an array in memory that the row names."""
    b, shape = places.b, places.rows[row.operands[0]].type.shape
    first = _first(places, row, shape)
    return Array(b.bitcast(address(b, array, first), POINTER), part)


def _first(places: Places, row: Row, shape: tuple[int, ...]) -> Value:
    """The number of the part's first element."""
    if row.op not in _INDEXED:
        starts = row.attrs[: len(shape)]
        return whole(sum(s * n for s, n in zip(starts, c_strides(shape), strict=True)))
    index: Registers = places.small(row.operands[1])
    distance = prod(shape[row.attrs[0] + 1 :])
    first = registers.scalar(places.b, index)
    return first if distance == 1 else places.b.mul(first, whole(distance))
