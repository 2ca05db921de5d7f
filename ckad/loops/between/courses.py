"""Which outermost loops have something to do between pieces of their actions, and what."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple
from weakref import WeakSet

import numpy as np

from ckad.checkpoint.schedules.online import Online
from ckad.checkpoint.schedules.schedule import MAX_STEPS, Schedule
from ckad.checkpoint.store.capacity import Capacity, capacity
from ckad.checkpoint.store.disk import DiskStore
from ckad.checkpoint.store.faults import told
from ckad.checkpoint.store.format.codecs import Tally
from ckad.checkpoint.store.format.layout import Field
from ckad.engines.actions import BegunWith, Course, Feed, Rows, Slots, Window
from ckad.engines.measure import TapedLoop
from ckad.errors import BudgetError, CheckpointError
from ckad.loops.arenas import Schedules, slots_of
from ckad.loops.between.fallback import Recomputed
from ckad.loops.between.resume import Resumable
from ckad.loops.between.tiers import Staged
from ckad.loops.costs import NOT_TIMED, Costs
from ckad.loops.engines import engine_named
from ckad.loops.tables import After, between, learnt, streamed, whole
from ckad.tape.control import WHILE, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type

#: Versions that decide the bits of a result.
VERSIONS = ("ckad", "numpy", "numba", "llvmlite", "scipy")
#: States that a store holds in memory on their way.
BUFFERS = 3
#: The codec that changes states.
LOSSY = "float32"
#: What a record's key calls the numbers of steps of loops that nobody knows the length of.
LENGTHS = "steps assumed"
#: Bytes on disk without a limit.
NO_LIMIT = 2**60


class Disk(NamedTuple):
    """Where states may lie on disk, and how many bytes of them."""

    limit: int = 0
    directory: str | os.PathLike[str] | None = None
    codec: str | None = None
    fallback: str | None = None


@dataclass(frozen=True)
class Courses:
    """What is done between the actions of a program's outermost loops."""

    tape: Tape
    engine: str
    disk: Disk
    resume: str | None  # the directory that runs are gone on with from
    n_outer: int  # the outermost loops, which share the disk
    lengths: Mapping[int, int]  # how many steps open loops are thought to run, by name
    pace: float = 1.0  # how many times as long as predicted steps have taken
    costs: Costs = NOT_TIMED
    stores: WeakSet[DiskStore] = field(default_factory=WeakSet)
    tallies: list[Tally] = field(default_factory=list)  # of the last run

    def on_disk(self) -> int:
        """Bytes of states that lie on disk at the moment."""
        return sum(store.bytes_on_disk for store in list(self.stores) if store.is_open)

    def opened(self, store: DiskStore) -> DiskStore:
        self.stores.add(store)
        return store

    def feed(self, loop: TapedLoop, schedule: Schedule, most_rows: int, number: int) -> Feed:
        """The actions of a loop, the ``number``-th of the outermost ones."""
        if loop.depth > 1:
            return whole(schedule)
        source = schedule.source
        learns = loop.is_open and isinstance(source, Online)
        if self.has_course(loop, schedule):
            own = _Own(self, loop, schedule, number)
            return between(schedule, most_rows, learns, own.course)
        if loop.is_open and isinstance(source, Online):
            return learnt(source, most_rows)
        return streamed(schedule, most_rows)

    def has_course(self, loop: TapedLoop, schedule: Schedule) -> bool:
        if loop.depth > 1 or not loop.state_bytes or not loop.n_steps:
            return False
        if self.disk.codec == LOSSY:
            self.fields(loop)  # or an error
        return bool(schedule.n_disk_slots or (self.resume is not None and schedule.n_slots))

    @property
    def codec(self) -> str | None:
        """That of what lies in no field."""
        return None if self.disk.codec == LOSSY else self.disk.codec

    def fields(self, loop: TapedLoop) -> list[Field]:
        """The parts of a state that are rounded."""
        if self.disk.codec != LOSSY:
            return []
        found = (read_loop(self.tape, row) for row in self.tape.rows if row.op is Op.TAPED_LOOP)
        own = next(x for x in found if x.name == loop.name)
        types = own.body.output_types[: len(own.carry)]
        self._refuse_rounding(loop, types)
        starts = engine_named(self.engine).record_offsets(types)
        parts = zip(starts, types, strict=True)
        return [Field(at, at + type.nbytes, codec=LOSSY) for at, type in parts]

    @property
    def rounding(self) -> float | None:
        """The largest relative change of states in the last run, if they are rounded."""
        changed = [tally.rounding.relative for tally in self.tallies]
        return max(changed, default=None)

    def _refuse_rounding(self, loop: TapedLoop, types: Sequence[Type]) -> None:
        if self.resume is not None:
            raise BudgetError(
                f"codec={LOSSY!r} rounds states, and a run that goes on from rounded ones has "
                'other bits. Leave codec= out, or pass codec="zstd".'
            )
        whole = sum(type.nbytes for type in types)
        floats = sum(type.nbytes for type in types if type.dtype is DType.F64)
        if floats != whole:
            raise BudgetError(
                f"codec={LOSSY!r} rounds float64, and of the {whole:,} bytes that the "
                f"loop at {loop.place} carries {floats:,} are float64. Leave codec= "
                'out, or pass codec="zstd".'
            )

    def slots(self, loops: dict[int, TapedLoop], schedules: Schedules) -> dict[int, Slots]:
        """What tokens hold; where states are kept from run to run one goes through a slot more."""
        found = slots_of(schedules)
        for name, loop in loops.items():
            if self.has_course(loop, schedules[name]) and not schedules[name].n_disk_slots:
                found[name] = found[name]._replace(n_slots=found[name].n_slots + 1, arena=())
        return found

    def capacity(self, loop: TapedLoop) -> Capacity:
        """How many states of a loop may lie on disk."""
        if self.resume is None:
            share = self.disk.limit // max(1, self.n_outer)
            return capacity(
                share,
                loop.state_bytes,
                codec=self.codec,
                fields=self.fields(loop),
                n_buffers=BUFFERS,
            )
        return capacity(
            self.limit,
            loop.state_bytes,
            durability="resume",
            codec=self.disk.codec,
            n_buffers=BUFFERS,
        )

    @property
    def limit(self) -> int:
        """Bytes of disk for each outermost loop; a schedule that is asked for may take any."""
        return self.disk.limit // max(1, self.n_outer) or NO_LIMIT

    def nbytes(self, loop: TapedLoop, schedule: Schedule) -> int:
        """What the courses take of a run's memory, beside the staging slot."""
        if not self.has_course(loop, schedule):
            return 0
        return self.buffers(loop)

    def buffers(self, loop: TapedLoop) -> int:
        """Bytes of memory that states of a loop go through on their way to disk and back."""
        joined = loop.state_bytes if self.engine == "vm" else 0  # its states lie in parts
        first = loop.state_bytes if self.disk.fallback else 0
        return self.capacity(loop).buffer_bytes + joined + first


