"""Checkpointing schedules: which states of a loop are kept, which are computed again.

A schedule reverses a loop of ``n_steps`` steps within a number of restart slots (a slot holds one
state from which steps can be run again) and residual slots (what the reversal of one step needs).
``forward_steps`` counts every execution of the step, the one just before its reversal included;
the initial state takes one of the restart slots if any step is run again from it.

>>> from ckad import schedules
>>> schedules.forward_steps("revolve", 10**6, 30)
6623008
>>> schedule = schedules.revolve(4, 2)
>>> print(schedule)
revolve: n_steps=4, n_slots=2, n_tape_slots=1, forward_steps=8, recompute factor 2.000
>>> [schedules.Action(kind).name for kind in schedule.actions.kind[:5]]
['STORE', 'ADVANCE', 'STORE', 'ADVANCE', 'TAPE']

| family | forward steps | restart slots in RAM; on disk | residual slots |
| --- | --- | --- | --- |
| `store_all(n)` | n | 0 | n |
| `two_level(n, p)` | under 2 n | n / p | p |
| `two_level(n, p, k)` | n + the binomial count of each segment | n / p + k | 1 |
| `periodic(n, s)` | under 2 n | s | n / (s + 1) |
| `revolve(n, s)` | the fewest with single residual slots | s | 1 |
| `online(n, s)` | about 1 % more, n learnt at the end of the loop | s | 1 |
| `mixed(n, s)` | the fewest with slots for either | up to s | up to s + 1 |
| `mixed_bytes(n, b, c, a)` | the fewest in b + a bytes | up to b / c | up to b / a + 1 |
| `multistage(n, s, d)` | those of `revolve(n, s + d)` | s; d | 1 |
| `hrevolve(n, s, d)` | of least time, reads and writes included | s; d | 1 |
| `disk_revolve(n, s)` | of least time without a limit to the disk | s; n / (some p) | 1 |
| `periodic_disk(n, s, p)` | n + the binomial count of each period | s; n / p | 1 |
| `periodic_disk(n, "tape", p)` | under 2 n | 0; n / p | p |

`docs/schedules.md` says when to take which. `timeline(schedule)` shows one in a terminal,
`draw(schedule)` in a figure.
"""

from __future__ import annotations

from ckad.checkpoint.picture import draw, timeline
from ckad.checkpoint.schedules import SCHEDULES
from ckad.checkpoint.schedules.disk_revolve import disk_revolve
from ckad.checkpoint.schedules.hrevolve import hrevolve
from ckad.checkpoint.schedules.mixed import mixed
from ckad.checkpoint.schedules.mixed_bytes import mixed_bytes
from ckad.checkpoint.schedules.multistage import multistage
from ckad.checkpoint.schedules.online import online
from ckad.checkpoint.schedules.periodic import periodic
from ckad.checkpoint.schedules.periodic_disk import periodic_disk
from ckad.checkpoint.schedules.revolve import revolve
from ckad.checkpoint.schedules.schedule import Action, Actions, Schedule
from ckad.checkpoint.schedules.store_all import store_all
from ckad.checkpoint.schedules.two_level import two_level
from ckad.errors import ScheduleError

__all__ = [
    "Action",
    "Actions",
    "Schedule",
    "disk_revolve",
    "draw",
    "forward_steps",
    "hrevolve",
    "mixed",
    "mixed_bytes",
    "multistage",
    "online",
    "periodic",
    "periodic_disk",
    "revolve",
    "store_all",
    "timeline",
    "two_level",
]


def forward_steps(family: str, *arguments: object, **options: object) -> int:
    """Forward steps of ``family(*arguments, **options)``, from the closed form where there is one.

    Then nothing is built, and the length has no limit: of `store_all`, `two_level`, `periodic`,
    `revolve`, `mixed`, `multistage` and `periodic_disk`. The others are counted in the schedule.

    Raises:
        ScheduleError: no such family, or a value that it refuses when it builds a schedule.

    >>> from ckad.schedules import forward_steps
    >>> forward_steps("revolve", 1000, 10)
    4636
    >>> forward_steps("two_level", 10_000, 100, extra_slots=9)
    42200
    """
    if family not in SCHEDULES:
        known = ", ".join(SCHEDULES)
        raise ScheduleError(f"No schedule family is called {family!r}. Pass one of: {known}.")
    return SCHEDULES[family].forward_steps(*arguments, **options)
