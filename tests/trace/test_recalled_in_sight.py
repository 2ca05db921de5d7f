"""What loops carry that no name of a running function shows is recalled, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ckad.trace.source.control import loops
from ckad.trace.source.control.recalled import guesses

from .test_recalled import check_like_first, tape


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    guesses.clear()
    yield
    guesses.clear()


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """An item for each time that a loop's body is recorded."""
    seen: list[Any] = []
    run = loops.StagedLoop._round

    def counted(self: Any) -> Any:
        seen.append(self)
        return run(self)

    monkeypatch.setattr(loops.StagedLoop, "_round", counted)
    return seen


def stepper(u, dt):
    speed = np.zeros_like(u)

    def step():
        nonlocal u, speed
        speed = speed - dt * np.sin(u)
        u = u + dt * speed
        return np.sum(u)

    return step


def by_closure(u, dt):
    step, total = stepper(u, dt), 0.0
    for _ in range(7):
        total = total + step()
    return total


def in_lists(u, dt):
    rows = [[0.1 * k, u[0]] for k in range(18)]
    for _ in range(6):
        for k, row in enumerate(rows):
            row[0] += dt * row[1]
            row[1] -= dt * np.sin(row[0]) * u[k % 2]
    return sum(row[0] * row[1] for row in rows)


@pytest.mark.parametrize("program", [by_closure, in_lists])
def test_they_take_one_round(program, rounds):
    tape(program, np.array([0.5, 0.2]), 0.1)
    assert len(rounds) > 1
    rounds.clear()
    tape(program, np.array([0.5, 0.2, 0.3]), 0.2)
    assert len(rounds) == len({x.steps.node for x in rounds})
    check_like_first(program, (np.array([0.5, 0.2]), 0.1), np.array([0.5, 0.2, 0.3]), 0.2)


def test_another_number_of_lists_is_found_anew():
    def run(u, n):
        rows = [[0.0, u[0] * k] for k in range(n)]
        for _ in range(4):
            for row in rows:
                row[0] += 0.1 * row[1] * u[1]
        return sum(row[0] for row in rows)

    u = np.array([0.5, 0.2])
    for before, now in ((18, 3), (3, 18)):
        check_like_first(run, (u, before), u, now)
