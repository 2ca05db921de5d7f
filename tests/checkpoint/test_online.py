"""Checkpoints of loops whose length is learnt at their end."""

from __future__ import annotations

import time
from functools import partial
from itertools import islice
from statistics import mean

import numpy as np
import pytest

import ckad
from ckad.checkpoint.schedules.online import MOST_SLOTS, Online, unknown
from ckad.checkpoint.schedules.schedule import Action, Actions, Schedule
from ckad.errors import ScheduleError
from ckad.schedules import forward_steps, online
from ckad.testing import check_schedule


@pytest.mark.parametrize(
    ("n_steps", "n_slots", "most"),
    [(10, 3, 25), (66, 10, 186), (100, 5, 443), (1_000, 10, 5_113), (10_000, 20, 55_487)],
)
def test_no_more_steps_than_published(n_steps, n_slots, most):
    assert check_schedule(online(n_steps, n_slots)).forward_steps <= most


@pytest.mark.parametrize("n_slots", [2, 3, 5, 10, 20])
def test_beside_the_offline_optimum(n_slots):
    lengths = range(2, 1_200)
    factors = [
        forward_steps("online", n, n_slots) / forward_steps("revolve", n, n_slots) for n in lengths
    ]
    assert mean(factors) < (1.02 if n_slots < 5 else 1.011)
    assert max(factors) <= 1.2


@pytest.mark.parametrize("n_slots", [5, 10, 20])
@pytest.mark.parametrize("spacing", [97, pytest.param(7, marks=pytest.mark.slow)])
def test_the_mean_over_lengths_up_to_ten_thousand(n_slots, spacing):
    lengths = range(2, 10_001, spacing)
    ratios = [
        forward_steps("online", n, n_slots) / forward_steps("revolve", n, n_slots) for n in lengths
    ]
    assert 1 <= mean(ratios) < 1.012


@pytest.mark.slow
@pytest.mark.parametrize("n_slots", range(1, 41))
def test_one_step_from_the_optimum_everywhere(n_slots):
    for n in range(1, (n_slots + 1) * (n_slots + 2) // 2 + 1):
        offline = forward_steps("revolve", n, n_slots)
        assert offline <= forward_steps("online", n, n_slots) <= offline + 1


@pytest.mark.parametrize("n_slots", [2, 3, 5, 10, 70, 130])
def test_one_step_from_the_optimum_while_no_step_need_run_thrice(n_slots):
    last = min((n_slots + 1) * (n_slots + 2) // 2, 16 * n_slots)
    for n in range(1, last + 1, 1 + n_slots // 30):
        offline = forward_steps("revolve", n, n_slots)
        assert offline <= forward_steps("online", n, n_slots) <= offline + 1


@pytest.mark.parametrize("n_slots", [100, MOST_SLOTS])
def test_many_slots(n_slots):
    for n in (n_slots**2 // 3, (n_slots + 1) * (n_slots + 2) // 2, 2 * n_slots**2):
        report = check_schedule(online(n, n_slots))
        assert report.forward_steps < 1.02 * forward_steps("revolve", n, n_slots)


def test_more_slots_than_are_of_use():
    assert online(3_000, 10**9).n_slots == MOST_SLOTS


@pytest.mark.parametrize("n_slots", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("n_steps", [0, 1, 2, 3, 5, 17, 64, 300])
@pytest.mark.parametrize("n_actions", [3, 1_000])
def test_a_sweep_that_was_stopped_is_reversed(n_steps, n_slots, n_actions):
    """What an engine does: the sweep's actions clipped to the steps there were, then the others."""
    source = unknown(64, n_slots).source
    assert isinstance(source, Online)
    forward = []
    for rows in source.sweep(n_actions) if n_steps else ():
        last = np.flatnonzero((rows.kind == Action.ADVANCE) & (rows.stop >= n_steps))
        forward.append(rows.piece(0, last[0] + 1 if last.size else len(rows.kind)))
        if last.size:
            break
    pieces = [*forward, *source.after(n_steps, n_actions)]
    columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
    rows = Actions(*columns)
    rows = rows._replace(stop=np.minimum(rows.stop, n_steps))
    schedule = Schedule.from_actions(rows, n_steps=n_steps, n_slots=n_slots)
    report = check_schedule(schedule)
    # the last step was not taped when it was run first
    expected = forward_steps("online", n_steps, n_slots)
    assert report.forward_steps <= expected + max(1, n_steps if n_slots < 3 else 6)
    assert all(len(piece.kind) <= n_actions for piece in pieces)


def test_a_sweep_never_ends():
    pieces = unknown(64, 4).source.sweep(100)
    rows = [next(pieces) for _ in range(20)]
    assert all(Action.END not in piece.kind for piece in rows)
    assert rows[-1].stop[-1] > 10**5


@pytest.mark.parametrize("n_slots", [1, 2, 3])
def test_a_sweep_looks_no_further_ahead_than_it_has_come(n_slots):
    begin = 0
    for piece in islice(unknown(64, n_slots).source.sweep(4096), 4):
        assert n_slots == 1 or begin < piece.stop[-1] < 10 * max(begin, 2**16)
        begin = int(piece.stop[-1])


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_short_loop_is_not_kept_waiting_for_a_long_one(engine):
    def root(x):
        y = x + 2.0
        while abs(y * y - x) > 1e-9:
            y = y - 0.7 * (y * y - x) / (2.0 * y)
        return y

    began = time.perf_counter()
    for n_slots in (2, 3, 4):
        slope = ckad.grad(root, schedule=partial(online, n_slots=n_slots), engine=engine)(2.0)
        assert slope == pytest.approx(0.5 / 2**0.5, rel=1e-6)
    assert time.perf_counter() - began < 60.0  # with so few slots it took minutes


def test_arguments():
    with pytest.raises(ScheduleError, match="n_slots=0"):
        online(10, 0)
    with pytest.raises(ScheduleError, match="n_steps=-1"):
        online(-1, 3)
    with pytest.raises(ScheduleError, match="not an integer"):
        forward_steps("online", 10.5, 3)
