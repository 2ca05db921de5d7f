"""Who reads which row, and when for the last time."""

from __future__ import annotations

import numpy as np

import ckad
from ckad.passes.dce import needed_alone
from ckad.passes.liveness import FOREVER, Reads, last_reads, needed, readers
from ckad.passes.rewrite import with_outputs
from ckad.tape.ops import Op


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


def in_nests(x, y, z):
    kept, last = 0.0, 0.0
    for k in range(5):
        for _ in range(3):
            x, last = x * y, last + kept
        if z > k:
            z, kept = z - 1.0, kept + 1.0
        else:
            y = y + z
    return x, y, z, kept, last


def test_what_single_results_of_loops_depend_on():
    tape, reads = ckad.trace(in_nests)(1.0, 2.0, 3.0), Reads()
    results = [k for k, row in enumerate(tape.rows) if row.op is Op.RESULT]
    of_inputs = {*tape.inputs.tolist()}
    found = [of_inputs.intersection(reads.behind(tape.rows, tape.bodies, k)) for k in results]
    x, y, z = tape.inputs.tolist()
    assert sorted(map(sorted, found)) == sorted([[x, y, z], [y, z], [z], [z], [z]])
    for k, own in zip(results, found, strict=True):  # cut down it never depends on fewer
        _, unread = needed_alone(with_outputs(tape, [k]))
        assert own <= {row for at, row in enumerate(tape.inputs.tolist()) if at not in unread}
