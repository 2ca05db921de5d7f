"""Binomial checkpoints in RAM and on disk: the slots that are used most are in RAM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import numpy as np

from ckad.checkpoint.schedules.generators import binomial
from ckad.checkpoint.schedules.revolve import revolve
from ckad.checkpoint.schedules.schedule import (
    Action,
    Actions,
    Family,
    Generated,
    Schedule,
    Source,
    at_least,
)


def forward_steps(n_steps: int, ram_slots: int, disk_slots: int) -> int:
    """That of `revolve` with all the slots."""
    n, s = at_least(0, "n_steps", n_steps), _n_slots(ram_slots, disk_slots)
    return binomial.binomial_forward_steps(n, s)


def _n_slots(ram_slots: int, disk_slots: int) -> int:
    ram, disk = at_least(0, "ram_slots", ram_slots), at_least(0, "disk_slots", disk_slots)
    return at_least(1, "ram_slots + disk_slots", ram + disk)


@dataclass(frozen=True)
class Renumbered:
    """The same actions, with restart slot k in place of ``number[k]``."""

    source: Source
    number: tuple[int, ...]

    def chunks(self, n_actions: int) -> Iterator[Actions]:
        number = np.array(self.number, np.int32)
        for rows in self.source.chunks(n_actions):
            on_slots = np.isin(rows.kind, (Action.STORE, Action.RESTORE, Action.DROP))
            slot = np.where(on_slots, number[np.where(on_slots, rows.slot, 0)], rows.slot)
            yield rows._replace(slot=slot)


def accesses(n_steps: int, n_slots: int) -> list[tuple[int, int]]:
    """(writes, reads) of each slot of `revolve`, the first slot first.

    All segments that begin in the same slot are followed together: the one that is split gives one
    to the next slot, and one, shorter and without a write, to the same slot.
    """
    found = []
    segments = Counter({n_steps: 1}) if n_steps > 1 else Counter()
    for n_free in range(n_slots, 0, -1):
        writes, reads = segments.total(), 0
        behind: Counter[int] = Counter()
        if n_free == 1:  # the start is restored for each step but the last
            reads = sum(times * (n - 1) for n, times in segments.items())
        waiting = [-n for n in segments] if n_free > 1 else []
        heapify(waiting)
        while waiting:
            n = -heappop(waiting)
            times = segments[n]
            first = binomial.split(n, n_free)
            reads += times
            if first > 1 and first not in segments:
                heappush(waiting, -first)
            segments[first] += times
            if n - first > 1:
                behind[n - first] += times
        found.append((writes, reads))
        segments = behind
        if not segments:
            break
    return found + [(0, 0)] * (n_slots - len(found))


def placed(counts: list[tuple[int, int]], ram_slots: int) -> tuple[list[int], list[int]]:
    """The slots in RAM and those on disk; of slots that are used alike the last are in RAM."""
    most_used = sorted(range(len(counts)), key=lambda k: (sum(counts[k]), k), reverse=True)
    return sorted(most_used[:ram_slots]), sorted(most_used[ram_slots:])


def disk_traffic(n_steps: int, ram_slots: int, disk_slots: int) -> tuple[int, int]:
    """Writes to disk and reads from it, without the actions."""
    counts = accesses(n_steps, min(ram_slots + disk_slots, max(n_steps - 1, 0)))
    on_disk = [counts[k] for k in placed(counts, ram_slots)[1]]
    return sum(w for w, _ in on_disk), sum(r for _, r in on_disk)


def multistage(n_steps: int, ram_slots: int, disk_slots: int) -> Schedule:
    """`revolve` with ``ram_slots`` + ``disk_slots`` slots, of which those used least are on disk.

    It runs as few forward steps as any schedule with so many slots, but what reading and writing
    cost is not weighed against them, as `hrevolve` does.

    Raises:
        ScheduleError: ``n_steps`` or a number of slots is negative, there is no slot at all,
            ``n_steps`` is above 2**62, or one of them is not an integer.

    Source: P. Stumm, A. Walther, "Multistage approaches for optimal offline checkpointing", SIAM J.
    Sci. Comput. 31 (2009) 1946-1967.

    >>> from ckad.schedules import multistage
    >>> schedule = multistage(100, 3, 2)
    >>> schedule.forward_steps, schedule.disk_writes, schedule.disk_reads
    (416, 5, 14)
    """
    n, s = at_least(0, "n_steps", n_steps), _n_slots(ram_slots, disk_slots)
    whole = revolve(n, s)
    if whole.n_slots <= ram_slots or not isinstance(whole.source, Generated):
        return replace(whole, family="multistage")
    in_ram, on_disk = placed(accesses(n, whole.n_slots), ram_slots)
    number = np.empty(whole.n_slots, np.int64)
    number[in_ram + on_disk] = np.arange(whole.n_slots)
    source = Renumbered(whole.source, tuple(number.tolist()))
    return replace(
        whole,
        family="multistage",
        n_slots=len(in_ram),
        n_disk_slots=len(on_disk),
        source=source,
    )


FAMILY = Family(
    "multistage",
    multistage,
    forward_steps,
    examples=(
        *((0, 1, 1), (1, 1, 1), (2, 0, 1), (2, 1, 0), (9, 0, 1), (60, 1, 1), (10, 2, 1)),
        *((100, 3, 2), (100, 0, 5), (7, 6, 3), (7, 2, 50)),
    ),
)
