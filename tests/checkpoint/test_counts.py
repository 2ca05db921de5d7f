"""Forward steps, writes and slots of every family against published counts and recurrences."""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckad.checkpoint.schedules import SCHEDULES
from ckad.checkpoint.schedules.generators import binomial
from ckad.checkpoint.simulate import (
    FREE,
    FRONTIER,
    N_REGISTERS,
    N_SLOTS,
    N_STEPS,
    VALID,
    check_schedule,
    simulate,
)
from ckad.schedules import Action, Schedule, forward_steps, revolve, store_all, two_level

MAX_N, MAX_S = 300, 12

REVOLVE = [
    (10, 3, 25),
    (66, 10, 186),
    (100, 5, 416),
    (1000, 10, 4636),
    (1000, 20, 3747),
    (10**4, 10, 67_624),
    (10**4, 20, 47_976),
    (10**5, 25, 572_595),
    (10**6, 30, 6_623_008),
]
TWO_LEVEL = [
    (10, 5, 3, 28),
    (100, 10, 3, 340),
    (100, 20, 4, 365),
    (1000, 32, 5, 3868),
    (10**4, 100, 9, 42_200),
]
EXAMPLES = [
    pytest.param(family, arguments, id=f"{family.name}{arguments}")
    for family in SCHEDULES.values()
    for arguments in family.examples
]


@pytest.mark.parametrize(("n", "s", "count"), REVOLVE)
def test_revolve_reaches_the_published_count(n, s, count):
    assert forward_steps("revolve", n, s) == count
    assert check_schedule(revolve(n, s)).forward_steps == count


@pytest.mark.parametrize(("n", "period", "extra", "count"), TWO_LEVEL)
def test_two_level_reaches_the_published_count(n, period, extra, count):
    assert forward_steps("two_level", n, period, extra_slots=extra) == count
    assert check_schedule(two_level(n, period, extra)).forward_steps == count


@pytest.mark.parametrize(("family", "arguments"), EXAMPLES)
def test_every_family_is_valid_and_says_what_it_costs(family, arguments):
    schedule = family.build(*arguments)
    report = check_schedule(schedule)
    assert schedule.family == family.name
    assert schedule.n_steps == arguments[0]
    assert report.forward_steps == schedule.forward_steps == family.forward_steps(*arguments)
    assert report.writes == schedule.writes
    assert report.peak_slots == schedule.n_slots
    assert report.peak_tape_slots == schedule.n_tape_slots
    assert report.n_actions == schedule.actions.kind.size <= 9 * schedule.n_steps + 1


@cache
def advances():
    """t(n, s) = min i + t(i, s) + t(n - i, s - 1), with t(1, ·) = 0 and t(n, 1) = n (n - 1) / 2."""
    t = np.zeros((MAX_N + 1, MAX_S + 1), np.int64)
    for n in range(2, MAX_N + 1):
        t[n, 1] = n * (n - 1) // 2
        for s in range(2, MAX_S + 1):
            t[n, s] = np.min(costs(t, n, s))
    return t


def costs(t, n, s):
    """Advances by where the first checkpoint goes, i = 1 … n - 1."""
    i = np.arange(1, n)
    return i + t[i, s] + t[n - i, s - 1]


@cache
def least_writes():
    """Fewest stores among optimal schedules, the segment's own start not counted."""
    t = advances()
    writes = np.zeros_like(t)
    for n in range(2, MAX_N + 1):
        for s in range(2, MAX_S + 1):
            i = 1 + np.flatnonzero(costs(t, n, s) == t[n, s])
            writes[n, s] = np.min((n - i > 1) + writes[n - i, s - 1] + writes[i, s])
    return writes


@pytest.mark.parametrize("s", range(1, MAX_S + 1))
def test_revolve_is_optimal_and_writes_least(s):
    for n in range(1, MAX_N + 1):
        report = check_schedule(revolve(n, s))
        assert report.forward_steps == forward_steps("revolve", n, s) == n + advances()[n, s]
        assert report.writes == least_writes()[n, s] + (n > 1)
        assert report.peak_slots == min(s, n - 1)


def test_writes_count_the_store_of_the_initial_state():
    assert revolve(100, 5).writes == 44
    assert revolve(2, 1).writes == 1
    assert revolve(1, 1).writes == 0


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 30, 31])
@pytest.mark.parametrize("period", [1, 2, 5, 7, 30, 40])
@pytest.mark.parametrize("extra", ["tape", 0, 1, 3, 50, "ahead"])
def test_two_level_allocates_what_it_uses(n, period, extra):
    ahead = extra == "ahead"
    schedule = two_level(n, period, "tape" if ahead else extra, ahead=ahead)
    report = check_schedule(schedule)
    assert (report.peak_slots, report.peak_tape_slots) == (schedule.n_slots, schedule.n_tape_slots)


def test_a_taped_segment_is_run_twice_but_the_last():
    assert two_level(100, 10, "tape").forward_steps == 190
    assert two_level(95, 10, "tape").forward_steps == 185
    assert two_level(10_000).forward_steps == 19_900


