"""Which schedule takes the least time within so much memory and disk, in pure numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial

from ckad.checkpoint.schedules.disk_revolve import disk_revolve
from ckad.checkpoint.schedules.generators.binomial import binomial_forward_steps
from ckad.checkpoint.schedules.hrevolve import hrevolve
from ckad.checkpoint.schedules.mixed_bytes import mixed_bytes
from ckad.checkpoint.schedules.multistage import disk_traffic, multistage
from ckad.checkpoint.schedules.periodic import fitting_slots, periodic
from ckad.checkpoint.schedules.periodic_disk import best_period, periodic_disk
from ckad.checkpoint.schedules.periodic_disk import layout as periods
from ckad.checkpoint.schedules.revolve import revolve
from ckad.checkpoint.schedules.schedule import MAX_SLOTS, MAX_STEPS, Schedule
from ckad.checkpoint.schedules.store_all import store_all
from ckad.errors import ScheduleError

#: Sums that a search may form for a candidate: about a tenth of a second.
MOST_TRIED = 10**8
#: Slots of `multistage`; with so many more it runs hardly fewer steps.
MOST_COUNTED = 1024
#: Steps of a loop for which a table of segments is made.
MOST_LISTED = 10**6


@dataclass(frozen=True)
class Candidate:
    """A family with its best parameters, and what it is predicted to take."""

    name: str
    build: Callable[[], Schedule] = field(repr=False)
    forward_steps: int
    disk_writes: int
    disk_reads: int
    memory: int
    """Bytes of restart states and residuals in RAM, as one arena where the family shares one."""
    disk: int
    """Bytes on disk."""
    run_seconds: float
    """Forward steps and reversals, and the program's own part of writes and reads."""
    io_seconds: float
    """Writes and reads, if nothing is hidden behind the steps."""
    seconds: float
    """Both, less what is hidden."""

    @cached_property
    def schedule(self) -> Schedule:
        return self.build()

    def __str__(self) -> str:
        io = f", {self.disk_writes:,} writes and {self.disk_reads:,} reads of the disk"
        return (
            f"{self.name}: {self.seconds:.3g} s, {self.forward_steps:,} forward steps"
            f"{io if self.disk_writes else ''}"
        )


