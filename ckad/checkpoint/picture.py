"""A schedule as a picture: which step is at hand while the sweeps run, and what the slots hold."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.schedule import Action, Actions, Schedule

MOST_ACTIONS = 200_000
#: Steps of a TAPE whose residuals are drawn; of more of them some.
MOST_RESIDUALS = 500
#: Sweeps by kind: the colour (told apart also by those who see no red or green), and in words.
_SWEEPS = {
    Action.ADVANCE: ("#0072b2", "advance"),
    Action.TAPE: ("#009e73", "tape: advance and keep residuals"),
    Action.REVERSE: ("#d55e00", "reverse"),
}
#: What is kept, by where: the colour and in words.
_KEPT = {
    "ram": ("0.8", "state in RAM"),
    "disk": ("#56b4e9", "state on disk"),
    "residual": ("#f0e442", "residuals"),
}
#: The timeline's signs, those that hide others last.
_SIGNS = {"residual": ":", "ram": "-", "disk": "=", "forward": "/", "reverse": "\\"}


class Course(NamedTuple):
    """When each action happens: ``before`` and ``after`` it, in steps run so far."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]


def draw(schedule: Schedule, ax: Any = None) -> Any:
    """Sweeps as lines; what is kept as bars, coloured by where; returns the matplotlib axes.

    ``ax`` are axes to draw into; new ones are made if there are none. ``ax.figure.savefig(name)``
    writes SVG, PDF or PNG.

    Raises:
        ValueError: the schedule has more than 200,000 actions.
        ImportError: matplotlib is not installed.

    >>> from ckad import schedules
    >>> axes = schedules.draw(schedules.revolve(20, 3))
    >>> axes.get_ylabel() == ""
    False
    """
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection
    from matplotlib.ticker import EngFormatter, MaxNLocator

    actions = _whole(schedule)
    ax = ax or plt.subplots(figsize=(9, 5), layout="constrained")[1]
    course = _course(actions)
    # Thick enough to be seen where there are few, thin enough to be told apart where many.
    width = float(np.clip(300 / max(schedule.n_steps, 1), 0.8, 2.5))
    kept = _kept(actions, course, schedule.n_slots)
    layers = [(kept[where], color, label) for where, (color, label) in _KEPT.items()]
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
    disk = f"{schedule.n_disk_slots:,} on disk, " if schedule.n_disk_slots else ""
    return (
        f"{schedule.family}: {schedule.n_steps:,} steps, slots: {schedule.n_slots:,} restart, "
        f"{disk}{schedule.n_tape_slots:,} residual; {schedule.forward_steps:,} forward steps "
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


def _kept(actions: Actions, course: Course, n_slots: int) -> dict[str, list[NDArray[np.float64]]]:
    """A bar per stored state, from its STORE to its DROP, and per step whose residuals are kept."""
    bars: dict[str, list[NDArray[np.float64]]] = {where: [] for where in _KEPT}
    since: dict[tuple[bool, int], tuple[float, float]] = {}

    def end(key: tuple[bool, int], now: float) -> None:
        begin, step = since.pop(key)
        where = "residual" if key[0] else "ram" if key[1] < n_slots else "disk"
        bars[where].append(np.array([[begin, step], [now, step]], float))

    rows = zip(*(column.tolist() for column in actions), course.before, course.after, strict=True)
    for kind, start, stop, slot, before, after in rows:
        if kind == Action.STORE:
            since[False, slot] = before, start
        elif kind == Action.DROP:
            end((False, slot), before)
        elif kind == Action.TAPE:
            thinned = range(0, stop - start, 1 + (stop - start) // MOST_RESIDUALS)
            since |= {(True, slot + k): (before + k + 1, start + k) for k in thinned}
        elif kind == Action.REVERSE:
            for k in range(stop - start):
                if (True, slot + k) in since:
                    end((True, slot + k), after - k)
    for key in list(since):
        end(key, course.after[-1])
    return bars


# --- in a terminal -------------------------------------------------------------------------------


def timeline(schedule: Schedule, width: int = 76, height: int = 20) -> str:
    r"""The same picture in characters: steps of the loop upwards, steps run so far to the right.

    Raises:
        ValueError: the schedule has more than 200,000 actions.

    >>> from ckad.checkpoint.picture import timeline
    >>> from ckad.schedules import multistage
    >>> print(timeline(multistage(8, 1, 1), width=32, height=8))
    multistage: 8 steps, slots: 1 restart, 1 on disk, 1 residual; 22 forward steps (× 2.75)
    7 |       /\\
    6 |      //   /\\
    5 |     //   //   /\
    4 |    /----//---/--/\\
    3 |   //                 /\\
    2 |  //                 //  /\\
    1 | /                  /---//-/\\
    0 |/==================//=========/\
    / forward  \ reverse  kept: - state in RAM, = state on disk, : residuals
    """
    actions = _whole(schedule)
    course = _course(actions)
    span, n = max(1, int(course.after[-1])), max(1, schedule.n_steps)
    height = max(1, min(height, n))
    page = np.full((height, width), " ")
    layers = list(_kept(actions, course, schedule.n_slots).items())
    layers += [
        ("forward", _lines(actions, course, Action.ADVANCE) + _lines(actions, course, Action.TAPE)),
        ("reverse", _lines(actions, course, Action.REVERSE)),
    ]
    layers.sort(key=lambda layer: list(_SIGNS).index(layer[0]))
    for what, lines in layers:
        for (x0, y0), (x1, y1) in lines:
            _mark(page, _SIGNS[what], (x0 / span, y0 / n), (x1 / span, y1 / n))
    margin = len(f"{n - 1:,}")
    steps = [f"{(k * n) // height:,}".rjust(margin) for k in range(height)]
    drawn = [f"{step} |{''.join(row)}".rstrip() for step, row in zip(steps, page, strict=True)]
    signs = f"{_SIGNS['forward']} forward  {_SIGNS['reverse']} reverse  kept: "
    signs += ", ".join(f"{_SIGNS[where]} {label}" for where, (_, label) in _KEPT.items())
    return "\n".join([_title(schedule), *reversed(drawn), signs])


def _mark(
    page: NDArray[np.str_], sign: str, begin: tuple[float, float], end: tuple[float, float]
) -> None:
    """A line between two points of the unit square."""
    height, width = page.shape
    n = 1 + int(2 * max(abs(end[0] - begin[0]) * width, abs(end[1] - begin[1]) * height))
    part = (np.arange(n) + 0.5) / n
    # the middles of pieces, which are inside of the square
    x = np.clip((begin[0] + part * (end[0] - begin[0])) * width, 0, width - 1)
    y = np.clip((begin[1] + part * (end[1] - begin[1])) * height, 0, height - 1)
    page[y.astype(int), x.astype(int)] = sign


def _whole(schedule: Schedule) -> Actions:
    (actions,) = islice(schedule.chunks(MOST_ACTIONS), 1)
    if actions.kind[-1] != Action.END:
        raise ValueError(f"the schedule has more than {MOST_ACTIONS:,} actions; too many to draw")
    return actions
