"""Schedules with restart states on disk, where those are predicted to be faster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import NamedTuple

import numpy as np

from ckad.checkpoint.plan import OnDisk
from ckad.checkpoint.schedules.online import Online, unknown
from ckad.checkpoint.schedules.revolve import revolve
from ckad.checkpoint.schedules.schedule import Action, Actions, Schedule, Source
from ckad.checkpoint.schedules.two_level import two_level
from ckad.engines.measure import TapedLoop, step_bytes
from ckad.engines.work import reverse_nanoseconds
from ckad.loops.choose import Chooser, Schedules, slots_of
from ckad.loops.courses import BUFFERS, Courses

#: Bytes that are written to measure a directory's speed, and what is thought of one that refuses.
SAMPLE, SLOW = 2**23, 1e8
#: Longer loops are not looked at for which of their slots are used most.
LONGEST_COUNTED = 100_000
#: The part of the disk's time that is not hidden behind the steps.
SHOWN = 0.2
#: Times that a choice is made smaller until it fits.
TRIES = 8


class Speed(NamedTuple):
    """Bytes per second of a directory."""

    write: float
    read: float


class Choice(NamedTuple):
    """What was chosen, and what is to be said of it."""

    schedules: Schedules
    described: OnDisk


@dataclass(frozen=True, eq=False)
class Renumbered:
    """The actions of a schedule with its restart slots under other numbers."""

    source: Source
    numbers: np.ndarray

    def chunks(self, n_actions: int) -> Iterator[Actions]:
        for rows in self.source.chunks(n_actions):
            states = np.isin(rows.kind, (Action.STORE, Action.RESTORE, Action.DROP))
            slot = np.where(states, self.numbers[np.where(states, rows.slot, 0)], rows.slot)
            yield rows._replace(slot=slot.astype(np.int32))


def moved(schedule: Schedule, n_in_memory: int) -> Schedule:
    """The schedule with all but ``n_in_memory`` restart slots on disk: those used least.

    Stumm & Walther, MultiStage approaches for optimal offline checkpointing, SIAM J. Sci. Comput.
    31 (2009).
    """
    n_disk = schedule.n_slots - n_in_memory
    family = f"{schedule.family} on disk"
    if isinstance(schedule.source, Online):  # which are used most is not known before the run
        source: Source = schedule.source
    else:
        numbers = np.empty(schedule.n_slots, np.int32)
        numbers[_by_use(schedule)] = np.arange(schedule.n_slots)
        source = Renumbered(schedule.source, numbers)
    counts = schedule.n_tape_slots, schedule.forward_steps
    return Schedule(family, schedule.n_steps, n_in_memory, *counts, source, n_disk)


@lru_cache(maxsize=64)
def _uses(schedule: Schedule) -> np.ndarray:
    """How often the state of each restart slot is stored or restored."""
    found = np.zeros(max(1, schedule.n_slots + schedule.n_disk_slots), np.int64)
    for rows in schedule.chunks():
        used = np.isin(rows.kind, (Action.STORE, Action.RESTORE))
        found += np.bincount(rows.slot[used], minlength=found.size)
    return found


def _by_use(schedule: Schedule) -> np.ndarray:
    """The slots, those used most first; of equal ones the later, which are needed sooner."""
    found = _uses(schedule)[: schedule.n_slots]
    return np.lexsort((-np.arange(found.size), -found))


def transfers(schedule: Schedule) -> int:
    """How many states are written to disk and read from it."""
    if isinstance(schedule.source, Online):
        return 2 * schedule.n_disk_slots
    return int(_uses(schedule)[schedule.n_slots :].sum()) if schedule.n_disk_slots else 0


@lru_cache(maxsize=64)
def speed(directory: str | None) -> Speed:
    """How fast a directory is written and read, measured with a few MB."""
    block = os.urandom(SAMPLE)
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            start = perf_counter()
            file.write(block)
            file.flush()
            os.fsync(file.fileno())
            written = perf_counter()
            os.lseek(file.fileno(), 0, os.SEEK_SET)
            os.read(file.fileno(), SAMPLE)
            read = perf_counter()
    except OSError:  # the store says what is wrong
        return Speed(SLOW, SLOW)
    return Speed(SAMPLE / (written - start), SAMPLE / (read - written))


def on_disk(chooser: Chooser, chosen: Schedules, courses: Courses) -> Choice | None:
    """The best schedules with states on disk, if the loops' steps run again otherwise."""
    if chooser.choice != "auto":
        return None
    weigh = _Weigh(chooser, courses)
    found = dict(chosen)
    for x in chooser.outer:
        if x.state_bytes and x.n_steps > 1:
            for option in weigh.options(x, found):
                tried = weigh.fitting(x, option, found)
                if weigh.seconds(tried) < weigh.seconds(found):
                    found = tried
    others = [s for s in (chosen, *weigh.tried) if s != found]
    second = min(others, key=weigh.seconds, default=chosen)
    main = max(chooser.outer, key=lambda x: x.n_steps, default=None)
    name = str(second[main.name].family) if main else "none"
    said = OnDisk(weigh.seconds(found), weigh.io_bytes(found), name, weigh.seconds(second))
    return Choice(found, said)


