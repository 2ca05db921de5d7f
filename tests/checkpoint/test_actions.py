"""The stream of actions: pieces, phases, and a gradient computed by following it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ckad.checkpoint.schedules import SCHEDULES
from ckad.engines.actions import Kind
from ckad.errors import CkadError, ScheduleError
from ckad.schedules import (
    Action,
    Schedule,
    forward_steps,
    multistage,
    revolve,
    store_all,
    two_level,
)

EXAMPLES = [
    pytest.param(family, arguments, id=f"{family.name}{arguments}")
    for family in SCHEDULES.values()
    for arguments in family.examples
]


def test_the_action_codes_are_fixed():
    names = ["ADVANCE", "STORE", "RESTORE", "DROP", "TAPE", "REVERSE", "END"]
    assert [(action.name, int(action)) for action in Action] == [
        (name, code) for code, name in enumerate(names)
    ]


def test_engines_have_the_same_codes():
    assert [(k.name, int(k)) for k in Kind] == [(a.name, int(a)) for a in Action]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("family", "arguments"), EXAMPLES)
@pytest.mark.parametrize("n_actions", [1, 2, 7, 64, 10**12])
def test_pieces_join_to_the_whole(family, arguments, n_actions):
    schedule = family.build(*arguments)
    for _ in range(2):  # every stream starts anew
        pieces = list(schedule.chunks(n_actions))
        assert all(1 <= piece.kind.size <= n_actions for piece in pieces)
        for whole, *parts in zip(schedule.actions, *pieces, strict=True):
            assert np.array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize(("family", "arguments"), EXAMPLES)
def test_rows_have_the_promised_dtypes(family, arguments):
    dtypes = [column.dtype for column in family.build(*arguments).actions]
    assert dtypes == [np.int8, np.int64, np.int64, np.int32]


@pytest.mark.parametrize(("family", "arguments"), EXAMPLES)
def test_the_final_state_exists_before_anything_is_restored(family, arguments):
    schedule = family.build(*arguments)
    rows = schedule.actions
    runs = np.isin(rows.kind, [Action.ADVANCE, Action.TAPE])
    if schedule.n_steps == 0:
        assert rows.kind.tolist() == [Action.END]
        return
    last = np.flatnonzero(runs & (rows.stop == schedule.n_steps))[0]
    forward = {Action.ADVANCE, Action.STORE, Action.DROP, Action.TAPE}
    assert set(rows.kind[: last + 1]) <= forward


def step(x, k):
    return math.sin(1.3 * x) + 0.01 * k


def step_reversed(ct, x):
    return ct * 1.3 * math.cos(1.3 * x)


def follow(schedule, x0):
    """(final state, its derivative), from the actions alone."""
    x, final, ct = x0, x0, 1.0
    slots, residuals = {}, {}
    rows = schedule.actions
    for kind, start, stop, slot in zip(*(column.tolist() for column in rows), strict=True):
        if kind == Action.STORE:
            slots[slot] = x
        elif kind == Action.RESTORE:
            x = slots[slot]
        elif kind == Action.DROP:
            del slots[slot]
        elif kind == Action.REVERSE:
            for k in reversed(range(stop - start)):
                ct = step_reversed(ct, residuals.pop(slot + k))
        elif kind in (Action.ADVANCE, Action.TAPE):
            for k in range(start, stop):
                if kind == Action.TAPE:
                    residuals[slot + k - start] = x
                x = step(x, k)
            final = x if stop == schedule.n_steps else final
    assert not slots
    assert not residuals
    return final, ct


@pytest.mark.parametrize(("family", "arguments"), EXAMPLES)
def test_following_any_schedule_gives_the_same_bits(family, arguments):
    expected = follow(store_all(arguments[0]), 0.7)
    assert follow(family.build(*arguments), 0.7) == expected


def test_rows_made_elsewhere_may_be_on_disk():
    made = multistage(100, 3, 2)
    schedule = Schedule.from_actions(made.actions, n_steps=100, n_disk_slots=2)
    assert (schedule.n_slots, schedule.n_disk_slots) == (3, 2)
    assert (schedule.writes, schedule.disk_writes, schedule.disk_reads) == (39, 5, 14)


def test_rows_made_elsewhere_are_counted():
    made = revolve(20, 3)
    schedule = Schedule.from_actions(made.actions, n_steps=20)
    assert (schedule.n_slots, schedule.n_tape_slots) == (3, 1)
    assert schedule.forward_steps == made.forward_steps
    assert schedule.writes == made.writes


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: revolve(10, 0), r"n_slots=0 is below 1\. Pass at least 1"),
        (lambda: revolve(10, -3), "n_slots=-3 is below 1"),
        (lambda: revolve(-1, 3), "n_steps=-1 is below 0"),
        (lambda: revolve(10.0, 3), r"n_steps=10\.0 is not an integer"),
        (lambda: revolve(10, "3"), "n_slots='3' is not an integer"),
        (lambda: revolve(None, 3), "n_steps=None is not an integer"),
        (lambda: revolve(2**62 + 1, 3), r"above 2\*\*62"),
        (lambda: revolve(2**62, 2**40), r"above 2\*\*31 - 1"),
        (lambda: revolve(10, 3).chunks(0), "n_actions=0 is below 1"),
        (lambda: store_all(-2), "n_steps=-2 is below 0"),
        (lambda: store_all(1.5), "not an integer"),
        (lambda: two_level(-2), "n_steps=-2 is below 0"),
        (lambda: two_level(10, 0), "period=0 is below 1"),
        (lambda: two_level(10, 2.0), r"period=2\.0 is not an integer"),
        (lambda: two_level(10, 3, -1), "extra_slots=-1 is below 0"),
        (lambda: two_level(10, 3, "taped"), "extra_slots='taped' is not an integer"),
        (lambda: forward_steps("revolve", 10, 0), "n_slots=0 is below 1"),
        (lambda: forward_steps("revolv", 10, 3), "'revolv'. Pass one of: store_all, two_level"),
    ],
)
def test_bad_arguments_are_named(build, message):
    with pytest.raises(ScheduleError, match=message) as caught:
        build()
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, CkadError)


def test_numpy_integers_are_integers():
    assert revolve(np.int32(100), np.int64(5)) == revolve(100, 5)


def test_actions_are_printed_row_by_row_and_long_ones_cut():
    short, long = (revolve(n, 2).actions for n in (3, 1000))
    assert str(short).splitlines()[0] == "STORE [0, 0) slot 0"
    assert len(str(short).splitlines()) == len(short.kind)
    assert str(long).splitlines()[100:] == [f"… {len(long.kind):,} rows"]
