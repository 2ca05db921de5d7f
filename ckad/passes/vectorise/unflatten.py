"""Places in axes taken as one, read as one place per axis again.

``a[i, j]`` is recorded as one place in the flattened array, which is best for a loop over scalars.
What a loop touches along each axis is seen in ``a[i][j]``. In a loop that stays one, a step would
copy a row for that: there it is one place of the flattened array once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckad.passes.cse import Sharing
from ckad.passes.rewrite import rebuild
from ckad.passes.simplify import simplify
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: The longest row that is copied: registers hold it.
SHORT = 64


def unflatten(tape: Tape) -> Tape:
    """``tape`` with the elements of flattened arrays taken axis by axis, not so in its bodies."""
    rows, elements = tape.rows, (Op.GATHER, Op.SCATTER)
    if not any(r.op in elements and rows[r.operands[0]].op is Op.RESHAPE for r in rows):
        return tape
    return rebuild(tape, _unflattened, lambda body: body, Sharing())


def _unflattened(b: Builder, row: Row, env: list[int]) -> int | None:
    if row.op not in (Op.GATHER, Op.SCATTER):
        return None
    x, index, axis = env[row.operands[0]], env[row.operands[1]], row.attrs[0]
    if b.rows[x].op is not Op.RESHAPE or b.type(index).shape:
        return None
    whole = b.rows[x].operands[0]
    dims = _merged_dims(b.type(whole).shape, b.type(x).shape, axis)
    places = None if dims is None else _places(b, index, dims)
    if places is None:
        return None
    if row.op is Op.GATHER:
        return _taken(b, whole, places, axis)
    new = _put(b, whole, places, axis, env[row.operands[2]])
    return b.reshape_to(new, row.type.shape)


def _merged_dims(shape: Sequence[int], flat: Sequence[int], axis: int) -> Sequence[int] | None:
    """The axes of ``shape`` that are one axis of ``flat``, the others being the same."""
    count = len(shape) - len(flat) + 1
    if count < 2 or (*shape[:axis], *shape[axis + count :]) != (*flat[:axis], *flat[axis + 1 :]):
        return None
    return shape[axis : axis + count]


def _taken(b: Builder, x: int, places: Sequence[int], axis: int) -> int:
    for place in places:
        x = b.gather(x, place, attrs=(axis,))
    return x


def _put(b: Builder, x: int, places: Sequence[int], axis: int, new: int) -> int:
    if not places:
        return new
    part = b.gather(x, places[0], attrs=(axis,))
    return b.scatter(x, places[0], _put(b, part, places[1:], axis, new), attrs=(axis, 1))


def _places(b: Builder, index: int, dims: Sequence[int]) -> list[int] | None:
    """One place per axis, if that is how the flat one was made."""
    const, terms = _linear(b, index)
    places: list[int] = []
    for k, d in enumerate(dims):
        stride = _product(dims[k + 1 :])
        digit, const = divmod(const, stride)
        # a coefficient of more than one stride belongs to an index of several axes
        found = [x for x, coefficient in terms.items() if coefficient // stride == 1 and d > 1]
        if not found and 0 <= digit < d:
            places.append(b.const(digit))
        elif len(found) == 1 and digit == 0 and _is_wrapped(b, found[0], d):
            places.append(found[0])
            terms[found[0]] -= stride
            terms = {x: coefficient for x, coefficient in terms.items() if coefficient}
        else:
            return None
    return None if terms else places


def _product(dims: Sequence[int]) -> int:
    total = 1
    for d in dims:
        total *= d
    return total


def _is_wrapped(b: Builder, x: int, d: int) -> bool:
    row = b.rows[x]
    return row.op is Op.WRAP and row.attrs[0] <= d


def _linear(b: Builder, x: int, factor: int = 1) -> tuple[int, dict[int, int]]:
    """``factor`` times a row as a constant plus multiples of other rows."""
    row = b.rows[x]
    if row.op is Op.CONST:
        return factor * int(b.constants[row.attrs[0]]), {}
    if row.op in (Op.ADD, Op.SUB):
        sign = 1 if row.op is Op.ADD else -1
        const, terms = _linear(b, row.operands[0], factor)
        more, others = _linear(b, row.operands[1], sign * factor)
        for k, coefficient in others.items():
            terms[k] = terms.get(k, 0) + coefficient
        return const + more, {k: c for k, c in terms.items() if c}
    if row.op is Op.MUL:
        for y, z in (row.operands, row.operands[::-1]):
            if b.rows[z].op is Op.CONST:
                return _linear(b, y, factor * int(b.constants[b.rows[z].attrs[0]]))
    return 0, {x: factor}


# --- back ----------------------------------------------------------------------------------------


class Place(NamedTuple):
    """An element of two axes side by side, the first of them at ``axis``."""

    axis: int
    first: int
    second: int


def flattened(tape: Tape) -> Tape:
    """``tape`` without rows that are copied for one of their elements, not so in its bodies."""
    if not any(_may_be(tape, row) for row in tape.rows):
        return tape
    return simplify(rebuild(tape, _flattened, lambda body: body, Sharing()))


def _may_be(tape: Tape, row: Row) -> bool:
    if row.op is Op.GATHER:
        return tape.rows[row.operands[0]].op is Op.GATHER
    return row.op is Op.SCATTER and tape.rows[row.operands[2]].op is Op.SCATTER


def _flattened(b: Builder, row: Row, env: list[int]) -> int | None:
    if row.op not in (Op.GATHER, Op.SCATTER):
        return None
    x, index, axis = env[row.operands[0]], env[row.operands[1]], row.attrs[0]
    if row.op is Op.GATHER:
        taken = b.rows[x]
        place = _place(b, taken, index, axis) if taken.op is Op.GATHER else None
        if place is None:
            return None
        return b.gather(*_merged(b, taken.operands[0], place), attrs=(place.axis,))
    put = b.rows[env[row.operands[2]]]
    part = b.rows[put.operands[0]] if put.op is Op.SCATTER else put
    if part.op is not Op.GATHER or (part.operands, part.attrs) != ((x, index), (axis,)):
        return None
    place = _place(b, part, put.operands[1], put.attrs[0])
    if place is None:
        return None
    done = b.scatter(*_merged(b, x, place), put.operands[2], attrs=(place.axis, 1))
    return b.reshape_to(done, row.type.shape)


def _place(b: Builder, taken: Row, second: int, axis: int) -> Place | None:
    """The place of element ``second`` along ``axis`` of a row that was taken from an array."""
    x, first = taken.operands
    shape, own = b.type(x).shape, taken.attrs[0]
    other = axis if axis < own else axis + 1
    if abs(other - own) != 1 or _product(taken.type.shape) <= SHORT:
        return None
    if not (_within(b, first, shape[own]) and _within(b, second, shape[other])):
        return None
    return Place(own, first, second) if own < other else Place(other, second, first)


def _merged(b: Builder, x: int, place: Place) -> tuple[int, int]:
    """``x`` with two axes as one, and the place along it."""
    axis, shape = place.axis, b.type(x).shape
    d = shape[axis + 1]
    flat = b.reshape_to(x, (*shape[:axis], shape[axis] * d, *shape[axis + 2 :]))
    return flat, b.add(b.mul(place.first, b.full_like(place.first, d)), place.second)


def _within(b: Builder, index: int, d: int) -> bool:
    """Whether an index is one number of 0, …, d - 1, whatever it is."""
    row = b.rows[index]
    if b.type(index).shape:
        return False
    if row.op is Op.CONST:
        return 0 <= int(b.constants[row.attrs[0]]) < d
    return row.op is Op.WRAP and row.attrs[0] <= d
