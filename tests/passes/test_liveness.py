"""Who reads which row, and when for the last time."""

from __future__ import annotations

import numpy as np

import ckad
from ckad.passes.liveness import FOREVER, last_reads, needed, readers


def test_needed_rows_stop_at_what_is_known():
    tape = ckad.trace(lambda x, y: np.sin(x * y) + np.cos(y))(1.0, 2.0)
    names = [row.op.name for row in tape.rows]
    product, sine, cosine = names.index("MUL"), names.index("SIN"), names.index("COS")
    assert all(needed(tape, tape.outputs.tolist()))
    live = needed(tape, [sine], known={product})
    assert [k for k, flag in enumerate(live) if flag] == [product, sine]
    assert not needed(tape, [cosine])[product]


def test_every_operand_counts_as_a_reader():
    tape = ckad.trace(lambda x: x * x)(3.0)
    assert readers(tape) == [[1, 1], []]


def test_outputs_are_read_for_ever():
    assert last_reads([[0], [0, 1], [2]], [1]) == {0: 1, 1: FOREVER, 2: 2}
