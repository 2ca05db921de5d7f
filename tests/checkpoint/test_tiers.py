"""Schedules with slots on disk: published numbers, recurrences."""

from __future__ import annotations

import numpy as np
import pytest

from ckad.checkpoint.schedules.generators import binomial
from ckad.checkpoint.schedules.multistage import accesses, disk_traffic
from ckad.errors import ScheduleError
from ckad.schedules import (
    Action,
    disk_revolve,
    forward_steps,
    hrevolve,
    mixed_bytes,
    multistage,
    periodic_disk,
    revolve,
)
from tests.checkpoint.reports import checked

FAR = 10**15


# --- published numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ((100, 3, 2), (416, 5, 14)),
        ((1_000, 5, 5), (4_636, 70, 125)),
        ((10**4, 10, 10), (47_976, 715, 1_000)),
    ],
)
def test_multistage_reaches_the_published_numbers(arguments, numbers):
    report = checked(multistage(*arguments))
    assert (report.forward_steps, report.disk_writes, report.disk_reads) == numbers
    assert disk_traffic(*arguments) == numbers[1:]


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ((10, 2, 1), (30, 0, 0)),
        ((100, 3, 2), (420, 3, 5)),
        ((1_000, 5, 5), (4_705, 35, 55)),
        ((3_000, 5, 5), (16_758, 70, 125)),
    ],
)
def test_hrevolve_reaches_the_published_numbers(arguments, numbers):
    report = checked(hrevolve(*arguments, write=2, read=2))
    assert (report.forward_steps, report.disk_writes, report.disk_reads) == numbers


def test_makespans_reach_the_published_ones():
    assert hrevolve(1000, 5, 5).makespan(1, 2, 2) == 4885
    assert multistage(1000, 5, 5).makespan(1, 2, 2) == 5026
    assert disk_revolve(10**4, 10).makespan(1, 2, 2) == 32_698
    assert disk_revolve(10**4, 20).makespan(1, 2, 2) == 31_376
    assert disk_revolve(100, 3, write=20, read=1).makespan(1, 20, 1) == 469
    assert revolve(10, 3).makespan(step=2, write=9, read=9, reverse=3) == 2 * 25 + 3 * 10


@pytest.mark.parametrize(
    ("arguments", "count", "writes"),
    [
        *(((10, 3), 25, 0), ((100, 3), 275, 22), ((100, 5), 281, 13), ((1_000, 5), 2_831, 163)),
        *(((1_000, 10), 2_903, 85), ((3_000, 10), 8_721, 267)),
    ],
)
def test_disk_revolve_reaches_the_published_numbers(arguments, count, writes):
    report = checked(disk_revolve(*arguments))
    assert (report.forward_steps, report.disk_writes) == (count, writes)


@pytest.mark.parametrize(
    ("arguments", "count", "writes"),
    [((1_000, 10), 2_899, 90), ((10**4, 10), 29_080, 908), ((10**4, 20), 29_519, 476)],
)
def test_periodic_disk_reaches_the_published_numbers(arguments, count, writes):
    assert forward_steps("periodic_disk", *arguments) == count
    report = checked(periodic_disk(*arguments))
    assert (report.forward_steps, report.disk_writes, report.disk_reads) == (count, writes, writes)


def test_a_long_loop_with_a_disk():
    report = checked(disk_revolve(10**5, 10))
    assert report.forward_steps + 4 * report.disk_writes <= 3.28 * 10**5
    assert checked(periodic_disk(10**5, "tape", 100)).forward_steps == 199_900


# --- recurrences ---------------------------------------------------------------------------------


def level(below, behind, slots, step, write, read, first):
    """P(l, m), m = first … slots, and what lies behind: O(l, m); by the published recurrence."""
    held, free = {}, {first - 1: behind}
    for m in range(first, slots + 1):
        p = below.copy()
        for k in range(2, p.size):
            j = np.arange(1, k)
            p[k] = min(p[k], np.min(j * step + free[m - 1][k - j] + read + p[j - 1]))
        held[m] = p
        free[m] = np.minimum(below, write + p)
    return held, free


