"""What to say of a budget that is too small, or that makes a gradient dear."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from ckad.engines.measure import TapedLoop
from ckad.errors import BudgetError, RecomputeWarning
from ckad.loops.arenas import Schedules
from ckad.loops.asked import Choice
from ckad.memory import format_bytes
from ckad.place import user_place
from ckad.tape.control import read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import Type

#: A budget that is advised computes steps so many times at the most; a warning comes beyond DEAR.
FEW, DEAR = 3.0, 20.0
#: Arrays that an error names at the most, and the part of all bytes from which on one is named.
NAMED, PART = 3, 20
#: How near the least such budget it is, and the largest that is looked at.
NEAR, MOST = 1.05, 2**60


class Finder(Protocol):
    """What finds schedules within a budget; the advice is what it would find within others."""

    outer: list[TapedLoop]
    budget: int
    requested: str | int | None
    choice: Choice
    largest: Callable[[int], str]

    def under(self, budget: int) -> Finder:
        """The same within another budget."""

    def schedules(self) -> Schedules:
        """The cheapest that fit."""

    def measured(self, schedules: Schedules) -> int:
        """The bytes of a whole run."""

    def factor(self, schedules: Schedules) -> float:
        """How often a step is computed, on the average."""


def too_small(finder: Finder, needed: int, what: str) -> BudgetError:
    """The error of a budget below ``needed`` bytes, with one that is worth giving."""
    states = ", ".join(
        f"{x.n_steps:,} steps with a state of {format_bytes(x.state_bytes)}" for x in finder.outer
    )
    return BudgetError(
        f"memory={finder.requested!r} is {finder.budget:,} bytes; the least that {what} needs is "
        f"{needed:,} bytes ({states or 'no loop to reverse'}). "
        f"{finder.largest(needed)}Raise memory= to at least {needed:,}.{_better(finder, needed)}"
    )


class _Array(NamedTuple):
    """An array that takes room, and what for."""

    type: Type
    what: str


def largest(tape: Tape, needed: int) -> str:
    """Which arrays take the most of so many bytes, as a sentence; nothing where none takes much."""
    found = sorted(set(_arrays(tape)), key=lambda x: (-x.type.nbytes, x.what))
    named = [x for x in found if PART * x.type.nbytes >= needed][:NAMED]
    if not named:
        return ""
    said = "; ".join(f"{x.type.nbytes:,} bytes {x.what}, {x.type}" for x in named)
    return f"The largest arrays: {said}. "


def _arrays(tape: Tape) -> Iterator[_Array]:
    """What outlives a step: results, what steps carry, what one keeps for its reversal."""
    for type in tape.output_types:
        yield _Array(type, "for a result")
    for row in tape.rows:
        if row.op is not Op.TAPED_LOOP:
            continue
        loop = read_loop(tape, row)
        assert loop.taping is not None
        for name, body, rows in (
            ("carried from step to step", loop.body, loop.body.outputs[: len(loop.carry)]),
            ("kept of a step", loop.taping, loop.taping.outputs[len(loop.body.outputs) :]),
        ):
            for k in rows.tolist():
                if body.rows[k].type.is_array:
                    yield _Array(body.rows[k].type, f"{name} ({_line(body, k)})")


def _line(tape: Tape, k: int) -> str:
    """Where a row comes from, and what is written there."""
    source = tape.source_of(k)
    text = linecache.getline(*source).strip()
    return f"{source}: {text}" if text else str(source)


def warn_if_dear(finder: Finder, schedules: Schedules) -> None:
    """A RecomputeWarning at the user's line where the budget asked for makes steps run often."""
    if finder.requested is None or finder.choice != "auto" or not schedules:
        return
    factor = finder.factor(schedules)
    if factor > DEAR:
        place = user_place()
        message = (
            f"memory={finder.requested!r} is so little that each step is computed {factor:,.0f} "
            f"times on the average.{_better(finder, finder.budget)}"
        )
        warnings.warn_explicit(message, RecomputeWarning, place.file, place.line)


def _better(finder: Finder, least: int) -> str:
    if finder.choice != "auto":
        return ""
    enough = affordable(finder, least)
    if enough <= least:
        return ""
    size = f"{enough:,} bytes ({format_bytes(enough)})"
    return f" With {size} a step is computed {FEW:.0f} times at most, on the average."


def affordable(finder: Finder, least: int) -> int:
    """About the least budget, from ``least`` on, under which steps run FEW times at the most."""

    def is_enough(budget: int) -> bool:
        other = finder.under(budget)
        schedules = other.schedules()
        return other.factor(schedules) <= FEW and other.measured(schedules) <= budget

    low = high = least
    while not is_enough(high):
        low, high = high, 2 * high
        if high > MOST:
            return least
    while high > NEAR * low:
        middle = int((low * high) ** 0.5)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
