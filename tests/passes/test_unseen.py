"""What a choice does not take is computed of harmless numbers: which rows change, and which not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ckad.passes.choices.unseen import unseen
from ckad.rules.evaluate import evaluate
from ckad.tape.ops import Op
from ckad.tape.verify import verify

from .recorded import recorded

A = np.array([0.0, 1.0, -2.0, 0.0])
B = np.array([3.0, 0.0, 0.5, 0.0])


def counted(tape):
    found = Counter(row.op for row in tape.rows)
    return found + sum((counted(body) for body in tape.bodies), Counter())


def added(program, *inputs):
    """How many choices the pass adds; the values keep their bits."""
    before = recorded(program, inputs)
    after = verify(unseen(before))
    with np.errstate(all="ignore"):
        for x, y in zip(evaluate(before, *inputs), evaluate(after, *inputs), strict=True):
            assert x.tobytes() == y.tobytes()
    new = counted(after) - counted(before)
    assert set(new) <= {Op.SELECT, Op.CONST, Op.BROADCAST, Op.NOT, Op.AND, Op.RESHAPE}
    assert counted(after)[Op.DIV] == counted(before)[Op.DIV]
    return new[Op.SELECT]


def quotient(a, b):
    return np.where(b == 0, 1.0, a / b)


def masked_assignment(a, b):
    q = a / b
    q[b == 0] = 1.0
    return q


def two_readers_on_one_side(a, b):
    r = a / b
    return np.where(b == 0, 1.0, r * np.sin(r))


def opposite_masks(a, b):
    r, given = a / b, b != 0
    return np.where(given, r, 0.0) + np.where(~given, 1.0, r)


def in_another_shape(a, b):
    return np.where((b == 0)[:, None], 1.0, (a / b)[:, None] * np.ones((4, 3)))


def a_part(a, b):
    return np.where((b == 0)[1:], 1.0, (a / b)[1:])


def in_a_loop(a, b):
    for _ in range(100):
        a = 0.5 * np.where(b == 0, 1.0, a / b)
    return a


@pytest.mark.parametrize(
    "program",
    [quotient, masked_assignment, in_another_shape, a_part, in_a_loop, opposite_masks],
    ids=lambda f: f.__name__,
)
def test_the_divisor_is_replaced(program):
    assert added(program, A, B) == 1


def test_what_readers_on_one_side_share_is_replaced_once():
    assert added(two_readers_on_one_side, A, B) == 1


def read_outside(a, b):
    r = a / b
    return np.where(b == 0, 1.0, r) + r


def the_mask_reads_it(a, b):
    r = a / b
    return np.where(np.isfinite(r), r, 0.0)


def other_masks(a, b):
    r = a / b
    return np.where(b == 0, 1.0, r) + np.where(a == 0, 1.0, r)


def a_sum_in_between(a, b):
    return np.where(b == 0, 1.0, np.cumsum(a / b))


def linear(a, b):
    return np.where(b == 0, 1.0, 3.0 * a - b / 7.0 + np.maximum(a, -b))


def nothing_to_choose(a, b):
    return a / b


@pytest.mark.parametrize(
    "program",
    [read_outside, the_mask_reads_it, other_masks, a_sum_in_between, linear, nothing_to_choose],
    ids=lambda f: f.__name__,
)
def test_other_programs_are_left_alone(program):
    tape = recorded(program, (A, B))
    assert unseen(tape) is tape


def test_choices_within_choices_need_both_masks():
    def nested(a, b):
        return np.where(a > 0, np.where(b > 0, a / b, 1.0), 2.0)

    tape = unseen(recorded(nested, (A, B)))
    assert counted(tape)[Op.AND] == 1
    assert added(nested, A, B) == 1


def test_masks_that_are_computed_after_a_side_stand_before_it():
    before = recorded(masked_assignment, (A, B))
    ops = [row.op for row in before.rows]
    assert ops.index(Op.DIV) < ops.index(Op.EQ)
    ops = [row.op for row in verify(unseen(before)).rows]
    assert ops.index(Op.EQ) < ops.index(Op.DIV)


def test_many_choices_within_choices():
    def deep(a, b):
        for k in [0.1 * k for k in range(40)]:
            a = np.where(b > k, a / (b - k), 1.0)
        return a

    assert added(deep, A, B) > 0