def hierarchical(n, ram, disk, step, write, read, ram_write, ram_read):
    """Least makespan of 1 … n steps with the reversal (and its taping) as long as one step."""
    k = np.arange(n)
    base = (k + 1) * step + k * (k + 1) // 2 * step + k * ram_read
    never = np.full(n, FAR)
    held = {1: base}
    free = {0: never}
    for m in range(1, ram + 1):
        if m > 1:
            p = base.copy()
            for x in range(2, n):
                j = np.arange(1, x)
                p[x] = min(p[x], np.min(j * step + free[m - 1][x - j] + ram_read + p[j - 1]))
            held[m] = p
        free[m] = ram_write + held[m]
        free[m][0] = step
    below = free[ram]
    return level(below, below, disk, step, write, read, 1)[1][disk] if disk else below


COSTS = [(1, 2, 2, 0, 0), (1, 0, 7, 0, 0), (3, 40, 1, 0, 0), (2, 5, 9, 1, 2), (1, 0, 0, 0, 0)]


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize(("ram", "disk"), [(1, 1), (2, 0), (3, 2), (1, 4)])
def test_hrevolve_is_optimal(ram, disk, costs):
    step, write, read, ram_write, ram_read = costs
    times = {"step": step, "write": write, "read": read}
    if ram_write:
        times |= {"ram_write": ram_write, "ram_read": ram_read}
    best = hierarchical(60, ram, disk, *costs)
    for n in (1, 2, 3, 4, 7, 12, 29, 60):
        assert takes(hrevolve(n, ram, disk, **times), *costs) == best[n - 1]


def takes(schedule, step, write, read, ram_write=0, ram_read=0):
    """Makespan of the actions; the store of a state that is on disk too is free in the recurrence
    only if it is in RAM at no cost."""
    checked(schedule)
    rows = schedule.actions
    restored = (rows.kind == Action.RESTORE) & (rows.slot < schedule.n_slots)
    ram = schedule.writes * ram_write + int(np.count_nonzero(restored)) * ram_read
    return schedule.makespan(step, write, read) + ram


@pytest.mark.slow
@pytest.mark.parametrize("costs", COSTS)
def test_hrevolve_is_optimal_everywhere(costs):
    for ram, disk in ((1, 3), (4, 4), (12, 1), (2, 12)):
        best = hierarchical(300, ram, disk, *costs)
        names = ("step", "write", "read", "ram_write", "ram_read")
        for n in range(1, 301):
            schedule = hrevolve(n, ram, disk, **dict(zip(names, costs, strict=True)))
            assert takes(schedule, *costs) == best[n - 1]


def unlimited(n, ram, step, write, read):
    """O∞ of 1 … n steps by the published recurrences."""
    k = np.arange(n)
    below = np.array([binomial.binomial_forward_steps(int(x) + 1, ram) for x in k]) * step
    once = level(below, below, 1, step, write, read, 1)[0][1]
    least = below.copy()
    for x in range(2, n):
        j = np.arange(1, x)
        least[x] = min(least[x], np.min(write + j * step + least[x - j] + read + once[j - 1]))
    return least


DISKS = [(1, 2, 2), (1, 20, 1), (1, 0, 0), (3, 100, 7), (1, 1, 60), (1, 0, 30)]


@pytest.mark.parametrize("costs", DISKS)
def test_disk_revolve_is_optimal(costs):
    step, write, read = costs
    for ram in (1, 3, 6):
        best = unlimited(240, ram, *costs)
        for n in (1, 2, 3, 5, 11, 40, 97, 240):
            schedule = disk_revolve(n, ram, step=step, write=write, read=read)
            assert takes(schedule, *costs) == best[n - 1]


@pytest.mark.slow
@pytest.mark.parametrize("costs", [*DISKS, (7, 3000, 11), (1, 500, 500)])
def test_disk_revolve_is_optimal_in_long_loops(costs):
    step, write, read = costs
    for ram in (1, 2, 5, 12):
        best = unlimited(3000, ram, *costs)
        for n in (*range(1, 300, 7), 1000, 2999, 3000):
            schedule = disk_revolve(n, ram, step=step, write=write, read=read)
            assert takes(schedule, *costs) == best[n - 1]


# --- accesses, periods, costs --------------------------------------------------------------------


def test_accesses_are_those_of_the_actions():
    for n, s in ((1, 1), (2, 1), (20, 1), (45, 2), (60, 3), (59, 7), (10, 20)):
        rows = revolve(n, s).actions
        stored, restored = rows.kind == Action.STORE, rows.kind == Action.RESTORE
        seen = [
            (np.sum(stored & (rows.slot == k)), np.sum(restored & (rows.slot == k)))
            for k in range(s)
        ]
        assert accesses(n, s) == seen


