"""Schedules with restart states on disk, where those are predicted to be faster."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from math import inf
from time import perf_counter, thread_time
from typing import NamedTuple

from ckad.checkpoint.cheapest import cheapest
from ckad.checkpoint.plan import OnDisk
from ckad.checkpoint.schedules.online import MOST_SLOTS, Online, unknown
from ckad.checkpoint.schedules.schedule import Schedule
from ckad.checkpoint.store.disk import DiskStore
from ckad.engines.measure import TapedLoop, step_bytes
from ckad.engines.work import reverse_nanoseconds
from ckad.errors import CheckpointError
from ckad.loops.arenas import Schedules, slots_of
from ckad.loops.between.courses import BUFFERS, Courses
from ckad.loops.choose import Chooser
from ckad.loops.costs import CACHE, MEMORY, is_far, pages

#: Bytes of the states by which a directory's speed is measured, and how many of each.
SAMPLES, SAMPLED = (2**16, 2**20), 4
#: The part of the disk's time that is hidden behind the steps, or of the steps' behind the disk.
HIDDEN = 0.8
#: The disk is used where it is predicted to take so many times the time at the most: what is
#: predicted is no better known than that.
WORTH = 0.95
#: Times that a choice is made smaller until it fits.
TRIES = 8


class Speed(NamedTuple):
    """Seconds that a state takes, and each of its bytes: to a disk, from it, and of the program's
    own on either way, while it hands the state over or takes it."""

    write: float
    write_byte: float
    read: float
    read_byte: float
    over: float = 0.0
    over_byte: float = 0.0


class Choice(NamedTuple):
    """What was chosen, and what is to be said of it."""

    schedules: Schedules
    described: OnDisk


def moved(schedule: Schedule, n_in_memory: int) -> Schedule:
    """A schedule for a loop of unknown length, with all slots but the first ones on disk."""
    n_disk = schedule.n_slots - n_in_memory
    return replace(schedule, n_slots=n_in_memory, n_disk_slots=n_disk)


@lru_cache(maxsize=64)
def speed(directory: str | None) -> Speed:
    """How fast a directory is written and read by a store, measured with a few MB."""
    few, many = (_seconds(directory, size) for size in SAMPLES)
    slopes = [max(0.0, (y - x) / (SAMPLES[1] - SAMPLES[0])) for x, y in zip(few, many, strict=True)]
    starts = [max(0.0, x - SAMPLES[0] * each) for x, each in zip(few, slopes, strict=True)]
    return Speed(*(number for pair in zip(starts, slopes, strict=True) for number in pair))


def _seconds(directory: str | None, slot_bytes: int) -> tuple[float, float, float]:
    """Of a write and of a read of a state by the thread that waits for them, and of what a program
    does for one of them otherwise: the least, since what else the machine does only adds to
    them."""
    state = memoryview(bytearray(os.urandom(slot_bytes)))
    written, read = _each(directory, state, 0, perf_counter)
    handed, taken = _each(directory, state, BUFFERS, thread_time)
    return written, read, (handed + taken) / 2


def _each(
    directory: str | None, state: memoryview, n_buffers: int, clock: Callable[[], float]
) -> tuple[float, float]:
    limit = 4 * SAMPLED * state.nbytes + 2**20
    store = DiskStore(directory, limit, state.nbytes, n_buffers=n_buffers)
    written = read = inf
    for slot in range(SAMPLED):
        start = clock()
        store.write(slot, slot, state)
        written = min(written, clock() - start)
        store.flush()
    for slot in range(SAMPLED):
        start = clock()
        store.prefetch(slot, slot)
        store.read(slot, slot, state)
        read = min(read, clock() - start)
    store.close()
    return written, read


def on_disk(chooser: Chooser, chosen: Schedules, courses: Courses) -> Choice | None:
    """The best schedules with states on disk, where those are predicted to be faster."""
    if chooser.choice != "auto":
        return None
    weigh = _Weigh(chooser, courses)
    found = dict(chosen)
    for x in chooser.outer:
        if x.state_bytes and x.n_steps > 1:
            tried = weigh.best(x, found)
            if tried is not None and weigh.seconds(tried) < WORTH * weigh.seconds(found):
                found = tried
    others = [s for s in (chosen, *weigh.tried) if s != found]
    second = min(others, key=weigh.seconds, default=chosen)
    main = max(chooser.outer, key=lambda x: x.n_steps, default=None)
    name = second[main.name].family if main else "none"
    times = weigh.seconds(found), weigh.computing(found)
    said = OnDisk(*times, weigh.io_bytes(found), name, weigh.seconds(second))
    return Choice(found, said)


def seconds_on_disk(chooser: Chooser, asked: Schedules, courses: Courses) -> float | None:
    """Predicted seconds of both sweeps under schedules that were asked for; None where the speed of
    the disk is not to be had, which the run itself says."""
    with suppress(CheckpointError):
        return _Weigh(chooser, courses).seconds(asked)
    return None


class _Weigh:
    """Predicted seconds of schedules of a program's outermost loops."""

    def __init__(self, chooser: Chooser, courses: Courses) -> None:
        self.chooser, self.courses = chooser, courses
        self.back = reverse_nanoseconds(courses.tape, courses.engine)
        directory = courses.disk.directory
        self.speed = speed(None if directory is None else os.fspath(directory))
        self.tried: list[Schedules] = []

    def seconds(self, schedules: Schedules) -> float:
        loops = sum(self._of_loop(x, schedules) for x in self.chooser.outer)
        return loops + pages(self.chooser.measured(schedules))

    def _of_loop(self, x: TapedLoop, schedules: Schedules) -> float:
        steps, schedule = self._of_steps(x, schedules), schedules[x.name]
        write, read, over = self._transfer(x)
        writes, reads = _transfers(schedule)
        steps, disk = steps + (writes + reads) * over, writes * write + reads * read
        return steps + disk - HIDDEN * min(steps, disk)

    def computing(self, schedules: Schedules) -> float:
        """Seconds of all steps alone."""
        return sum(self._of_steps(x, schedules) for x in self.chooser.outer)

    def _of_steps(self, x: TapedLoop, schedules: Schedules) -> float:
        schedule, pace = schedules[x.name], self.courses.pace
        size, cost = self._residuals(x, schedules), self.courses.costs.loops.get(x.name)
        moved = pace * x.n_steps * size * 1e-9 * MEMORY  # to memory that is far and back
        if cost is not None:
            far = is_far(schedule.n_tape_slots, size) - (cost.held > CACHE)
            return pace * cost.seconds(schedule, self.chooser.most_rows) + far * moved
        step, back = self._step(x)
        steps = schedule.forward_steps * step + x.n_steps * back
        return steps + is_far(schedule.n_tape_slots, size) * moved

    def _step(self, x: TapedLoop) -> tuple[float, float]:
        """Seconds of a step, and of its reverse."""
        pace = self.courses.pace
        if x.name in self.courses.costs.loops:
            cost = self.courses.costs.loops[x.name]
            return pace * cost.advance, pace * cost.back
        step, back = self.chooser.step_ns.get(x.name, 1.0), self.back.get(x.name, 1.0)
        return 1e-9 * pace * step, 1e-9 * pace * back

    def _transfer(self, x: TapedLoop) -> tuple[float, float, float]:
        """Seconds of a write, of a read, and of the program's own for either, in which another
        piece of actions begins."""
        at, n, cost = self.speed, x.state_bytes, self.courses.costs.loops.get(x.name)
        over = at.over + n * at.over_byte + (cost.piece if cost else 0.0)
        return at.write + n * at.write_byte, at.read + n * at.read_byte, over

    def io_bytes(self, schedules: Schedules) -> int:
        outer = self.chooser.outer
        return sum(sum(_transfers(schedules[x.name])) * x.state_bytes for x in outer)

    def best(self, x: TapedLoop, chosen: Schedules) -> Schedules | None:
        """The fastest choice with states of one loop on disk that fits; None if none does."""
        room = self._room(x, chosen)
        for _ in range(TRIES):
            option = self._option(x, room, chosen)
            if option is None:
                return None
            found = {**chosen, x.name: option}
            over = self.chooser.measured(found) - self.chooser.budget
            if over <= 0:
                self.tried.append(found)
                return found
            room -= over
        return None

    def _room(self, x: TapedLoop, chosen: Schedules) -> int:
        """Bytes for the states and residuals of a loop, beside what the disk's take."""
        step = self._residuals(x, chosen)
        free = self.chooser.budget - self.chooser.measured(chosen)
        held = slots_of(chosen)[x.name].nbytes(x.state_bytes, step)
        return free + held - x.state_bytes - self.courses.buffers(x)

    def _residuals(self, x: TapedLoop, chosen: Schedules) -> int:
        return step_bytes(self.chooser.loops, slots_of(chosen), x.name)

    def _option(self, x: TapedLoop, room: int, chosen: Schedules) -> Schedule | None:
        step, most = self._residuals(x, chosen), self.courses.capacity(x).n_slots
        if x.is_open:
            n_slots = min((room - step) // x.state_bytes, MOST_SLOTS - 1)
            n_disk = min(most, MOST_SLOTS - n_slots)
            if n_slots < 1 or n_disk < 1:
                return None
            return moved(unknown(x.n_steps, n_slots + n_disk), n_slots)
        disk = most * x.state_bytes
        seconds = *self._step(x), *self._transfer(x)
        sizes = x.n_steps, x.state_bytes, step, max(0, room), disk
        found = cheapest(*sizes, *seconds, hidden=HIDDEN, only_disk=True)
        return next((c.schedule for c in found if c.disk_writes), None)


def _transfers(schedule: Schedule) -> tuple[int, int]:
    """How many states are written to disk and read from it."""
    if isinstance(schedule.source, Online):  # about, if they are not needed again and again
        return schedule.n_disk_slots, schedule.n_disk_slots
    return (schedule.disk_writes, schedule.disk_reads) if schedule.n_disk_slots else (0, 0)
