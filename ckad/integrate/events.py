"""Events of a recorded solution: zeros of functions of time and state, within one step.

The time of an event is found by bisection on the interpolant, without derivative, then by two
Newton steps. The first has the derivative of the zero, dt = -(g_y dy + g_p dp) / (dg/dt), by the
implicit-function theorem; the second those up to order three, as each step doubles the number of
terms of a series that are right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import stopping, traced
from ckad.trace.source import follow
from ckad.trace.values.tracer import Tracer
from ckad.transforms import cond, fori_loop, jvp, stop_gradient

HALVINGS = 60  # of a step: beyond the last bit of its time


class Event(NamedTuple):
    """A function whose zeros are sought, how many end the run, and how many have room."""

    function: Callable[[Any, Any], Any]
    direction: Any  # a number, which may be traced
    ends_at: int  # 0 if it is not terminal
    room: int


def prepared(events: Any, args: tuple[Any, ...], max_events: int) -> list[Event]:
    """SciPy's attributes ``terminal`` and ``direction`` of each function."""
    if events is None:
        return []
    given = events if isinstance(events, (list, tuple)) else [events]
    return [_prepared(event, args, max_events) for event in given]


def _prepared(event: Any, args: tuple[Any, ...], max_events: int) -> Event:
    terminal = getattr(event, "terminal", None) or 0
    if int(terminal) != terminal or terminal < 0:
        raise ValueError(
            at_place(f"an event's terminal={terminal}; it must be a bool or a positive integer.")
        )
    followed = follow(event, often=True)

    def value(t: Any, y: Any) -> Any:
        return traced(followed(t, y, *args)).reshape(()) * 1.0

    direction = getattr(event, "direction", 0)
    direction = direction if isinstance(direction, Tracer) else float(direction)
    return Event(value, direction, int(terminal), int(terminal) or max_events)


def begun(events: Sequence[Event], t: Any, y: Any) -> dict[str, Any]:
    """What a loop carries of events: values, counts, and what was found."""
    return {
        "g": [e.function(t, y) for e in events],
        "count": [np.int64(0) for _ in events],
        "t": [np.zeros(e.room) for e in events],
        "y": [np.zeros((e.room, y.size), dtype=y.dtype) for e in events],
        "ended": np.bool_(False),
    }


def is_crossed(event: Event, before: Any, after: Any) -> Any:
    up, down = (before <= 0.0) & (after >= 0.0), (before >= 0.0) & (after <= 0.0)
    either, wanted = up | down, event.direction  # of NaN none, as in SciPy
    return (up & (wanted > 0.0)) | (down & (wanted < 0.0)) | (either & (wanted == 0.0))


class Step(NamedTuple):
    """A step that was accepted, or one to be left out of account."""

    accepted: Any
    t_old: Any
    t: Any
    y: Any
    state_at: Callable[[Any], Any]  # its interpolant
    near: Callable[[Any], Callable[[Any], Any]] | None = None  # what is better near a time


def after_step(
    events: Sequence[Event], seen: dict[str, Any], step: Step
) -> tuple[dict[str, Any], Any, Any]:
    """The carried values after a step, and the time and state where it ends."""
    values = [e.function(step.t, step.y) for e in events]
    active = [
        step.accepted & is_crossed(e, g, g_new)
        for e, g, g_new in zip(events, seen["g"], values, strict=True)
    ]
    direction = np.where(step.t >= step.t_old, 1.0, -1.0)
    places = [_place(e, a, step) for e, a in zip(events, active, strict=True)]
    ending = [
        a & (n + 1 >= e.ends_at) if e.ends_at else np.bool_(False)
        for e, a, n in zip(events, active, seen["count"], strict=True)
    ]
    order = [
        np.where(a, direction * stop_gradient(root), np.inf)
        for a, (root, _) in zip(active, places, strict=True)
    ]
    last: Any = np.inf
    by: Any = np.int64(len(events))  # which event ends the run: of two at one time the first
    t_end, y_end, ended = step.t, step.y, np.bool_(False)
    for k, (ends, place, (root, state)) in enumerate(zip(ending, order, places, strict=True)):
        first = ends & (place < last)
        last, by, ended = np.where(first, place, last), np.where(first, k, by), ended | ends
        t_end, y_end = np.where(first, root, t_end), np.where(first, state, y_end)
    found = {"g": [], "count": [], "t": [], "y": [], "ended": seen["ended"] | ended}
    for k, event in enumerate(events):
        kept = active[k] & ((order[k] < last) | ((order[k] == last) & (k <= by)))
        _write(found, event, seen, k, kept, places[k])
        found["g"].append(np.where(step.accepted, values[k], seen["g"][k]))
    return found, t_end, y_end


def _write(
    found: dict[str, Any],
    event: Event,
    seen: dict[str, Any],
    k: int,
    kept: Any,
    place: tuple[Any, Any],
) -> None:
    root, state = place
    count = stopping(traced(seen["count"][k]), kept & (seen["count"][k] >= event.room), "EVENTS")
    here = kept & (np.arange(event.room) == count)
    found["t"].append(np.where(here, root, seen["t"][k]))
    found["y"].append(np.where(here[:, np.newaxis], state, seen["y"][k]))
    found["count"].append(count + np.where(kept, 1, 0))


def _place(event: Event, active: Any, step: Step) -> Any:
    """Time and state of the zero within the step; the step's end where there is none."""

    def found(*_: Any) -> tuple[Any, Any]:
        begin = _bisected(event, step)
        state_at = step.near(begin) if step.near else step.state_at
        root = _newton(event, state_at, begin)
        return root, state_at(root)

    return cond(active, found, lambda *end: end, step.t, step.y)


def _bisected(event: Event, step: Step) -> Any:
    def value(t: Any) -> Any:
        return event.function(t, step.state_at(t))

    end = np.sign(value(step.t))

    def halve(_: Any, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        a, b = ends
        middle = a + 0.5 * (b - a)
        beyond = np.sign(value(middle)) == end
        return np.where(beyond, a, middle), np.where(beyond, middle, b)

    a, b = stop_gradient(step.t_old) * 1.0, stop_gradient(step.t) * 1.0
    return stop_gradient(fori_loop(0, HALVINGS, halve, (a, b))[1])


def _newton(event: Event, state_at: Callable[[Any], Any], root: Any) -> Any:
    def value(t: Any) -> Any:
        return event.function(t, state_at(t))

    for _ in range(2):
        slope = jvp(value, (root,), (1.0,))[1]
        slope = stopping(slope, slope == 0.0, "TOUCHED")
        root = root - value(root) / slope
    return root
