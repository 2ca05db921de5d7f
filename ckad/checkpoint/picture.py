"""A schedule as a picture: the step at hand over the course of the actions."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from ckad.checkpoint.schedules.schedule import Action, Schedule

MOST_ACTIONS = 200_000
_STYLES = {
    Action.ADVANCE: ("tab:blue", "advance"),
    Action.TAPE: ("tab:green", "tape"),
    Action.REVERSE: ("tab:red", "reverse"),
}


def draw(schedule: Schedule, ax: Any = None) -> Any:
    """Lines for sweeps, dots for stored states; returns the matplotlib axes."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection

    (actions,) = islice(schedule.chunks(MOST_ACTIONS), 1)
    if actions.kind[-1] != Action.END:
        raise ValueError(f"the schedule has more than {MOST_ACTIONS:,} actions; too many to draw")
    ax = ax or plt.subplots(figsize=(8, 4.5), layout="constrained")[1]
    moves = np.isin(actions.kind, list(_STYLES))
    work = np.cumsum(np.where(moves, actions.stop - actions.start, 0))
    before = work - np.where(moves, actions.stop - actions.start, 0)
    for kind, (color, label) in _STYLES.items():
        at = actions.kind == kind
        first, last = actions.start[at], actions.stop[at]
        if kind == Action.REVERSE:
            first, last = last, first
        ends = np.stack([np.stack([before[at], first], 1), np.stack([work[at], last], 1)], 1)
        ax.add_collection(LineCollection(list(ends), colors=color, label=label, linewidths=1.2))
    stored = actions.kind == Action.STORE
    ax.plot(before[stored], actions.start[stored], "k.", markersize=4, label="store")
    ax.autoscale()
    ax.set(xlabel="steps run, forward and reverse", ylabel="step", title=str(schedule))
    ax.legend(loc="upper right")
    return ax
