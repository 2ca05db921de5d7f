"""Which outermost loops have something to do between pieces of their actions, and what."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ckad.checkpoint.schedules.online import Online
from ckad.checkpoint.schedules.schedule import Schedule
from ckad.checkpoint.store.disk import DiskStore
from ckad.engines.actions import Course, Feed, Rows, Slots, Window
from ckad.engines.measure import TapedLoop
from ckad.loops.choose import Schedules, slots_of
from ckad.loops.identity import run_key
from ckad.loops.resume import Resumable
from ckad.loops.tables import After, between, learnt, streamed, whole
from ckad.loops.tiers import Staged
from ckad.tape.control import WHILE
from ckad.tape.tape import Tape

#: States that a store holds in memory on their way.
BUFFERS = 3
#: Bytes on disk without a limit.
NO_LIMIT = 2**60


class Disk(NamedTuple):
    """Where states may lie on disk, and how many bytes of them."""

    limit: int = NO_LIMIT
    directory: str | os.PathLike[str] | None = None
    durability: str = "scratch"
    codec: str | None = None


@dataclass(frozen=True)
class Courses:
    """What is done between the actions of a program's outermost loops."""

    tape: Tape
    engine: str
    disk: Disk
    resume: str | None  # the directory that runs are gone on with from

    def feed(self, loop: TapedLoop, schedule: Schedule, most_rows: int, number: int) -> Feed:
        """The actions of a loop, the ``number``-th of the outermost ones."""
        if loop.depth > 1:
            return whole(schedule)
        learns = loop.is_open and isinstance(schedule.source, Online)
        if self.has_course(loop, schedule):
            own = _Own(self, loop, schedule, number)
            return between(schedule, most_rows, learns, own.course)
        if learns:
            return learnt(schedule.source, most_rows)
        return streamed(schedule, most_rows)

    def has_course(self, loop: TapedLoop, schedule: Schedule) -> bool:
        if loop.depth > 1 or not loop.state_bytes or not loop.n_steps:
            return False
        return bool(schedule.n_disk_slots or (self.resume is not None and schedule.n_slots))

    def slots(self, loops: dict[int, TapedLoop], schedules: Schedules) -> dict[int, Slots]:
        """What tokens hold; where states are kept from run to run one goes through a slot more."""
        found = slots_of(schedules)
        for name, loop in loops.items():
            if self.has_course(loop, schedules[name]) and not schedules[name].n_disk_slots:
                found[name] = found[name]._replace(n_slots=found[name].n_slots + 1)
        return found

    def nbytes(self, loop: TapedLoop, schedule: Schedule) -> int:
        """What the courses take of a run's memory, beside the staging slot."""
        return BUFFERS * loop.state_bytes if self.has_course(loop, schedule) else 0


class _Own(NamedTuple):
    """The courses of one loop."""

    courses: Courses
    loop: TapedLoop
    schedule: Schedule
    number: int

    def course(
        self, chunks: Iterator[Rows], after: After, window: Window, inputs: Sequence[np.ndarray]
    ) -> Course:
        n_slots, n_disk_slots = self.schedule.n_slots, self.schedule.n_disk_slots
        length = self.loop.most_steps
        if self.courses.resume is None:
            return Staged(chunks, after, n_slots, length, window, self.scratch)
        slots, knows_end = (n_slots, n_disk_slots), self.loop.guard != WHILE
        store = partial(self.kept, inputs)
        return Resumable(chunks, after, slots, length, knows_end, window, store)

    def scratch(self) -> DiskStore:
        disk = self.courses.disk
        return DiskStore(
            disk.directory,
            disk.limit,
            self.loop.state_bytes,
            durability=disk.durability,
            codec=disk.codec,
            n_buffers=BUFFERS,
        )

    def kept(self, inputs: Sequence[np.ndarray]) -> DiskStore:
        courses = self.courses
        assert courses.resume is not None
        directory = Path(courses.resume) / f"loop-{self.number}"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return DiskStore(
            directory,
            courses.disk.limit,
            self.loop.state_bytes,
            durability="resume",
            codec=courses.disk.codec,
            key=run_key(courses.tape, courses.engine, self.schedule, inputs),
            n_buffers=BUFFERS,
        )