@pytest.mark.parametrize(("n", "period"), [(10, 4), (12, 4), (1, 3), (5, 9), (100, 7)])
def test_a_segment_is_taped_before_the_one_behind_it_is_reversed(n, period):
    schedule = two_level(n, period, ahead=True)
    assert schedule.forward_steps == two_level(n, period).forward_steps
    assert schedule.n_tape_slots == min(n, 2 * period)
    rows = schedule.actions
    length = (rows.stop - rows.start).tolist()
    kinds, start, stop = rows.kind.tolist(), rows.start.tolist(), rows.stop.tolist()
    follows = [
        length[k + 1]
        for k in range(len(kinds) - 1)
        if kinds[k : k + 2] == [Action.TAPE, Action.REVERSE] and start[k + 1] == stop[k]
    ]
    assert schedule.n_beside == sum(follows) == n - min(n, period)


def test_store_all_uses_no_restart_slot():
    report = check_schedule(store_all(1000))
    assert report == (1000, 0, 0, 1000, 3, 0, 0, 0, (1000,))


def test_more_slots_than_steps_store_every_state_that_is_needed_again():
    assert revolve(10, 10**12).n_slots == 9
    assert revolve(10, 10**12).forward_steps == 19


def exact_split(n, s):
    """The rule of `binomial.split` by its three cases, in integers of any size."""
    if s == 1:
        return n - 1
    if s >= n - 1:
        return 1
    r = binomial.least_repetitions(n, s)
    inner, outer = comb(s + r - 2, s - 1), comb(s + r - 3, s - 2)
    if n <= comb(s + r - 1, s) + outer:
        return comb(s + r - 2, s)
    if n >= comb(s + r - 1, s) + inner + outer:
        return comb(s + r - 1, s)
    return n - inner - outer


@settings(max_examples=300)
@given(
    n=st.integers(2, 2**62) | st.integers(2, 5000) | st.integers(2**62 - 100, 2**62),
    s=st.sampled_from([1, 2]) | st.integers(5, 70) | st.integers(5, 2**31 - 1),
)
def test_split_is_exact_up_to_the_longest_loop(n, s):
    assert binomial.split(n, s) == exact_split(n, s)


@given(r=st.integers(1, 40), s=st.integers(2, 40), shift=st.integers(-1, 1))
def test_split_is_exact_where_the_repetitions_change(r, s, shift):
    n = min(max(comb(s + r, s) + shift, 2), 2**62)
    assert binomial.split(n, s) == exact_split(n, s)


@pytest.mark.parametrize("s", [1, 2, 20, 1000])
def test_the_longest_loop_starts_correctly(s):
    schedule = revolve(2**62, s)
    rows = next(schedule.chunks(1000))
    state = np.zeros(N_REGISTERS, np.int64)
    state[N_STEPS] = state[FRONTIER] = schedule.n_steps
    state[N_SLOTS] = s
    slots, tape_slots = np.full(s, FREE, np.int64), np.full(1, FREE, np.int64)
    if s > 1:  # one slot takes more forward steps than the simulator counts
        beside = np.zeros(s + 1, np.int64)
        assert simulate(*rows, state, slots, tape_slots, beside) == (1000, VALID)
    assert np.all(rows.start >= 0)
    assert np.all(rows.stop >= rows.start)


def test_closed_forms_have_no_limit():
    assert forward_steps("revolve", 10**30, 1) == 10**30 * (10**30 + 1) // 2
    n, s = comb(45, 5), 40
    assert forward_steps("revolve", n, s) == n + 5 * n - comb(45, 4)
    assert forward_steps("store_all", 10**40) == 10**40


@pytest.mark.parametrize("n", range(2, 14))
@pytest.mark.parametrize("s", range(1, 6))
def test_revolve_agrees_with_another_implementation(n, s):
    peer = pytest.importorskip("checkpoint_schedules")
    assert revolve(n, s).forward_steps == peer_count(peer, peer.Revolve(n, s), n)
    multistage = peer.MultistageCheckpointSchedule(n, min(s, n - 1), 0)
    assert revolve(n, s).forward_steps == peer_count(peer, multistage, n)


@pytest.mark.parametrize(("n", "period", "extra"), [(10, 4, 1), (12, 4, 2), (23, 6, 3), (9, 3, 1)])
def test_two_level_agrees_with_another_implementation(n, period, extra):
    peer = pytest.importorskip("checkpoint_schedules")
    schedule = peer.TwoLevelCheckpointSchedule(period, extra)
    assert two_level(n, period, extra).forward_steps == peer_count(peer, schedule, n)


def peer_count(peer, schedule, n):
    total, action = 0, None
    while not isinstance(action, peer.EndReverse):
        action = next(schedule)
        if isinstance(action, peer.Forward):
            total += min(action.n1, n) - action.n0
            if action.n1 >= n and schedule.max_n is None:
                schedule.finalize(n)
    return total


def test_print_says_what_a_schedule_costs():
    assert str(revolve(1000, 10)) == (
        "revolve: n_steps=1000, n_slots=10, n_tape_slots=1, forward_steps=4636, "
        "recompute factor 4.636"
    )
    assert store_all(0).recompute_factor == 1.0


def test_equal_arguments_make_equal_schedules():
    assert revolve(100, 5) == revolve(100, 5) != revolve(100, 6)
    assert hash(revolve(100, 5)) == hash(revolve(100, 5))
    assert isinstance(revolve(100, 5), Schedule)
