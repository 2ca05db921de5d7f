"""A schedule as a picture: which step is at hand while the sweeps run, and what the slots hold."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.schedule import Action, Actions, Schedule

MOST_ACTIONS = 200_000
#: Sweeps by kind: the colour (told apart also by those who see no red or green), and in words.
_SWEEPS = {
    Action.ADVANCE: ("#0072b2", "advance"),
    Action.TAPE: ("#009e73", "tape: advance and keep residuals"),
    Action.REVERSE: ("#d55e00", "reverse"),
}
_HELD = "0.8"


class Course(NamedTuple):
    """When each action happens: ``before`` and ``after`` it, in steps run so far."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]


def draw(schedule: Schedule, ax: Any = None) -> Any:
    """Sweeps as lines, states in slots as bars; returns the matplotlib axes."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection
    from matplotlib.ticker import EngFormatter, MaxNLocator

    (actions,) = islice(schedule.chunks(MOST_ACTIONS), 1)
    if actions.kind[-1] != Action.END:
        raise ValueError(f"the schedule has more than {MOST_ACTIONS:,} actions; too many to draw")
    ax = ax or plt.subplots(figsize=(9, 5), layout="constrained")[1]
    course = _course(actions)
    # Thick enough to be seen where there are few, thin enough to be told apart where many.
    width = float(np.clip(300 / max(schedule.n_steps, 1), 0.8, 2.5))
    layers = [(_held(actions, course), _HELD, "state in a slot")]
    layers += [(_lines(actions, course, k), color, label) for k, (color, label) in _SWEEPS.items()]
    for order, (lines, color, label) in enumerate(layers):
        if lines:
            sweep = LineCollection(lines, colors=color, linewidths=width, label=label)
            sweep.set_zorder(1 + order)
            ax.add_collection(sweep)
    ax.autoscale()
    ax.margins(0.01)
    ax.set(
        xlabel="steps run so far, forward and reverse",
        ylabel="step of the loop",
        title=_title(schedule),
    )
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(EngFormatter(sep=""))
    legend = ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, frameon=False)
    for line in legend.legend_handles:
        line.set_linewidth(2.5)
    return ax


def _title(schedule: Schedule) -> str:
    return (
        f"{schedule.family}: {schedule.n_steps:,} steps, slots: {schedule.n_slots:,} restart, "
        f"{schedule.n_tape_slots:,} residual; {schedule.forward_steps:,} forward steps "
        f"(× {schedule.recompute_factor:.2f})"
    )


def _course(actions: Actions) -> Course:
    length = np.where(np.isin(actions.kind, list(_SWEEPS)), actions.stop - actions.start, 0)
    after = np.cumsum(length)
    return Course(after - length, after)


def _lines(actions: Actions, course: Course, kind: Action) -> list[NDArray[np.float64]]:
    at = actions.kind == kind
    first, last = actions.start[at], actions.stop[at]
    if kind == Action.REVERSE:
        first, last = last, first
    begin, end = np.stack([course.before[at], first], 1), np.stack([course.after[at], last], 1)
    return list(np.stack([begin, end], 1).astype(float))


def _held(actions: Actions, course: Course) -> list[NDArray[np.float64]]:
    """A bar per stored state, from its STORE to its DROP."""
    bars = []
    since: dict[int, int] = {}
    for row in np.flatnonzero((actions.kind == Action.STORE) | (actions.kind == Action.DROP)):
        slot, now, step = int(actions.slot[row]), course.before[row], actions.start[row]
        if actions.kind[row] == Action.STORE:
            since[slot] = int(row)
        else:
            bars.append(np.array([[course.before[since.pop(slot)], step], [now, step]], float))
    for stored in since.values():
        step = actions.start[stored]
        bars.append(np.array([[course.before[stored], step], [course.after[-1], step]], float))
    return bars
