"""The first rows of schedules are written as plain Python, which nobody compiles for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ckad import schedules
from ckad.checkpoint.schedules import schedule as rows
from ckad.checkpoint.schedules.schedule import Generated, Schedule
from ckad.kernel import interpreted, kernel
from ckad.loops.tables import streamed_rows

EXAMPLES = [
    pytest.param(family.build, arguments, id=f"{family.name}{arguments}")
    for family in schedules.SCHEDULES.values()
    for arguments in family.examples
]


@kernel
def _double(x: int) -> int:
    return 2 * x


@kernel
def _quadruple(x: int) -> int:
    return _double(_double(x))


def test_a_kernel_is_interpreted_with_those_that_it_calls() -> None:
    assert interpreted(_quadruple)(2**62) == 2**64  # which int64 does not hold
    assert interpreted(len) is len


@pytest.mark.parametrize(("build", "arguments"), EXAMPLES)
def test_rows_are_those_of_compiled_code(
    build: Any, arguments: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule: Schedule = build(*arguments)
    if not isinstance(schedule.source, Generated):
        assert schedule.actions.kind.size
        return
    found = []
    for few in (0, 10**9):
        monkeypatch.setattr(rows, "FEW_ROWS", few)
        found.append([np.concatenate(column) for column in zip(*schedule.chunks(7), strict=True)])
    for compiled, plain in zip(*found, strict=True):
        np.testing.assert_array_equal(compiled, plain)


@pytest.mark.parametrize(("build", "arguments"), EXAMPLES)
@pytest.mark.parametrize("most", [1, 50])
def test_the_room_of_a_piece_is_known_without_its_rows(
    build: Any, arguments: tuple[Any, ...], most: int
) -> None:
    schedule: Schedule = build(*arguments)
    if schedule.n_steps < 10_000:
        assert streamed_rows(schedule, most) == next(schedule.chunks(most)).kind.size
    else:
        assert streamed_rows(schedule, most) == most
