"""Checkpoints at equal distances, and a second level inside each segment between them."""

from __future__ import annotations

from math import isqrt
from typing import Literal

from ckad.checkpoint.schedules.generators import binomial, taping
from ckad.checkpoint.schedules.schedule import Family, Generated, Schedule, at_least
from ckad.errors import ScheduleError

Inner = int | Literal["tape"]


def layout(n_steps: int, period: int | None, extra_slots: Inner) -> tuple[int, int, int, int]:
    """(n_steps, period, number of segments before the last, length of the last)."""
    n = at_least(0, "n_steps", n_steps)
    if extra_slots != "tape":
        at_least(0, "extra_slots", extra_slots)
    p = max(1, isqrt(max(n - 1, 0)) + 1 if period is None else at_least(1, "period", period))
    before = max(n - 1, 0) // p
    return n, p, before, n - before * p


def forward_steps(
    n_steps: int, period: int | None = None, extra_slots: Inner = "tape", ahead: bool = False
) -> int:
    """The sweep over all steps, and the binomial count (or nothing, if taped) of each segment."""
    _check_ahead(extra_slots, ahead)
    n, p, before, last = layout(n_steps, period, extra_slots)
    if extra_slots == "tape":
        return n + before * p
    s = extra_slots + 1
    count = binomial.binomial_forward_steps
    return n + before * count(p, s) + count(last, s)


def two_level(
    n_steps: int,
    period: int | None = None,
    extra_slots: int | Literal["tape"] = "tape",
    ahead: bool = False,
) -> Schedule:
    """Store every ``period``-th state on the way forward; reverse the segments, last first.

    ``period=None`` takes √n_steps, rounded up. The second level is one of:

    - ``extra_slots="tape"``: a segment is restored and taped whole into ``period`` residual slots;
      the last one is taped at once, in the forward phase. About 2 n forward steps.
    - ``extra_slots=k``: a segment is reversed by `revolve` with its own checkpoint and ``k`` more
      slots, and one residual slot. The forward phase runs to the end and tapes nothing.

    ``ahead`` is for taped segments: each is taped before the one behind it is reversed, into
    ``period`` more residual slots. Neither waits for the other, and where steps are short code on
    few numbers, both run at the same time.

    Raises:
        ScheduleError: ``n_steps`` is negative or above 2**62, ``period`` is below 1,
            ``extra_slots`` is negative, or one of them is not an integer; ``ahead`` with
            ``extra_slots``.

    >>> from ckad.schedules import two_level
    >>> two_level(100, 10, extra_slots=3).forward_steps
    340
    >>> schedule = two_level(100, 10)
    >>> schedule.forward_steps, schedule.n_slots, schedule.n_tape_slots
    (190, 9, 10)
    >>> schedule = two_level(100, 10, ahead=True)
    >>> schedule.forward_steps, schedule.n_slots, schedule.n_tape_slots
    (190, 9, 20)
    """
    _check_ahead(extra_slots, ahead)
    n, p, before, last = layout(n_steps, period, extra_slots)
    count = forward_steps(n, p, extra_slots)
    if extra_slots == "tape":
        source = Generated(taping.fill, taping.registers(n, p, ahead), 0, 6 * before + 3)
        if not ahead:
            return Schedule("two_level", n, before, min(n, p), count, source)
        slots = min(n, 2 * p)
        return Schedule("two_level", n, before, slots, count, source, n_beside=n - min(n, p))
    # A segment of m steps never uses more than m - 1 slots, its own checkpoint included.
    extra = min(extra_slots, max(p - 2, 0))
    n_slots = max(before + min(extra, max(last - 2, 0)) + min(n, 1), before and before + extra)
    source = Generated(
        binomial.fill, binomial.registers(n, p, extra, sweep=True), n_slots, 8 * n + 1
    )
    return Schedule("two_level", n, n_slots, min(n, 1), count, source)


def _check_ahead(extra_slots: Inner, ahead: bool) -> None:
    if ahead and extra_slots != "tape":
        raise ScheduleError(
            f"ahead=True with extra_slots={extra_slots!r}: only segments that are taped whole are "
            'taped ahead. Pass extra_slots="tape", or leave ahead= out.'
        )


FAMILY = Family(
    "two_level",
    two_level,
    forward_steps,
    examples=(
        *((n, period, "tape") for n, period in ((0, 3), (1, 1), (5, 9), (12, 4), (13, 4), (99, 1))),
        *((n, None, k) for n in (0, 1, 50, 101) for k in (0, 3, "tape")),
        *((n, p, "tape", True) for n, p in ((0, 3), (1, 1), (9, 5), (12, 4), (13, 4), (99, 1))),
        *((100, 10, 3), (10, 5, 3), (5, 9, 2), (11, 10, 4), (12, 5, 40), (6, 1, 2)),
    ),
)