class _Own(NamedTuple):
    """The courses of one loop."""

    courses: Courses
    loop: TapedLoop
    schedule: Schedule
    number: int

    def course(
        self, chunks: Iterator[Rows], after: After, window: Window, inputs: Sequence[np.ndarray]
    ) -> Course:
        n_slots, length = self.schedule.n_slots, self.loop.most_steps
        if self.courses.resume is None:
            course = Staged if self.courses.disk.fallback is None else Recomputed
            return course(chunks, after, n_slots, length, window, self.scratch)
        slots, knows_end = (n_slots, self.schedule.n_disk_slots), self.loop.guard != WHILE
        store = partial(self.kept, inputs)
        return Resumable(chunks, after, slots, length, knows_end, window, store, self.tidy)

    def scratch(self) -> DiskStore:
        courses = self.courses
        store = DiskStore(
            courses.disk.directory,
            courses.limit,
            self.loop.state_bytes,
            codec=courses.codec,
            fields=courses.fields(self.loop),
            n_buffers=BUFFERS,
        )
        if courses.disk.codec == LOSSY:
            courses.tallies.append(store.tally)
            del courses.tallies[: -courses.n_outer]
        return courses.opened(store)

    def kept(self, inputs: Sequence[np.ndarray]) -> DiskStore:
        courses, schedule = self.courses, self.schedule
        key = run_key(courses.tape, courses.engine, schedule, inputs)
        if courses.lengths:
            key[LENGTHS] = json.dumps(dict(courses.lengths))
        try:
            store = DiskStore(
                self.directory,
                courses.limit,
                self.loop.state_bytes,
                durability="resume",
                codec=courses.disk.codec,
                key=key,
                n_buffers=BUFFERS,
                replaced=2 * (schedule.n_slots + schedule.n_disk_slots + 1),
            )
        except CheckpointError as error:
            lengths = _lengths(error.was.get(LENGTHS))
            if not lengths or lengths.keys() != courses.lengths.keys():
                raise
            raise BegunWith(self.loop.name, lengths) from error
        return courses.opened(store)

    @property
    def directory(self) -> Path:
        """Of this loop alone, made when it is first asked for."""
        assert self.courses.resume is not None
        found = Path(self.courses.resume) / f"loop-{self.number}"
        with told(str(found), self.courses.resume):
            found.mkdir(mode=0o700, parents=True, exist_ok=True)
        return found

    def tidy(self) -> None:
        """Remove the directory when nothing is left in it."""
        with suppress(OSError):
            self.directory.rmdir()


def _lengths(text: str | None) -> dict[int, int]:
    """How many steps open loops were thought to run; nothing if that is not what is there."""
    try:
        found = json.loads(text or "")
        return {int(name): min(max(0, int(n)), MAX_STEPS) for name, n in found.items()}
    except (AttributeError, TypeError, ValueError):
        return {}


def run_key(
    tape: Tape, engine: str, schedule: Schedule, inputs: Sequence[np.ndarray]
) -> dict[str, str]:
    """What must not have changed between a run and the one that goes on with it: by name, in the
    words of a message that says what differs."""
    found = {f"version of {name}": version(name) for name in VERSIONS}
    found["processor"] = platform.machine()
    found["engine"] = engine
    found["types of the arguments"] = ", ".join(map(str, tape.input_types))[:200]
    found["function"] = tape.digest.hex()
    for k, x in enumerate(inputs):
        found[f"argument array {k}"] = _digest(x)
    found["schedule"] = f"{schedule}, on disk {schedule.n_disk_slots}"
    return found


def _digest(x: np.ndarray) -> str:
    return blake2b(np.ascontiguousarray(x).data if x.size else b"", digest_size=16).hexdigest()
