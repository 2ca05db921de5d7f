"""Action tables: few rows are made once, and serve every run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ckad
from ckad.checkpoint.schedules.schedule import Schedule
from ckad.loops import tables
from ckad.schedules import store_all, two_level


def solve_lower(matrix: Any, b: Any) -> Any:
    x = np.zeros(len(b))
    for i in range(len(b)):
        total = b[i]
        for j in range(i):
            total = total - np.sin(matrix[i, j] * x[j])
        x[i] = total / matrix[i, i]
    return np.sum(x)


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("memory", [None, "16 KB"])
def test_later_calls_make_no_rows(
    engine: str, memory: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradient = ckad.value_and_grad(solve_lower, (0, 1), engine=engine, memory=memory)
    first, second = (
        (np.tril(np.linspace(0.1, k, 36).reshape(6, 6)) + np.eye(6), np.linspace(1, 2, 6))
        for k in (1.0, 1.5)
    )
    expected = [
        ckad.value_and_grad(solve_lower, (0, 1), engine=engine)(*x) for x in (first, second)
    ]
    gradient(*first)

    def refuse(self: Schedule, n_actions: int = 0) -> Any:
        raise AssertionError("rows were made again")

    monkeypatch.setattr(Schedule, "chunks", refuse)
    for x, wanted in zip((first, second, first), [*expected, expected[0]], strict=True):
        found = gradient(*x)
        assert found[0] == wanted[0]
        for a, b in zip(found[1], wanted[1], strict=True):
            assert a.tobytes() == b.tobytes()


def test_many_rows_are_not_kept() -> None:
    kept, made = tables.whole(store_all(10_000)), tables.whole(two_level(1_000, 10))
    assert kept.fixed is not None
    assert not kept.fixed.flags.writeable
    assert made.fixed is None
    assert made.n_rows > tables.FEW_ROWS
