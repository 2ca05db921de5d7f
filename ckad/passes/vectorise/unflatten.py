"""Places in axes taken as one, read as one place per axis again.

``a[i, j]`` is recorded as one place in the flattened array, which is best for a loop over scalars.
What a loop touches along each axis is seen in ``a[i][j]``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckad.passes.cse import Sharing
from ckad.passes.rewrite import rebuild
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape


def unflatten(tape: Tape) -> Tape:
    """``tape`` with the elements of flattened arrays taken axis by axis, not so in its bodies."""
    if not any(row.op is Op.RESHAPE for row in tape.rows):
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
