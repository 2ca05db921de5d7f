"""Arrays that only change their names, as buffers that take turns do, or views that are exchanged.

A step is then a map of names to the arrays of names, so where each of them is after the loop is
known exactly: the name shows the memory that it shows in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckad.tape.control import UNGUARDED
from ckad.trace.memory.context import Trace
from ckad.trace.memory.views import is_static
from ckad.trace.source.control.carried.findings import Findings
from ckad.trace.source.memory.sharing import Place, Turn, memory, part_of_root
from ckad.trace.values.tracer import Tracer


class Rounds:
    """Where arrays are after a loop whose number of steps is known."""

    def __init__(self, loop: Findings, turns: Sequence[Turn], body: Trace) -> None:
        self.body = body
        self.count = loop.steps.count
        self.runs = isinstance(self.count, int) and self.count > 0 and loop.guard == UNGUARDED
        self.next: dict[int, Turn] = {}  # by the storage that an array enters a step with
        self._at = {id(turn.entered): turn for turn in turns if _keeps_kind(turn)}
        for turn in turns if self.runs else ():
            source = self._source(turn.end)
            if source is not None and not turn.end.path:
                self.next[id(turn.entered)] = source

    def _source(self, end: Any) -> Turn | None:
        return None if memory(end) is None else self._at.get(id(end.storage))

    def after(self, end: Any) -> Tracer | None:
        """The array around the loop that ``end``, of its last step, shows; None if not known."""
        if not self.runs or memory(end) is None:
            return None
        turn = self._source(end)
        if turn is not None:
            first = self._first(turn)
            return None if first is None else _view(first, end)
        return self._from_outside(end)

    def _first(self, turn: Turn) -> Tracer | None:
        """What the name of ``turn`` shows in the last step."""
        seen: dict[int, int] = {}
        path = [turn]
        while len(path) < self.count and id(path[-1].entered) not in seen:
            seen[id(path[-1].entered)] = len(path) - 1
            following = self.next.get(id(path[-1].entered))
            if following is None:
                return None
            path.append(following)
        last = self.count - 1
        if last >= len(path):
            start = seen[id(path[-1].entered)]
            last = start + (last - start) % (len(path) - 1 - start)
        found: Tracer | None = path[last].first
        return found

    def _from_outside(self, end: Tracer) -> Tracer | None:
        root, path = end.storage.root, part_of_root(end)
        if path is None or not self.body.is_inside(root.trace) or root.trace is self.body:
            return None
        return Tracer(root, path)

    def given_back(self, turns: Sequence[Turn]) -> dict[Place, Tracer]:
        """The arrays that steps write into and whose memory has its names again after the loop.

        By the place of the name that shows it then.
        """
        found = {}
        for turn in turns:
            if any(x.entered.writes for x in self._cycle(turn)):
                found[turn.place] = self._first(self.next[id(turn.entered)])
        return {place: x for place, x in found.items() if x is not None}

    def _cycle(self, turn: Turn) -> list[Turn]:
        """The turns that take each other's places, if ``turn`` is among them."""
        found = [turn]
        while len(found) <= len(self.next):
            following = self.next.get(id(found[-1].entered))
            if following is None:
                return []
            if following is turn:
                return found
            found.append(following)
        return []


def _keeps_kind(turn: Turn) -> bool:
    """Whether it starts with an array of the very kind that it is carried as."""
    return memory(turn.first) is not None and turn.first.type == turn.slot.type


def _view(whole: Tracer, part: Tracer) -> Tracer | None:
    """What ``part`` is of its storage, of ``whole``."""
    if not part.path:
        return whole
    return Tracer(whole.storage, (*whole.path, *part.path)) if is_static(part.path) else None
