"""The element of a nest's row at an index, found by walking through its virtual rows.

What is done with the elements is left to a Target: one writes IR, one counts, one writes text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from ckad.engines.native.nests.fusion import Fusion, Nest
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row


class At(NamedTuple):
    """An index along one axis of an array: that of the nest's ``axis`` plus ``shift``.

    ``axis`` -1: ``shift`` alone. ``around`` n: modulo n, decided when the nest runs.
    """

    axis: int
    shift: int
    around: int = 0

    def moved(self, by: int) -> At:
        return At(self.axis, self.shift + by, self.around)


Index = tuple[At, ...]
Box = tuple[tuple[int, int], ...]


class Split(Exception):
    """Within the box an index is on both sides of a border."""

    def __init__(self, axis: int, at: int) -> None:
        super().__init__(axis, at)
        self.axis, self.at = axis, at


class Target(Protocol):
    """What the walk is for."""

    def leaf(self, k: int, index: Index) -> Any: ...
    def uniform(self, k: int) -> Any: ...
    def zero(self, row: Row) -> Any: ...
    def apply(self, op: Op, operands: Sequence[Row], out: Row, values: Sequence[Any]) -> Any: ...


class Walk:
    """The rows of one nest within one box of its indices."""

    def __init__(self, fusion: Fusion, nest: Nest, box: Box, target: Target) -> None:
        self.fusion, self.rows = fusion, fusion.rows
        self.box, self.target = box, target
        self.inside, self.holders = set(nest.outputs), nest.holders
        self.own: Index = identity(nest.shape)
        self.known: dict[tuple[int, Index], Any] = {}

    def root(self, k: int) -> Any:
        """The element of one of the nest's outputs, or of a sum's operand, at its own place."""
        return self.value(k, self.own)

    def value(self, k: int, index: Index) -> Any:
        key = k, index
        if key not in self.known:
            self.known[key] = self._value(k, index)
        return self.known[key]

    def _value(self, k: int, index: Index) -> Any:
        uniform = self.fusion.uniform[k]
        if uniform is not None:
            return self.target.uniform(uniform)
        if k in self.holders:
            array, starts = self.holders[k]
            return self.target.leaf(array, self._shifted(index, starts))
        row = self.rows[k]
        here = k in self.inside and index == self.own
        if not here and not self.fusion.is_virtual(k):
            return self.target.leaf(k, index)
        if is_elementwise(row.op):
            values = [self.value(x, index) for x in row.operands]
            return self.target.apply(row.op, [self.rows[x] for x in row.operands], row, values)
        return _MOVES[row.op](self, row, index)

    # --- ops that move elements -----------------------------------------------------------------

    def broadcast(self, row: Row, index: Index) -> Any:
        (x,) = row.operands
        shape = self.rows[x].type.shape
        lead = len(row.type.shape) - len(shape)
        own = [index[lead + a] if d == row.type.shape[lead + a] else At(-1, 0)
               for a, d in enumerate(shape)]  # fmt: skip
        return self.value(x, tuple(own))

    def reshape(self, row: Row, index: Index) -> Any:
        (x,) = row.operands
        kept = iter([at for at, d in zip(index, row.type.shape, strict=True) if d != 1])
        shape = self.rows[x].type.shape
        return self.value(x, tuple(At(-1, 0) if d == 1 else next(kept) for d in shape))

    def slice(self, row: Row, index: Index) -> Any:
        starts = row.attrs[: len(index)]
        return self.value(row.operands[0], self._shifted(index, starts))

    def pad(self, row: Row, index: Index) -> Any:
        (x,) = row.operands
        part = self._in_part(index, row.attrs, self.rows[x].type.shape)
        return self.target.zero(row) if part is None else self.value(x, part)

    def update(self, row: Row, index: Index) -> Any:
        x, y = row.operands
        part = self._in_part(index, row.attrs, self.rows[y].type.shape)
        return self.value(x, index) if part is None else self.value(y, part)

    def slice_add(self, row: Row, index: Index) -> Any:
        x, y = row.operands
        whole = self.value(x, index)
        part = self._in_part(index, row.attrs, self.rows[y].type.shape)
        if part is None:
            return whole
        return self.target.apply(Op.ADD, [row, row], row, [whole, self.value(y, part)])

    def concat(self, row: Row, index: Index) -> Any:
        (axis,) = row.attrs
        first, at = 0, self._settled(index[axis])
        for x in row.operands[:-1]:
            n = self.rows[x].type.shape[axis]
            if self._within(at, first, first + n):
                break
            first += n
        else:
            x = row.operands[-1]
        return self.value(x, _with(index, axis, at.moved(-first)))

    def roll(self, row: Row, index: Index) -> Any:
        shift, axis = row.attrs
        n = row.type.shape[axis]
        at = index[axis] if index[axis].around == n else self._settled(index[axis])
        if at.axis < 0:
            moved = At(-1, (at.shift - shift) % n)
            return self.value(row.operands[0], _with(index, axis, moved))
        start, stop = self.box[at.axis]
        low = (start + at.shift - shift) // n
        goes_around = low != (stop - 1 + at.shift - shift) // n
        if goes_around and at.axis == len(self.box) - 1:
            raise Split(at.axis, (low + 1) * n + shift - at.shift)
        # The first place of the box is in [0, n), the last one before 2 n: one comparison will do.
        moved = At(at.axis, at.shift - shift - low * n, n if goes_around else 0)
        return self.value(row.operands[0], _with(index, axis, moved))

    def _shifted(self, index: Index, by: Sequence[int]) -> Index:
        return tuple(
            self._settled(at).moved(d) if d else at for at, d in zip(index, by, strict=True)
        )

    def _settled(self, at: At) -> At:
        """An index that goes around cannot be shifted or compared: the box is cut where it does."""
        if not at.around:
            return at
        border = at.around - at.shift
        start, stop = self.box[at.axis]
        if start < border < stop:
            raise Split(at.axis, border)
        return At(at.axis, at.shift if stop <= border else at.shift - at.around)

    def _in_part(self, index: Index, attrs: Sequence[int], shape: Sequence[int]) -> Index | None:
        """The index within a part that lies at ``attrs`` in the array, or None outside of it."""
        starts = attrs[: len(shape)]
        spans = list(zip(index, starts, shape, strict=True))
        settled = [
            at if start == 0 and n >= at.around > 0 else self._settled(at) for at, start, n in spans
        ]
        inside = [
            bool(at.around) or self._within(at, start, start + n)
            for at, (_, start, n) in zip(settled, spans, strict=True)
        ]
        if not all(inside):
            return None
        return tuple(at.moved(-start) for at, start in zip(settled, starts, strict=True))

    def _within(self, at: At, start: int, stop: int) -> bool:
        if at.axis < 0:
            return start <= at.shift < stop
        first, last = (x + at.shift for x in self.box[at.axis])
        if start <= first and last <= stop:
            return True
        if last <= start or stop <= first:
            return False
        raise Split(at.axis, (start if first < start < last else stop) - at.shift)


_MOVES = {
    Op.BROADCAST: Walk.broadcast,
    Op.RESHAPE: Walk.reshape,
    Op.SLICE: Walk.slice,
    Op.PAD: Walk.pad,
    Op.UPDATE: Walk.update,
    Op.SLICE_ADD: Walk.slice_add,
    Op.CONCAT: Walk.concat,
    Op.ROLL: Walk.roll,
}


def identity(shape: Sequence[int]) -> Index:
    return tuple(At(-1, 0) if d == 1 else At(a, 0) for a, d in enumerate(shape))


def _with(index: Index, axis: int, at: At) -> Index:
    return (*index[:axis], at, *index[axis + 1 :])
