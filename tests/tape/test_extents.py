"""Where masks are true, as bounds that a program computes, against the masks themselves."""

from __future__ import annotations

import numpy as np
import pytest

from ckad.tape.builder import Builder
from ckad.tape.extents import Masks
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type

COMPARE = {
    Op.LT: np.less,
    Op.LE: np.less_equal,
    Op.GE: np.greater_equal,
    Op.GT: np.greater,
    Op.EQ: np.equal,
}
N = 7


def between(spans, s):
    """The places that are within, where the scalar is ``s``."""
    (span,) = spans
    places = np.arange(N)
    lows = [bound.sign * s + bound.shift for bound in span.lows]
    highs = [bound.sign * s + bound.shift for bound in span.highs]
    return np.all([places >= x for x in lows] + [places < x for x in highs], axis=0)


@pytest.mark.parametrize("first_and_step", [(0, 1), (2, 1), (6, -1), (4, -1)])
@pytest.mark.parametrize("places_come_first", [True, False])
@pytest.mark.parametrize("op", COMPARE, ids=lambda op: op.name)
def test_spans_are_where_the_comparison_is_true(op, places_come_first, first_and_step):
    b, (first, step) = Builder(), first_and_step
    numbers = first + step * np.arange(N)
    scalar = b.input(Type(DType.I64, ()))
    operands = [b.const(numbers), b.broadcast_to(scalar, (N,))]
    mask = getattr(b, op.name.lower())(*(operands if places_come_first else operands[::-1]))
    masks = Masks(b.rows, b.constants)
    assert masks.is_exact(mask)
    for s in range(-9, 10):
        pair = (numbers, s) if places_come_first else (s, numbers)
        assert np.array_equal(between(masks.spans(mask), s), COMPARE[op](*pair)), s


def test_a_mask_that_says_more_than_bounds_is_not_exact():
    b = Builder()
    below = b.lt(b.const(np.arange(N)), b.broadcast_to(b.input(Type(DType.I64, ())), (N,)))
    other = b.input(Type(DType.BOOL, (N,)))
    masks = Masks(b.rows, b.constants)
    assert masks.is_exact(b.emit(Op.AND, (below, below)))
    assert not masks.is_exact(b.emit(Op.AND, (below, other)))
    assert not masks.is_exact(b.emit(Op.AND, (other, below)))
