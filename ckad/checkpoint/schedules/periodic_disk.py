"""States on disk at equal distances, and binomial checkpoints or residuals in RAM between them."""

from __future__ import annotations

from typing import Literal

from ckad.checkpoint.schedules.generators import segments
from ckad.checkpoint.schedules.generators.binomial import binomial_forward_steps
from ckad.checkpoint.schedules.generators.segments import Segment
from ckad.checkpoint.schedules.hrevolve import Memory
from ckad.checkpoint.schedules.schedule import Family, Schedule, at_least

Inner = int | Literal["tape"]


def best_period(ram_slots: int, step: int, write: int, read: int, most: int) -> int:
    """The period, up to ``most``, that takes the least time per step where there are many.

    (write + read + F(p, s) step) / p falls as long as one step more adds less than it is, since F
    is convex.
    """

    def falls(p: int) -> bool:
        count = binomial_forward_steps(p, ram_slots)
        more = binomial_forward_steps(p + 1, ram_slots) - count
        return more * step * p < write + read + count * step

    low, high = 1, max(1, most)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if falls(middle) else (low, middle)
    return low


def layout(
    n_steps: int, ram_slots: Inner, period: int | None, step: int, write: int, read: int
) -> tuple[int, int, int, int]:
    """(n_steps, slots or 0 to tape, period, periods before the last).

    The last may be a step longer, unless it is taped.
    """
    n = at_least(0, "n_steps", n_steps)
    at_least(1, "step", step), at_least(0, "write", write), at_least(0, "read", read)
    s = 0 if ram_slots == "tape" else at_least(1, "ram_slots", ram_slots)
    if period is None and s:
        p = best_period(s, step, write, read, n)
    else:
        p = at_least(1, "period", period)
    return n, s, p, max(0, -(-(n - p - min(s, 1)) // p))


def forward_steps(
    n_steps: int,
    ram_slots: Inner,
    period: int | None = None,
    *,
    step: int = 1,
    write: int = 2,
    read: int = 2,
) -> int:
    """The sweep over all periods but the last, and the binomial count (or nothing) of each."""
    n, s, p, before = layout(n_steps, ram_slots, period, step, write, read)
    if not s:
        return n + before * p
    each = p + binomial_forward_steps(p, s)
    return before * each + binomial_forward_steps(n - before * p, s)


def periodic_disk(
    n_steps: int,
    ram_slots: Inner,
    period: int | None = None,
    *,
    step: int = 1,
    write: int = 2,
    read: int = 2,
) -> Schedule:
    """Store a state on disk every ``period`` steps; reverse each period by `revolve` in RAM.

    Each state is written once and read once, in order, so that reads can run ahead of the reversal.
    ``period=None`` takes the one of least time, where ``step`` is the time of a forward step,
    ``write`` and ``read`` that of a restart state to disk and back, in whole numbers of one unit;
    nothing overlaps. The last period, which may be one step longer, needs no state on disk.

    With ``ram_slots="tape"`` a period is taped whole, into ``period`` residual slots, which then
    has to be given: under 2 n forward steps.

    Raises:
        ScheduleError: ``n_steps`` or a time is negative, ``ram_slots``, ``period`` or ``step`` is
            below 1, one of them is not an integer, or more than 2**31 - 1 slots would be needed.

    Source: G. Aupy, J. Herrmann, "Periodicity in optimal hierarchical checkpointing schemes for
    adjoint computations", Optim. Methods Softw. 32 (2017).

    >>> from ckad.schedules import periodic_disk
    >>> schedule = periodic_disk(1000, 10)
    >>> schedule.forward_steps, schedule.disk_writes, schedule.disk_reads
    (2899, 90, 90)
    >>> periodic_disk(1000, "tape", 100).forward_steps
    1900
    """
    n, s, p, before = layout(n_steps, ram_slots, period, step, write, read)
    if n == 0:
        return segments.nothing("periodic_disk")

    def inside(length: int) -> Segment:
        return Segment(length, min(s, max(length - 1, 1)))

    def whole(segment: Segment) -> int:
        return segment.n_steps

    table = segments.Table(Memory(0, s, 1).divide if s else whole)
    return table.schedule("periodic_disk", inside(n - before * p), p, before, inside(p))


FAMILY = Family(
    "periodic_disk",
    periodic_disk,
    forward_steps,
    examples=(
        *((0, 1), (1, 1), (2, 1), (9, 1), (60, 2), (100, 5), (7, 50)),
        *((7, 3, 1), (12, 2, 5), (99, 1, 10), (20, 3, 40)),
        *((0, "tape", 3), (1, "tape", 1), (12, "tape", 4), (13, "tape", 4), (9, "tape", 1)),
    ),
)