@dataclass(frozen=True)
class Given:
    """The arguments of `cheapest`."""

    n: int
    restart_bytes: int
    residual_bytes: int
    memory: int
    disk: int
    step_s: float
    reverse_s: float
    write_s: float
    read_s: float
    over_s: float
    hidden: float

    @property
    def slots(self) -> int:
        """Restart states in RAM beside the residuals of one step."""
        return min((self.memory - self.residual_bytes) // self.restart_bytes, max(self.n - 1, 1))

    @property
    def disk_slots(self) -> int:
        return min(self.disk // self.restart_bytes, max(self.n - 1, 0), MAX_SLOTS // 2)

    @property
    def times(self) -> dict[str, int]:
        """Of a step, a write and a read, in thousandths of a step."""
        unit = max(self.step_s, 1e-12) / 1000
        write, read = (min(2**40, round(x / unit)) for x in (self.write_s, self.read_s))
        return {"step": 1000, "write": write, "read": read}

    def candidate(
        self,
        name: str,
        build: Callable[[], Schedule],
        forward_steps: int,
        memory: int,
        writes: int = 0,
        reads: int = 0,
        disk_slots: int = 0,
    ) -> Candidate:
        run = forward_steps * self.step_s + self.n * self.reverse_s
        run += (writes + reads) * self.over_s
        io = writes * self.write_s + reads * self.read_s
        # what runs beside the steps takes at least as long as either of them
        seconds = run + io - self.hidden * min(run, io)
        disk = disk_slots * self.restart_bytes
        return Candidate(name, build, forward_steps, writes, reads, memory, disk, run, io, seconds)

    def of(self, schedule: Schedule) -> Candidate:
        """That of a schedule which is there already."""
        shared = schedule.shared_bytes(self.restart_bytes, self.residual_bytes)
        apart = schedule.n_slots * self.restart_bytes + schedule.n_tape_slots * self.residual_bytes
        writes, reads = (
            (schedule.disk_writes, schedule.disk_reads) if schedule.n_disk_slots else (0, 0)
        )
        return self.candidate(
            schedule.family,
            lambda: schedule,
            schedule.forward_steps,
            apart if shared is None else shared,
            writes,
            reads,
            schedule.n_disk_slots,
        )


def cheapest(
    n: int,
    restart_bytes: int,
    residual_bytes: int,
    memory: int,
    disk: int = 0,
    step_s: float = 1.0,
    reverse_s: float = 0.0,
    write_s: float = 0.0,
    read_s: float = 0.0,
    over_s: float = 0.0,
    *,
    hidden: float = 0.0,
    only_disk: bool = False,
) -> list[Candidate]:
    """Every family at its best parameters within ``memory`` and ``disk`` bytes, the fastest first.

    Times are seconds: of one forward step, the reversal of one from its residuals, one restart
    state to disk and back, and of the program's own for either. ``hidden`` is the share (0 to 1) of
    the disk's time that runs beside the steps. Empty if not even one restart state and one step's
    residuals fit into ``memory``. Of families that take as long the simpler one comes first. With
    ``only_disk`` those that write nothing to the disk are left out.

    >>> from ckad.checkpoint.cheapest import cheapest
    >>> for candidate in cheapest(1000, 100, 300, memory=2300)[:2]:
    ...     print(candidate)
    mixed_bytes: 3.31e+03 s, 3,306 forward steps
    revolve: 3.75e+03 s, 3,747 forward steps
    """
    given = Given(
        n, max(1, restart_bytes), max(1, residual_bytes), memory, disk, step_s, reverse_s,
        write_s, read_s, over_s, hidden,
    )  # fmt: skip
    if n > MAX_STEPS:
        return []
    found = [] if only_disk else [*_in_memory(given)]
    found += _on_disk(given) if given.disk_slots else ()
    return sorted(found, key=lambda candidate: candidate.seconds)


def _in_memory(given: Given) -> Iterator[Candidate]:
    n, c, a, memory = given.n, given.restart_bytes, given.residual_bytes, given.memory
    if n * a <= memory:
        yield given.of(store_all(n))
    even = fitting_slots(n, c, a, memory)
    if even is not None and n > 1:
        yield given.of(periodic(n, even))
    if given.slots < 1 or n < 2:
        return
    s = given.slots
    count = binomial_forward_steps(n, s)
    yield given.candidate("revolve", partial(revolve, n, s), count, s * c + a)
    if n <= MOST_LISTED:
        with suppress(
            ScheduleError
        ):  # a table that is too long: one slot, and hardly anything taped
            yield given.of(mixed_bytes(n, memory - a, c, a))


def _on_disk(given: Given) -> Iterator[Candidate]:
    n, s, a = given.n, given.slots, given.residual_bytes
    taped = min(given.memory // a, n)
    if taped >= 1:
        yield from _periods(given, "tape", taped)
    if s < 1 or n < 3:
        return
    times = given.times
    yield from _periods(given, s, best_period(s, times["step"], times["write"], times["read"], n))
    if s <= MOST_COUNTED:
        yield _multistage(given)
    searched = min(given.disk_slots, MOST_TRIED // (n * n) * 2)
    if searched >= 1:
        with suppress(ScheduleError):
            yield given.of(hrevolve(n, s, searched, **times))
    if n <= MOST_LISTED // 10 and times["write"] + times["read"] <= 1000 * times["step"]:
        with suppress(ScheduleError):
            unlimited = disk_revolve(n, s, **times)
            if unlimited.n_disk_slots <= given.disk_slots:
                yield given.of(unlimited)


def _periods(given: Given, inner: int | str, period: int) -> Iterator[Candidate]:
    """Periods on disk, as long as is best but not so short that they do not fit."""
    n, c, a = given.n, given.restart_bytes, given.residual_bytes
    least = -(-n // (given.disk_slots + 1))
    if inner == "tape":
        if least > period:
            return
        build = partial(periodic_disk, n, "tape", period)
        count, before, used = _taped_periods(n, period)
        yield given.candidate("periodic_disk", build, count, used * a, before, before, before)
        return
    p = max(period, least)
    s = int(inner)
    _, _, _, before = periods(n, s, p, 1, 0, 0)
    each = p + binomial_forward_steps(p, s)
    count = before * each + binomial_forward_steps(n - before * p, s)
    build = partial(periodic_disk, n, s, p)
    used = min(s, p) * c + a
    yield given.candidate("periodic_disk", build, count, used, before, before, before)


def _taped_periods(n: int, period: int) -> tuple[int, int, int]:
    """(forward steps, periods before the last, residual slots)"""
    before = max(0, -(-(n - period) // period))
    return n + before * period, before, min(period, n)


def _multistage(given: Given) -> Candidate:
    """As many slots on disk as take the least time, of those that are twice as many as others."""
    n, s, c, a = given.n, given.slots, given.restart_bytes, given.residual_bytes

    def offered(disk_slots: int) -> Candidate:
        writes, reads = disk_traffic(n, s, disk_slots)
        count = binomial_forward_steps(n, s + disk_slots)
        build = partial(multistage, n, s, disk_slots)
        return given.candidate("multistage", build, count, s * c + a, writes, reads, disk_slots)

    numbers = [2**k for k in range(given.disk_slots.bit_length()) if 2**k <= MOST_COUNTED]
    return min((offered(k) for k in numbers), key=lambda candidate: candidate.seconds)
