"""A nest as a function of IR: loops over its boxes, eight lanes at a time.

The shape is cut into boxes within which every index is one plain offset from the loop's own: the
interior, and thin pieces at the borders. The last axis runs in vectors; where its length in a box
is no multiple of the lanes the last vector overlaps the one before it, which writes the same
numbers once more. A nest without shifts is one flat axis, and may write over what it reads.

    void nest(i8** arguments, i64 first, i64 last)

computes the indices [first, last) of the first axis, or of blocks of BLOCK elements where there is
one axis alone. Sums are written per index, to be added in a fixed order.

A value may be summed in several nests that differ in everything else, and has to come out the same:
an element is added to the lane that its place along the last axis has, place after place.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from llvmlite import ir

from ckad.engines.native.ir.apply import apply
from ckad.engines.native.ir.element import (
    DOUBLE,
    I32,
    I64,
    POINTER,
    Array,
    Value,
    load,
    narrow,
    register_type,
    store,
    whole,
    widen,
)
from ckad.engines.native.ir.flow import count, larger, smaller
from ckad.engines.native.ir.unit import internal
from ckad.engines.native.nests.boxes import BLOCK, Shape
from ckad.engines.native.nests.fusion import Fusion, Nest
from ckad.engines.native.nests.walk import Box, Index, Walk
from ckad.engines.native.values.between import limits, vector_limits
from ckad.engines.native.values.registers import LANES, constant, scalar, splat, total
from ckad.tape.ops import Op
from ckad.tape.tape import Row
from ckad.tape.types import DType

#: Nests with less work per element run several vectors per turn.
LIGHT, UNROLL = 12, 4
#: Single elements of nests with more work are computed in a loop: each would be as much code as a
#: vector, up to seven for the last of an axis.
HEAVY = 60
VECTOR = ir.VectorType(DOUBLE, LANES)
SIGNATURE = ir.FunctionType(ir.VoidType(), [POINTER.as_pointer(), I64, I64])


class NestWriter:
    """Writes the function of one nest."""

    def __init__(self, module: ir.Module, name: str, fusion: Fusion, nest: Nest, shape: Shape):
        self.fusion, self.nest, self.rows, self.shape = fusion, nest, fusion.rows, shape
        self.function = internal(module, name, SIGNATURE)
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.partials: list[Value] = []
        self._arguments()

    def _arguments(self) -> None:
        """Pointers to the arrays read and written, scalars, and where the sums go, in order."""
        b, block = self.b, self.function.args[0]
        self.arrays: dict[int, Array] = {}
        self.scalars: dict[int, Value] = {}
        for at, k in enumerate(argument_rows(self.fusion, self.nest)):
            place = b.gep(block, [whole(at)])
            row = self.rows[k]
            if k in self.nest.sums:
                self.partials.append(b.load(b.bitcast(place, DOUBLE.as_pointer().as_pointer())))
            elif row.type.size == 1 and k not in self.nest.outputs:
                kind = register_type(row.type.dtype)
                self.scalars[k] = b.load(b.bitcast(place, kind.as_pointer()))
            else:
                self.arrays[k] = Array(b.load(place), row.type)
        for k in self.nest.leaves:
            if is_number(self.rows[k]):
                array = self.fusion.tape.constants[self.rows[k].attrs[0]]
                self.scalars[k] = scalar(b, constant(array, self.rows[k].type))

    def write(self) -> ir.Function:
        self.sums = [self.b.alloca(VECTOR) for _ in self.nest.sums]
        self.turned = self.b.alloca(ir.ArrayType(DOUBLE, 3 * LANES))
        first, last = self.function.args[1:]
        self.limits = self._limits()
        if 0 in self.limits and len(self.shape.borders) > 1:
            with count(self.b, first, last) as r:  # rows that are left out add nothing
                self._clear()
                self._keep(r)
        if len(self.shape.borders) == 1:
            self._blocks(first, last)
        else:
            self._axis(0, (), [], first, last)
        self.b.ret_void()
        return self.function

    def _limits(self) -> dict[int, tuple[Value, Value]]:
        """Axis -> the places that are computed; of the last axis whole vectors."""
        found, last = {}, len(self.nest.shape) - 1
        for span in self.nest.spans or ():
            make = vector_limits if span.axis == last else limits
            n = self.nest.shape[span.axis]
            found[span.axis] = make(self.b, span, n, self.scalars.__getitem__)
        return found

    # --- loops ----------------------------------------------------------------------------------

    def _blocks(self, first: Value, last: Value) -> None:
        """One axis: blocks of it, each in its boxes."""
        with count(self.b, first, last) as r:
            self._clear()
            start = self.b.mul(r, whole(BLOCK))
            stop = self.b.add(start, whole(BLOCK))
            for box in pairwise(self.shape.borders[0]):
                self._last_axis((box,), [], start, stop)
            self._keep(r)

    def _axis(self, axis: int, box: Box, outer: list[Value], first: Value, last: Value) -> None:
        """All axes from ``axis`` on; ``first`` and ``last`` bound the first one."""
        if axis == len(self.shape.borders) - 1:
            for span in pairwise(self.shape.borders[axis]):
                self._last_axis((*box, span), outer)
            return
        for low, high in pairwise(self.shape.borders[axis]):
            start, stop = whole(low), whole(high)
            if axis == 0:
                start, stop = larger(self.b, start, first), smaller(self.b, stop, last)
            if axis in self.limits:
                least, end = self.limits[axis]
                start, stop = larger(self.b, start, least), smaller(self.b, stop, end)
            with count(self.b, start, stop) as at:
                if axis == 0:
                    self._clear()
                self._axis(axis + 1, (*box, (low, high)), [*outer, at], first, last)
                if axis == 0:
                    self._keep(at)

    def _last_axis(
        self, box: Box, outer: list[Value], first: Value | None = None, stop: Value | None = None
    ) -> None:
        low, high = box[-1]
        if self.nest.spans:
            self._between(box, outer, first, stop)
        elif high - low < LANES:
            self._singles(box, outer, low, high, first, stop)
        elif self.shape.flat:
            self._flat(box, first, stop, high)
        else:
            self._overlapping(box, outer, first, stop)

    def _flat(self, box: Box, first: Value, stop: Value, n: int) -> None:
        """Whole vectors of a block, then single elements."""
        b = self.b
        end = smaller(b, stop, whole(n))
        step = LANES * (UNROLL if self._light else 1)
        length = b.sub(end, first)
        vectors = b.add(first, b.and_(length, whole(-step)))
        with count(b, first, vectors, step) as at:
            for u in range(step // LANES):
                self._element(box, [b.add(at, whole(u * LANES))], LANES)
        if self._light:
            rest = b.add(first, b.and_(length, whole(-LANES)))
            with count(b, vectors, rest, LANES) as at:
                self._element(box, [at], LANES)
        if n % LANES:
            with b.if_then(b.icmp_signed("==", end, whole(n))):
                self._singles(box, [], n - n % LANES, n)

    def _between(
        self, box: Box, outer: list[Value], first: Value | None, stop: Value | None
    ) -> None:
        """Whole vectors between bounds, then the single elements that are left of the axis."""
        b, n = self.b, self.nest.shape[-1]
        start, end = self.limits.get(len(self.nest.shape) - 1, (whole(0), whole(n)))
        if first is not None and stop is not None:
            start, end = larger(b, start, first), smaller(b, end, stop)
        full = n - n % LANES
        if full:
            with count(b, start, smaller(b, end, whole(full)), LANES) as at:
                self._element(box, [*outer, at], LANES)
        if n > full:
            with b.if_then(b.icmp_signed("==", end, whole(n))):
                self._singles(box, outer, full, n)

    def _singles(
        self,
        box: Box,
        outer: list[Value],
        low: int,
        high: int,
        first: Value | None = None,
        stop: Value | None = None,
    ) -> None:
        """Less than a vector, place by place; those in [first, stop) if that is given."""
        b, start, end = self.b, whole(low), whole(high)
        if high - low > 1 and self.shape.flops > HEAVY:
            if first is not None and stop is not None:
                start, end = larger(b, start, first), smaller(b, end, stop)
            with count(b, start, end) as at:
                self._element(box, [*outer, at], 1, lane=b.and_(at, whole(LANES - 1)))
            return
        for place in range(low, high):
            if first is None:
                self._element(box, [*outer, whole(place)], 1, lane=whole(place % LANES))
                continue
            mine = b.icmp_signed("<=", first, whole(place))
            with b.if_then(b.and_(mine, b.icmp_signed("<", whole(place), stop))):
                self._element(box, [whole(place)], 1, lane=whole(place % LANES))

    @property
    def _light(self) -> bool:
        return self.shape.flops < LIGHT and not self.nest.sums

    def _overlapping(
        self, box: Box, outer: list[Value], first: Value | None, stop: Value | None
    ) -> None:
        """Vectors at multiples of the lanes, the first and the last one moved into the box."""
        b = self.b
        low, high = box[-1]
        start, end = whole(low // LANES), whole(-(-high // LANES))
        if first is not None:
            start = larger(b, start, b.sdiv(first, whole(LANES)))
            end = smaller(b, end, b.sdiv(stop, whole(LANES)))
        with count(b, start, end) as turn:
            aligned = b.mul(turn, whole(LANES))
            at = aligned
            if low % LANES:
                at = larger(b, at, whole(low))
            if high % LANES:
                at = smaller(b, at, whole(high - LANES))
            counted = aligned if low % LANES or high % LANES else None
            self._element(box, [*outer, at], LANES, counted)

    # --- elements -------------------------------------------------------------------------------

    def _element(
        self,
        box: Box,
        indices: list[Value],
        lanes: int,
        counted: Value | None = None,
        lane: Value = None,
    ) -> None:
        """All outputs and sums at one index.

        ``counted`` is where the vector would begin if it had not been moved into the box, ``lane``
        the one that a single element is added to.
        """
        target = _Writer(self, indices, lanes)
        walk = Walk(self.fusion, self.nest, self._box(box), target)
        outputs = [(k, walk.root(k)) for k in self.nest.outputs]
        terms = [walk.root(self.rows[k].operands[0]) for k in self.nest.sums]
        for k, value in outputs:
            store(self.b, self.arrays[k], target.place(k, walk.own), value)
        for place, term in zip(self.sums, terms, strict=True):
            self._add(place, term, indices[-1], counted, lane)

    def _box(self, box: Box) -> Box:
        """The walk of a flat nest does not ask where in the box it is."""
        return tuple((0, n) for n in self.nest.shape) if self.shape.flat else box

    def _add(
        self, place: Value, term: Value, at: Value, counted: Value | None, lane: Value
    ) -> None:
        b = self.b
        before = b.load(place)
        if not isinstance(term.type, ir.VectorType):
            after = b.fadd(b.extract_element(before, lane), term)
            after = b.insert_element(before, after, lane)
        elif counted is None:
            after = b.fadd(before, term)
        else:
            placed, mine = self._in_lanes(term, b.sub(at, counted))
            after = b.select(mine, b.fadd(before, placed), before)
        b.store(after, place)

    def _in_lanes(self, term: Value, moved: Value) -> tuple[Value, Value]:
        """A vector that was moved into its box: its elements in their own lanes, and which count.

        They go by way of memory, which only the first and the last vector have to wait for.
        """
        b = self.b
        first = b.gep(self.turned, [whole(0), b.add(moved, whole(LANES))])
        b.store(term, b.bitcast(first, VECTOR.as_pointer()), align=8)
        own = b.gep(self.turned, [whole(0), whole(LANES)])
        placed = b.load(b.bitcast(own, VECTOR.as_pointer()), align=8)
        numbers = ir.Constant(ir.VectorType(I64, LANES), list(range(LANES)))
        shifted = b.sub(numbers, splat(b, moved, LANES))
        mine = b.icmp_unsigned("<", shifted, ir.Constant(shifted.type, [LANES] * LANES))
        return placed, mine

    def _clear(self) -> None:
        for place in self.sums:
            self.b.store(ir.Constant(VECTOR, [0.0] * LANES), place)

    def _keep(self, r: Value) -> None:
        for place, partial in zip(self.sums, self.partials, strict=True):
            value = total(self.b, DType.F64, self.b.load(place))
            self.b.store(value, self.b.gep(partial, [r]))


class _Writer:
    """Writes the IR of one element or vector."""

    def __init__(self, nest: NestWriter, indices: Sequence[Value], lanes: int) -> None:
        self.nest, self.b, self.indices, self.lanes = nest, nest.b, indices, lanes

    def leaf(self, k: int, index: Index) -> Value:
        if k in self.nest.scalars:
            return self.uniform(k)
        array, place = self.nest.arrays[k], self.place(k, index)
        distance = 1 if self.nest.shape.flat else self._distance(array.type.shape, index)
        if distance == 1:
            return load(self.b, array, place, self.lanes)
        if distance == 0:
            return self._spread(array.type.dtype, load(self.b, array, place))
        return self._strided(array, place, distance)

    def _distance(self, shape: Sequence[int], index: Index) -> int:
        """How many elements apart neighbours along the nest's last axis lie in an array."""
        last = len(self.nest.shape.borders) - 1
        return sum(prod(shape[a + 1 :]) for a, at in enumerate(index) if at.axis == last)

    def _strided(self, array: Array, place: Value, distance: int) -> Value:
        b = self.b
        if self.lanes == 1:
            return load(b, array, place)
        value = ir.Constant(register_type(array.type.dtype, self.lanes), ir.Undefined)
        for lane in range(self.lanes):
            one = load(b, array, b.add(place, whole(lane * distance)))
            value = b.insert_element(value, one, ir.Constant(I32, lane))
        return value

    def place(self, k: int, index: Index) -> Value:
        """The number of the element at ``index``."""
        b = self.b
        if self.nest.shape.flat:
            return self.indices[0]
        shape = self.nest.rows[k].type.shape
        place, constant, stride = None, 0, 1
        for at, n in zip(reversed(index), reversed(shape), strict=True):
            if at.axis < 0 or not at.around:
                constant += at.shift * stride
            if at.axis >= 0:
                part = self._around(at) if at.around else self.indices[at.axis]
                part = b.mul(part, whole(stride)) if stride != 1 else part
                place = part if place is None else b.add(place, part)
            stride *= n
        if place is None:
            return whole(constant)
        return b.add(place, whole(constant)) if constant else place

    def _around(self, at: Any) -> Value:
        b = self.b
        moved = b.add(self.indices[at.axis], whole(at.shift))
        beyond = b.icmp_signed(">=", moved, whole(at.around))
        return b.select(beyond, b.sub(moved, whole(at.around)), moved)

    def uniform(self, k: int) -> Value:
        return self._spread(self.nest.rows[k].type.dtype, self.nest.scalars[k])

    def _spread(self, dtype: DType, one: Value) -> Value:
        """A number in every lane. A float32 that is no constant becomes a double there, not before:
        only so does LLVM see that arithmetic with it needs none."""
        if isinstance(one, ir.Constant):
            return splat(self.b, one, self.lanes)
        stored = splat(self.b, narrow(self.b, dtype, one), self.lanes)
        return widen(self.b, dtype, stored, self.lanes)

    def zero(self, row: Row) -> Value:
        kind = register_type(row.type.dtype)
        return splat(self.b, ir.Constant(kind, 0), self.lanes)

    def apply(self, op: Op, operands: Sequence[Row], out: Row, values: Sequence[Value]) -> Value:
        dtypes = [x.type.dtype for x in operands]
        return apply(self.b, op, dtypes, out.type.dtype, values)


def is_number(row: Row) -> bool:
    """A constant scalar, which is part of the code."""
    return row.op is Op.CONST and row.type.size == 1


def argument_rows(fusion: Fusion, nest: Nest) -> list[int]:
    """The rows whose pointers or scalars a nest is given, in order."""
    given = [k for k in nest.leaves if not is_number(fusion.rows[k])]
    return [*given, *nest.outputs, *nest.sums]
