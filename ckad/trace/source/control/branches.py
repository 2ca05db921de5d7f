"""Branches on traced conditions: both sides are recorded, what they change is merged."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ckad.errors import CarryError
from ckad.place import at_place, call_site
from ckad.tape.ops import OPS, Group, Op
from ckad.trace.memory.context import Trace, current, open_trace
from ckad.trace.memory.storage import Storage, Written
from ckad.trace.source.control.checks import Stops
from ckad.trace.source.control.flow import Flow, definite
from ckad.trace.source.control.merging import VALUE, Merge, Side
from ckad.trace.source.memory.contents import Stacked
from ckad.trace.source.memory.housing import Housing, check_alike, merge_growth
from ckad.trace.source.names.frame import (
    MISSING,
    Key,
    Region,
    Unclear,
    open_region,
)
from ckad.trace.source.names.regions import Growth
from ckad.trace.source.values import (
    slot_of,
    truth,
    weakened,
)
from ckad.trace.values.tracer import Tracer, lift

Thunk = Callable[[], Any]


def either(predicate: Tracer, if_true: Thunk, if_false: Thunk, place: Hashable) -> Any:
    """The value of one of two expressions, whichever the condition asks for.

    ``place`` says where they stand, here and below: what they write into is remembered.
    """
    merged = Merge(predicate, _record((if_true, if_false), place))
    one, other = merged.sides
    if one.raises or other.raises:
        result = merged.of_other_side(
            *((other.result, False) if one.raises else (one.result, True))
        )
    else:
        result = merged.joined(VALUE, "the conditional expression", *merged.results)
    merged.names()
    merged.finish()
    value = merged.bound(result)
    merged.settle()
    if type(value) is Unclear:
        raise value.error
    return value


def branch(predicate: Tracer, if_true: Thunk, if_false: Thunk, place: Hashable) -> Flow | None:
    """Run one of two blocks, whichever the condition asks for; how they end."""
    merged = Merge(predicate, _record((if_true, if_false), place))
    flows = [f if f is not None else definite(Flow.NEXT) for f in merged.results]
    merged.flows(flows)
    merged.names()
    merged.finish()
    merged.settle()
    return merged.flow


def run_on(flow: Flow | None, rest: Thunk, place: Hashable) -> Flow | None:
    """Run ``rest`` where the flow so far runs on; how both end."""
    goes = True if flow is None else flow.goes(Flow.NEXT)
    if goes is True:
        last: Flow | None = rest()
        return last
    assert flow is not None
    if goes is False:
        return flow
    others = Flow(flow.kinds - {Flow.NEXT}, flow.signal)
    return branch(goes, rest, lambda: others, place)


def logical(is_and: bool, first: Any, verdict: Tracer, rest: Thunk, place: Hashable) -> Any:
    """``first and rest()``, or ``or``, where ``first`` is traced.

    What follows is evaluated only where it counts, unless it is harmless.
    """
    with open_region(), open_trace(adopts=True) as trace:
        try:
            found = rest()
            plain = isinstance(found, Tracer) and found.dtype == bool and not found.shape
            harmless = plain and not trace.adopted and _is_harmless(trace)
        except (Written, Stops):
            harmless = False
    if harmless and isinstance(first, Tracer) and first.dtype == bool:
        second = truth(rest())
        both = np.logical_and(verdict, second) if is_and else np.logical_or(verdict, second)
        return weakened(both)
    sides = (rest, lambda: first) if is_and else (lambda: first, rest)
    return either(verdict, *sides, place)


def _is_harmless(trace: Trace) -> bool:
    """Whether all rows can be computed whatever the numbers are, and cost little."""
    return all(
        OPS[row.op].group in (Group.LEAF, Group.ELEMENTWISE)
        and row.op is not Op.WRAP
        and row.type.size == 1
        for row in trace.builder.rows
    )


def item(items: Sequence[Any], index: Tracer) -> Any:
    """``items[index]`` of a list or tuple of numbers, with a traced index."""
    kinds = [slot_of(x) for x in items]
    if not items or any(kind is None or not kind.scalar for kind in kinds):
        return items[index.__index__()]  # says why this cannot be
    return np.stack([lift(x) for x in items])[index]


# --- recording both sides ------------------------------------------------------------------------


def _record(sides: Sequence[Thunk], place: Hashable) -> list[Side]:
    """Each side in a trace of its own; again while one writes into an array from outside.

    What they wrote into when they were recorded last is taken for written at once: a nest of loops
    and branches is recorded again and again, each time a loop around finds something new.
    """
    around, place = current(), (place, call_site())
    known = around.known_writes.get(place, {})
    guessed = {k: root for k, root in known.items() if around.may_write(root)}
    written = dict(guessed)
    housing = Housing()
    try:
        while True:
            housing.enter()
            try:
                recorded = [_record_side(side, written, housing) for side in sides]
                check_alike([side.ends for side in recorded if not side.raises])
            except _Again:
                continue
            except Stacked as found:
                if not housing.want(found, 1):
                    raise
                continue
            grown: dict[int, Growth] = {}
            merge_growth([side.region.growth for side in recorded], grown)
            if not housing.is_enough(grown, 1):
                continue
            wrong = [key for key in guessed if not any(_writes(side, key) for side in recorded)]
            if not wrong:
                return recorded
            guessed = {}
            for key in wrong:
                del written[key]
    except BaseException:
        housing.leave()
        raise
    finally:
        around.known_writes[place] = dict(written)


def _writes(side: Side, key: int) -> bool:
    adopted = side.trace.adopted.get(key)
    return adopted is not None and adopted.writes > 0


class _Again(Exception):
    """A side has to be recorded again."""


def _record_side(side: Thunk, written: dict[int, Storage], housing: Housing) -> Side:
    with open_trace(adopts=True) as trace, open_region() as region:
        housing.mark(region)
        for root in written.values():
            trace.adopt(root)
        raises = False
        try:
            result = side()
        except Written as found:
            if found.trace is not trace:
                raise
            written[id(found.root)] = found.root
            raise _Again from None
        except Stops:
            result, raises = definite(Flow.RAISE), True
        except LookupError as error:
            if region.outer is None:
                raise
            raise CarryError(  # a loop then runs step by step, and this side only if it is taken
                at_place(
                    f"{type(error).__name__}: {error}, on a side of a branch in a loop, which is "
                    "recorded before it is known whether it is run."
                )
            ) from error
        return Side(trace, result, _ends(region), region, raises)


def _ends(region: Region) -> dict[Key, Any]:
    return {(frame, name): frame.names.get(name, MISSING) for frame, name in region.changed}
