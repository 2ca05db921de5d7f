"""Which runs are shared among threads: as has been faster, tried again now and then."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.engines.native.running import helpers
from ckad.engines.native.running.helpers import LONG, MOST, Sharing


def runs(sharing: Sharing, seconds: dict[bool, float], n: int = 300) -> list[bool]:
    """Whether each of n runs was shared, if they take so long one way and the other."""
    found = []
    for _ in range(n):
        found.append(sharing.next())
        sharing.note(found[-1], seconds[found[-1]])
    return found


@pytest.mark.parametrize("faster", [True, False])
def test_the_faster_way_is_taken(faster: bool) -> None:
    found = runs(Sharing(), {faster: 1e-3, not faster: 2e-3})
    assert found[0]
    assert np.mean([x is faster for x in found]) > 0.94
    assert not all(x is faster for x in found[-MOST:])


@pytest.mark.parametrize("faster", [True, False])
def test_what_changes_is_noticed(faster: bool) -> None:
    sharing = Sharing()
    runs(sharing, {faster: 1e-3, not faster: 2e-3})
    found = runs(sharing, {faster: 4e-3, not faster: 2e-3}, 3 * MOST)
    assert np.mean([x is not faster for x in found[-MOST:]]) > 0.9


def test_a_first_run_does_not_count() -> None:
    sharing = Sharing()
    sharing.note(sharing.next(), 1.0)
    assert runs(sharing, {True: 1e-3, False: 2e-3}, 3) == [True, False, True]


def test_runs_of_a_tenth_of_a_second_are_tried_both_ways() -> None:
    found = runs(Sharing(), {True: 0.3, False: 0.1})
    assert np.mean([not x for x in found]) > 0.94


def test_long_runs_are_shared() -> None:
    assert all(runs(Sharing(), {True: 3 * LONG, False: 1e-3}))


def test_bits_are_the_same_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = []

    def note(self: Sharing, way: bool, seconds: float) -> None:
        shared.append(way)
        self.seconds[way] = 1e-3 * len(shared)

    monkeypatch.setattr(helpers.Sharing, "note", note)

    def fun(x):
        for _ in range(20):
            x = np.tanh(x + 0.1 * np.roll(x, 1, 0)) * 1.1
        return np.sum(x**2)

    gradient = ckad.value_and_grad(fun, engine="native", threads=2)
    x = np.random.default_rng(0).normal(size=(300, 301))
    found = [gradient(x) for _ in range(9)]
    assert {True, False} <= set(shared)
    assert len({value.tobytes() + by_x.tobytes() for value, by_x in found}) == 1
