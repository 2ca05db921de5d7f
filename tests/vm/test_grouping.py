"""The order of rows in a tape's code, and what finding it costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ckad
from ckad.engines.vm.assembly import grouping
from ckad.engines.vm.assembly.grouping import group, members
from ckad.passes.pipeline import adjoint_of_tape
from ckad.tape.tape import Tape


def steps(n: int, u: Any, short: Any) -> Any:
    """With arrays, views, sums, scalars and short arrays, each of which needs the step before."""
    if n == 0:
        return np.sum(u) + short[0]
    u = u - 0.1 * np.sin(u) * np.roll(u, 1) + np.sum(short)
    return steps(n - 1, u, short[::-1] + np.sum(u * u) * np.ones(3))


def written_out(n: int) -> Tape:
    return ckad.trace(lambda u: steps(n, u, np.zeros(3)))(np.linspace(0.0, 1.0, 3000))


@pytest.mark.parametrize("chained", [True, False])
def test_rows_come_after_what_they_read(chained: bool) -> None:
    tape = adjoint_of_tape().run(written_out(7))
    seen: set[int] = {k for k, row in enumerate(tape.rows) if row.op.name in ("INPUT", "CONST")}
    for item in group(tape, chained):
        for k in members(item):
            splats = {x for x in tape.rows[k].operands if grouping.is_splat(tape, x)}
            assert seen.issuperset(set(tape.rows[k].operands) - splats)
            seen.add(k)
    assert seen == set(range(len(tape)))


def test_the_work_is_linear_in_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    original = grouping._Grouping._is_ready
    monkeypatch.setattr(
        grouping._Grouping,
        "_is_ready",
        lambda self, k, inside: looked.append(k) or original(self, k, inside),
    )
    counts = []
    for n_steps in (30, 120):
        tape = written_out(n_steps)
        assert len(tape) > 8 * n_steps
        looked.clear()
        group(tape)
        counts.append(len(looked))
    assert counts[1] < 5 * counts[0]