class _Weigh:
    """Predicted seconds of schedules of a program's outermost loops."""

    def __init__(self, chooser: Chooser, courses: Courses) -> None:
        self.chooser, self.courses = chooser, courses
        self.back = reverse_nanoseconds(courses.tape, courses.engine)
        directory = courses.disk.directory
        self.speed = speed(None if directory is None else os.fspath(directory))
        self.tried: list[Schedules] = []

    def seconds(self, schedules: Schedules) -> float:
        return sum(self._of_loop(x, schedules[x.name]) for x in self.chooser.outer)

    def _of_loop(self, x: TapedLoop, schedule: Schedule) -> float:
        forward = schedule.forward_steps * self.chooser.step_ns.get(x.name, 0.0)
        steps = 1e-9 * (forward + x.n_steps * self.back.get(x.name, 0.0))
        half = transfers(schedule) * x.state_bytes / 2
        disk = half / self.speed.write + half / self.speed.read
        return steps + SHOWN * disk + max(0.0, (1.0 - SHOWN) * disk - steps)

    def io_bytes(self, schedules: Schedules) -> int:
        outer = self.chooser.outer
        return sum(transfers(schedules[x.name]) * x.state_bytes for x in outer)

    def options(self, x: TapedLoop, chosen: Schedules) -> Iterator[Schedule]:
        """Schedules of a loop that may fit into what it has, and what is left over."""
        room = self.chooser.budget - self.chooser.measured(chosen)
        own, state = chosen[x.name], max(1, x.state_bytes)
        step = max(1, step_bytes(self.chooser.loops, slots_of(chosen), x.name))
        room += own.n_slots * state + own.n_tape_slots * step - (1 + BUFFERS) * state
        most = self.courses.capacity(x).n_slots
        period = min(x.n_steps, room // step)
        if period > 0 and -(-x.n_steps // period) - 1 <= most:
            yield moved(two_level(x.n_steps, period), 0)
        n_slots = (room - step) // state
        counted = x.n_steps <= LONGEST_COUNTED
        if n_slots < 1 or most < 1 or not (counted or x.is_open):
            return
        extra = 1
        while extra <= min(most, x.n_steps):
            make = unknown if x.is_open else revolve
            whole = make(x.n_steps, min(n_slots + extra, x.n_steps))
            if whole.n_slots > n_slots:
                yield moved(whole, n_slots)
            extra *= 4

    def fitting(self, x: TapedLoop, option: Schedule, chosen: Schedules) -> Schedules:
        """The choice with an option for one loop, made smaller until it fits, or as it was."""
        for _ in range(TRIES):
            found = {**chosen, x.name: option}
            over = self.chooser.measured(found) - self.chooser.budget
            if over <= 0:
                self.tried.append(found)
                return found
            smaller = self._smaller(x, option, over, chosen)
            if smaller is None:
                break
            option = smaller
        return chosen

    def _smaller(
        self, x: TapedLoop, option: Schedule, over: int, chosen: Schedules
    ) -> Schedule | None:
        if option.n_slots:
            n = option.n_slots - max(1, -(-over // max(1, x.state_bytes)))
            if n < 1 or option.n_disk_slots + option.n_slots - n > self.courses.capacity(x).n_slots:
                return None
            make = unknown if x.is_open else revolve
            return moved(make(x.n_steps, option.n_slots + option.n_disk_slots), n)
        step = max(1, step_bytes(self.chooser.loops, slots_of(chosen), x.name))
        period = option.n_tape_slots - max(1, -(-over // step))
        enough = period > 0 and -(-x.n_steps // period) - 1 <= self.courses.capacity(x).n_slots
        return moved(two_level(x.n_steps, period), 0) if enough else None
