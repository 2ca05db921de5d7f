"""The schedules that a user asks for by ``schedule=``."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from ckad.checkpoint.schedules import SCHEDULES
from ckad.checkpoint.schedules.online import online, unknown
from ckad.checkpoint.schedules.revolve import revolve
from ckad.checkpoint.schedules.schedule import Action, Listed, Schedule
from ckad.checkpoint.schedules.store_all import store_all
from ckad.checkpoint.schedules.two_level import two_level
from ckad.checkpoint.simulate import check_schedule
from ckad.engines.measure import TapedLoop
from ckad.errors import ScheduleError

#: A name, a schedule, or a function from the number of steps to one.
Choice = str | Schedule | Callable[[int], Schedule]


def asked_for(choice: Choice, loop: TapedLoop) -> Schedule:
    """The schedule of a loop; ScheduleError if there is none of that name, or it does not fit."""
    schedule = _named(choice, loop)
    if not isinstance(schedule, Schedule):
        raise ScheduleError(
            f"schedule={choice!r} gave {type(schedule).__name__}; a schedule of "
            "ckad.schedules is wanted, its name, or a function from n_steps to one."
        )
    if schedule.n_steps != loop.n_steps and not loop.is_open:
        raise ScheduleError(
            f"the schedule is made for {schedule.n_steps} steps, the loop has {loop.n_steps}. "
            f"Build it for {loop.n_steps}, or pass a function: schedule=lambda n: "
            f"ckad.schedules.{schedule.family}(n, ...)."
        )
    if isinstance(schedule.source, Listed):
        check_schedule(schedule)  # made elsewhere: a wrong row would be a wrong gradient
    mixes = schedule.arena or isinstance(schedule.source, Listed)
    if mixes and _tapes_and_runs_on(schedule):
        raise ScheduleError(
            f"{schedule.family} runs on from a step that it has taped in the reverse phase, and no "
            "engine does: what is run again and taped has to be reversed next. Use "
            "ckad.schedules.revolve or two_level, or multistage and hrevolve with a disk."
        )
    return schedule


def _tapes_and_runs_on(schedule: Schedule) -> bool:
    """Whether a step that is taped in the reverse phase is followed by what needs its state."""
    rows = schedule.actions
    kept = rows.kind != Action.DROP
    kind, stop = rows.kind[kept], rows.stop[kept]
    forward = (kind == Action.ADVANCE) | (kind == Action.TAPE)
    last = np.flatnonzero(forward & (stop >= schedule.n_steps))
    needs = forward | (kind == Action.STORE)
    back = slice(int(last[0]) + 1, None) if last.size else slice(0, 0)
    taped, after = (kind == Action.TAPE)[back][:-1], needs[back][1:]
    return bool(np.any(taped & after))


def family(choice: Choice, loop: TapedLoop) -> Callable[[int, int], Schedule]:
    """What makes the schedules of "revolve" and "online", of steps and slots."""
    if choice == "revolve":
        return revolve
    return unknown if loop.is_open else online


def _named(choice: Choice, loop: TapedLoop) -> object:
    n = loop.n_steps
    if isinstance(choice, Schedule):
        return choice
    if callable(choice):
        _check_takes_steps(choice)
        return choice(n)
    if choice == "store_all":
        return store_all(n)
    if choice == "two_level":
        return two_level(n)
    if choice in ("revolve", "online"):
        return family(choice, loop)(n, 1)
    if choice in SCHEDULES:
        raise ScheduleError(
            f"schedule={choice!r} needs to be told how many slots; pass a function from the number "
            f"of steps: schedule=lambda n: ckad.schedules.{choice}(n, ...)."
        )
    names = ", ".join(repr(x) for x in ("auto", *SCHEDULES))
    raise ScheduleError(f"schedule={choice!r} is not known; use one of {names}, or a Schedule.")


def _check_takes_steps(choice: Callable[[int], Schedule]) -> None:
    """ScheduleError for a function that has to be told more, as those of ckad.schedules have."""
    try:
        inspect.signature(choice).bind(1)
    except TypeError as error:
        name = getattr(choice, "__name__", repr(choice))
        raise ScheduleError(
            f"schedule={name} is called with the number of steps alone, and needs more ({error}). "
            f"Pass a function of one number: schedule=lambda n: {name}(n, ...)."
        ) from error
    except ValueError:  # of a builtin nothing is known
        pass