def test_the_slots_in_ram_have_most_accesses():
    for n, ram, disk in ((200, 2, 3), (77, 1, 4), (1000, 6, 2)):
        schedule = multistage(n, ram, disk)
        rows = schedule.actions
        used = np.isin(rows.kind, (Action.STORE, Action.RESTORE))
        counts = np.bincount(rows.slot[used], minlength=ram + disk)
        assert counts[:ram].min() >= counts[ram:].max()


def test_hrevolve_weighs_the_disk():
    slow = {"write": 50, "read": 50}
    with_disk, without = hrevolve(300, 3, 3, **slow), hrevolve(300, 3, 0)
    assert with_disk.makespan(1, **slow) < without.makespan(1, **slow)
    assert with_disk.makespan(1, **slow) < multistage(300, 3, 3).makespan(1, **slow)
    assert hrevolve(300, 3, 3, write=10**6, read=10**6).n_disk_slots == 0


def test_the_period_is_the_best_one():
    for ram, write, read in ((3, 2, 2), (10, 30, 5), (1, 0, 9)):
        costs = {"write": write, "read": read}
        n = 5000
        chosen = periodic_disk(n, ram, **costs).makespan(1, **costs)
        others = [periodic_disk(n, ram, p).makespan(1, **costs) for p in range(1, 80)]
        assert chosen <= min(others) + 2 * (write + read) + 100


def test_a_taped_period_needs_its_length():
    with pytest.raises(ScheduleError, match="period=None is not an integer"):
        periodic_disk(100, "tape")


def test_searches_that_are_too_long_are_refused():
    with pytest.raises(ScheduleError, match=r"takes 11 x 10000000 numbers.*Pass fewer slots"):
        hrevolve(10**7, 10, 10)
    with pytest.raises(ScheduleError, match="least of up to 1000000; that takes too long"):
        hrevolve(10**6, 10, 10)
    with pytest.raises(ScheduleError, match=r"write=1000000000000 is too large .* larger unit"):
        hrevolve(10**4, 2, 2, write=10**12)
    with pytest.raises(ScheduleError, match="more than 262,144 different segments"):
        periodic_disk(10**9, 1, 10**8)
    with pytest.raises(ScheduleError, match=r"read=-1 is below 0"):
        disk_revolve(10, 2, read=-1)
    with pytest.raises(ScheduleError, match=r"nbytes=3 holds neither .* 90 bytes.* of 8"):
        mixed_bytes(10, 3, 8, 10)
    with pytest.raises(ScheduleError, match=r"ram_slots \+ disk_slots=0 is below 1"):
        multistage(10, 0, 0)


# --- beside another implementation ---------------------------------------------------------------


def counted(schedule):
    """Forward steps, stores on disk and reads from it, of a schedule of the package."""
    peer = pytest.importorskip("checkpoint_schedules")
    total, writes, reads, action = 0, 0, 0, None
    while not isinstance(action, peer.EndReverse):
        action = next(schedule)
        if isinstance(action, peer.Forward):
            total += action.n1 - action.n0
            writes += action.write_ics and action.storage == peer.StorageType.DISK
        elif isinstance(action, (peer.Copy, peer.Move)):
            reads += action.from_storage == peer.StorageType.DISK
    return total, writes, reads


@pytest.mark.slow
@pytest.mark.parametrize(("n", "ram", "disk"), [(10, 2, 1), (30, 2, 2), (50, 3, 2), (25, 1, 3)])
def test_schedules_agree_with_another_implementation(n, ram, disk):
    peer = pytest.importorskip("checkpoint_schedules")
    ours = multistage(n, ram, disk)
    stages = counted(peer.MultistageCheckpointSchedule(n, ram, disk))
    assert stages == (ours.forward_steps, ours.disk_writes, ours.disk_reads)
    whole = peer.MixedCheckpointSchedule(n, ram + disk, storage=peer.StorageType.RAM)
    assert counted(whole)[0] == forward_steps("mixed", n, ram + disk)
    # of schedules that take as long there are many
    for ours, theirs in (
        (hrevolve(n, ram, disk), peer.HRevolve(n, ram, disk, wd=2, rd=2)),
        (disk_revolve(n, ram), peer.DiskRevolve(n, ram, wd=2, rd=2)),
    ):
        total, writes, reads = counted(theirs)
        assert ours.makespan(1, 2, 2) == total + 2 * (writes + reads)
