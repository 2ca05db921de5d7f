"""Code that runs a body step after step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ckad.engines.native.element import Value, whole
from ckad.engines.native.flow import carry
from ckad.engines.native.hooks import spend
from ckad.engines.native.nests import smaller
from ckad.engines.native.state import Cell
from ckad.engines.native.unit import Unit

#: Python is called at least about this often, in predicted nanoseconds.
CHUNK = 1_000_000

#: (index, values of this step) -> values of the next
Body = Callable[[Value, list[Value]], list[Value]]


def run_steps(
    unit: Unit,
    start: Value,
    stop: Value,
    initial: Sequence[Value],
    body: Body,
    cost: float,
    length: int,
    backward: bool = False,
    outermost: bool = False,
) -> list[Value]:
    """The values after the steps [start, stop), in chunks after which fuel is spent.

    ``cost`` are the nanoseconds of a step, ``length`` how many there are at most.
    """
    b = unit.b
    one_by_one = max(1, int(CHUNK / max(cost, 1.0)))
    if one_by_one >= length and not outermost:
        return _steps(unit, start, stop, initial, body, backward, start, stop)
    chunk = min(one_by_one, max(1, length))
    with carry(b, start, stop, initial, chunk) as (first, values, set_values):
        last = smaller(b, b.add(first, whole(chunk)), stop)
        new = _steps(unit, first, last, values, body, backward, start, stop)
        n_done = b.sub(last, first)
        if outermost:
            unit.put(Cell.STEPS, b.add(unit.get(Cell.STEPS), n_done))
        spend(unit, b.mul(n_done, whole(max(1, int(cost)))))
        set_values(new)
    return values


def _steps(
    unit: Unit,
    first: Value,
    last: Value,
    initial: Sequence[Value],
    body: Body,
    backward: bool,
    start: Value,
    stop: Value,
) -> list[Value]:
    b = unit.b
    with carry(b, first, last, initial) as (at, values, set_values):
        index = at
        if backward:
            index = b.sub(b.add(start, b.sub(stop, whole(1))), at)
        with unit.step(index):
            set_values(body(index, values))
    return values
