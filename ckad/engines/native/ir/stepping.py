"""Code that runs a body step after step, from a first one to a last one or until its guard fails.

After chunks of steps it spends fuel, so that Python has its turn. Sweeps and plain loops use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ckad.engines.native.ir.element import Value, whole
from ckad.engines.native.ir.flow import carry, smaller
from ckad.engines.native.ir.hooks import spend
from ckad.engines.native.ir.state import Cell
from ckad.engines.native.ir.unit import Unit

#: Python is called at least about this often, in predicted nanoseconds.
CHUNK = 1_000_000

#: (index, values of this step) -> values of the next
Body = Callable[[Value, list[Value]], list[Value]]
#: values -> whether there is another step
Guard = Callable[[list[Value]], Value]


class Run(NamedTuple):
    """Which steps are run: [start, stop), as long as the guard holds if there is one.

    ``cost`` are the nanoseconds of a step, ``length`` how many there are at most, ``each`` as how
    many a step counts.
    """

    start: Value
    stop: Value
    cost: float
    length: int
    guard: Guard | None = None
    backward: bool = False
    outermost: bool = False
    each: int = 1


class Ran(NamedTuple):
    """The values after the last step, and the index of the step that would be next."""

    values: list[Value]
    at: Value


def run_steps(unit: Unit, run: Run, initial: Sequence[Value], body: Body) -> Ran:
    """Run steps, in chunks after which fuel is spent."""
    b = unit.b
    one_by_one = max(1, int(CHUNK / max(run.cost, 1.0)))
    if one_by_one >= run.length and not run.outermost:
        return _steps(unit, run, run.start, run.stop, initial, body)
    chunk = min(one_by_one, max(1, run.length))
    # where the last chunk ended is one of the values: a guard may end it early
    first_values = [run.start, *initial]
    guard = run.guard
    goes_on = (lambda values: guard(values[1:])) if guard else None
    with carry(b, run.start, run.stop, first_values, chunk, goes_on) as (first, values, put):
        last = smaller(b, b.add(first, whole(chunk)), run.stop)
        new = _steps(unit, run, first, last, values[1:], body)
        n_done = b.sub(new.at, first)
        if run.outermost:
            counted = b.mul(n_done, whole(run.each))
            unit.put(Cell.STEPS, b.add(unit.get(Cell.STEPS), counted))
        spend(unit, b.mul(n_done, whole(max(1, int(run.cost)))))
        put([new.at, *new.values])
    return Ran(values[1:], values[0])


def _steps(
    unit: Unit, run: Run, first: Value, last: Value, initial: Sequence[Value], body: Body
) -> Ran:
    b = unit.b
    with carry(b, first, last, initial, goes_on=run.guard) as (at, values, set_values):
        index = at
        if run.backward:
            index = b.sub(b.add(run.start, b.sub(run.stop, whole(1))), at)
        with unit.step(index):
            set_values(body(index, values))
    return Ran(values, at)
