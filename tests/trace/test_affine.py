"""What is told of traced integers while recording: sums, ranges, equal expressions."""

from __future__ import annotations

import math

import numpy as np

import ckad
from ckad.trace.integers import affine
from ckad.trace.integers.affine import declare, form_of, is_at_least, range_of, settled
from ckad.trace.integers.spans import span_of


def _recorded(body) -> None:
    """Run ``body`` on the index of a loop over 10 steps and an unknown integer."""

    def step(i, carry):
        body(i, carry)
        return carry

    ckad.trace(lambda k: ckad.fori_loop(0, 10, step, k))(np.array(3))


def test_equal_sums_have_equal_forms():
    def body(i, k):
        assert form_of(i + 1 - 1) == form_of(i)
        assert form_of(2 * (i + k) - i - i) == form_of(k * 2)
        assert form_of(np.minimum(i + k, 7)) == form_of(np.minimum(k + i, 7))
        assert settled(i + k - k - i + 4) == 4
        assert form_of(i) != form_of(k)

    _recorded(body)


def test_ranges_follow_the_loop():
    def body(i, k):
        assert range_of(i) == (0, 9)
        assert range_of(9 - i) == (0, 9)
        assert range_of(3 * i - 1) == (-1, 26)
        assert range_of(k) == (-math.inf, math.inf)
        assert range_of(k % 4) == (0, 3)
        assert range_of(i // 3) == (0, 3)
        assert range_of(i - np.maximum(i - 2, 0)) == (0, 2)
        assert is_at_least(i + 1, i)
        assert not is_at_least(i, k)

    _recorded(body)


def test_declared_ranges_count():
    def body(i, k):
        j = k + 0 * i
        declare(j, 1, 4)
        assert range_of(5 - j) == (1, 4)

    _recorded(body)


def test_an_inner_loop_sees_the_outer_index():
    def outer(i, x):
        def inner(j, x):
            assert range_of(i + j) == (0, 13)
            assert settled((i + j) - j - i + 1) == 1
            return x

        return ckad.fori_loop(0, 5, inner, x)

    ckad.trace(lambda x: ckad.fori_loop(0, 10, outer, x))(1.0)


def test_spans_that_cannot_leave_the_axis_emit_nothing():
    def body(i, k):
        start, length, step = span_of(slice(i, i + 3), 12)
        assert (settled(start - i), length, step) == (0, 3, 1)
        start, length, _ = span_of(slice(i, i + 3), 10)  # may be clipped
        assert range_of(length) == (1, 3)
        assert span_of(slice(None, i), 10).length is i
        start, length, step = span_of(slice(i, None, -1), 10)
        assert (form_of(length), step) == (form_of(i + 1), -1)

    _recorded(body)


def test_a_mask_bounds_what_it_leaves_in_branches_too():
    table = np.arange(16) * 2

    def pair(x, n):
        k = n & 0x0E
        a, b = table[k : k + 2]
        return x * a + b

    def program(x):
        n = (2 * x).astype(np.int64)
        return ckad.cond(x > 1.0, lambda x: pair(x, n + 3), lambda x: x, x)

    value, slope = ckad.value_and_grad(program)(np.float64(3.5))
    assert (value, slope) == (3.5 * 20 + 22, 20.0)


def test_bounds_of_minima_in_sums_are_found_once_each(monkeypatch):
    found = []
    each = affine._row_range
    monkeypatch.setattr(affine, "_row_range", lambda *atom: found.append(atom) or each(*atom))

    def body(i, k):
        total = i
        for n in range(8):
            total = np.minimum(total + np.maximum(i * n, k), 5 * n + 9) + i
        assert range_of(total)[1] == 53
        found.clear()
        assert not is_at_least(total, 60)
        assert range_of(total)[1] == 53
        assert len(found) < 40

    _recorded(body)


def test_what_is_declared_later_is_known():
    def body(i, k):
        total = np.maximum(k, 3) + i
        assert range_of(total) == (3, math.inf)
        declare(k, 0, 7)
        assert range_of(np.maximum(k, 3) + i) == (3, 16)

    _recorded(body)
