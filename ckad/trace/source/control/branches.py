"""Branches on traced conditions: both sides are recorded, what they change is merged.

``branch`` is given two functions, records each in a trace of its own, and leaves a COND row, whose
results are what names and arrays are bound to; `merging` makes it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ckad.errors import CarryError, CkadError, RaisedError
from ckad.place import at_place, call_site
from ckad.tape.ops import OPS, Group, Op
from ckad.trace.memory.context import Trace, current, gathering, open_trace
from ckad.trace.memory.storage import Storage, Written
from ckad.trace.source.control.checks import Stops, not_caught_outside, note_raise
from ckad.trace.source.control.flow import Flow, definite
from ckad.trace.source.control.merging import VALUE, Merge, Side
from ckad.trace.source.draws.noted import Uncounted, note_sides
from ckad.trace.source.memory.appends import Appended
from ckad.trace.source.memory.contents import Contents, Stacked, Whole
from ckad.trace.source.memory.ended import Ended
from ckad.trace.source.memory.growing import Growing, Outgrown
from ckad.trace.source.memory.housing import Housing, check_alike, merge_growth
from ckad.trace.source.memory.objects import Attributes
from ckad.trace.source.names.absence import side
from ckad.trace.source.names.frame import (
    MISSING,
    Key,
    Region,
    Unclear,
    enclosing,
    open_region,
    region,
)
from ckad.trace.source.names.region import Growth
from ckad.trace.source.values import (
    is_weak,
    truth,
    weakened,
)
from ckad.trace.values.tracer import Tracer

Thunk = Callable[[], Any]


def either(predicate: Tracer, if_true: Thunk, if_false: Thunk, place: Hashable) -> Any:
    """The value of one of two expressions, whichever the condition asks for.

    ``place`` says where they stand, here and below: what they write into is remembered.
    """
    merged = _merged(predicate, if_true, if_false, place)
    one, other = merged.sides
    results = [side.ended.of(side.result) for side in merged.sides]
    if one.raises and other.raises:
        merged.names()
        merged.finish()
        _stop()
    if one.raises or other.raises:
        result = merged.of_other_side(*((results[1], False) if one.raises else (results[0], True)))
    else:
        result = merged.joined(VALUE, "the conditional expression", *results)
    merged.names()
    merged.finish()
    value = merged.bound(result)
    merged.settle()
    if type(value) is Unclear:
        raise value.error
    return value


def _sides(predicate: Tracer, if_true: Thunk, if_false: Thunk) -> tuple[Thunk, Thunk]:
    return side(predicate, True, if_true), side(predicate, False, if_false)


def branch(predicate: Tracer, if_true: Thunk, if_false: Thunk, place: Hashable) -> Flow | None:
    """Run one of two blocks, whichever the condition asks for; how they end."""
    merged = _merged(predicate, if_true, if_false, place)
    flows = [f if f is not None else definite(Flow.NEXT) for f in merged.results]
    merged.flows(flows)
    merged.names()
    merged.finish()
    merged.settle()
    if merged.flow is not None and merged.flow.always(Flow.RAISE) and region() is None:
        _stop()
    return merged.flow


def _stop() -> NoReturn:
    """Both sides end with an error: nothing is run after them."""
    if region() is not None:
        raise Stops
    raise RaisedError.here("the program raises an error on either side of a branch.")


def run_on(flow: Flow | None, rest: Thunk, place: Hashable) -> Flow | None:
    """Run ``rest`` where the flow so far runs on; how both end."""
    goes = True if flow is None else flow.goes(Flow.NEXT)
    if goes is True:
        last: Flow | None = rest()
        return last
    assert flow is not None
    if goes is False:
        return flow
    return branch(goes, rest, partial(ended, flow, Flow.NEXT), place)


def ended(flow: Flow, *kinds: int) -> Flow:
    """How a block has ended that is not run on, as after ``kinds``."""
    others = Flow(flow.kinds.difference(kinds), flow.signal)
    if others.always(Flow.RAISE):
        raise Stops
    return others


def run_on_from(
    node: ast.stmt, run: Callable[[int], Flow | None], flow: Flow, k: int
) -> Flow | None:
    """The steps of a loop from number ``k`` on, where ``flow``, with which a step ended, lets them
    run."""
    goes = flow.goes(Flow.NEXT, Flow.CONTINUE)
    if goes is False:
        return flow
    if goes is True:
        return run(k)
    left = partial(ended, flow, Flow.NEXT, Flow.CONTINUE)
    return branch(goes, lambda: run(k), left, ("from", node, k))


def logical(is_and: bool, first: Any, verdict: Tracer, rest: Thunk, place: Hashable) -> Any:
    """``first and rest()``, or ``or``, where ``first`` is traced.

    What follows is evaluated only where it counts, unless it is harmless.
    """
    with open_trace(adopts=True) as trace, open_region() as region:
        try:
            found = side(verdict, is_and, rest)()
            computed = isinstance(found, Tracer) and found.dtype == bool and not found.shape
            plain = computed or type(found) is bool
            quiet = not trace.adopted and not region.has_effects
            harmless = plain and quiet and _is_harmless(trace)
        except (Exception, Written, Stops, Appended, Growing, Outgrown, Stacked, Whole):
            harmless = False
    if harmless and isinstance(first, Tracer) and first.dtype == bool:
        second = truth(side(verdict, is_and, rest)())
        if second is (not is_and):  # ``x > 0 and False``: nothing depends on the first
            return second
        both = np.logical_and(verdict, second) if is_and else np.logical_or(verdict, second)
        return weakened(both) if is_weak(first) and is_weak(second) else both
    sides = (rest, lambda: first) if is_and else (lambda: first, rest)
    return either(verdict, *sides, place)


def is_quiet(tried: Thunk) -> bool:
    """Whether something can be done without changing anything; whatever it does is undone."""
    with open_trace(adopts=True) as trace, open_region() as region:
        try:
            tried()
        except (Exception, Written, Stops, Appended, Growing, Outgrown, Stacked, Whole):
            return False
        return not trace.adopted and not region.has_effects


def _is_harmless(trace: Trace) -> bool:
    """Whether all rows can be computed whatever the numbers are, and cost little."""
    return all(
        OPS[row.op].group in (Group.LEAF, Group.ELEMENTWISE)
        and row.op is not Op.WRAP
        and row.type.size == 1
        for row in trace.builder.rows
    )


# --- recording both sides ------------------------------------------------------------------------


def _merged(predicate: Tracer, if_true: Thunk, if_false: Thunk, place: Hashable) -> Merge:
    while True:
        sides = _record(_sides(predicate, if_true, if_false), place)
        try:
            note_sides(predicate, [(side.trace, side.region) for side in sides])
        except Uncounted:
            continue
        return Merge(predicate, sides)


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
            new = housing.enter(written)
            guessed = {key: root for key, root in guessed.items() if key in written} | new
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


#: What Python raises where a line is run, and a side that is not taken does not.
_OF_THE_RUN = (
    LookupError,
    NameError,
    AttributeError,
    ValueError,
    ArithmeticError,
    TypeError,
    StopIteration,
    ImportError,
)


class _Again(Exception):
    """A side has to be recorded again."""


def _record_side(side: Thunk, written: dict[int, Storage], housing: Housing) -> Side:
    with open_trace(adopts=True) as trace, open_region() as region:
        housing.mark(region)
        for root in written.values():
            trace.adopt(root)
        raises = False
        try:
            with gathering(trace, written, _Again), not_caught_outside():
                result = side()
        except Written as found:
            if found.trace is not trace:
                raise
            written[id(found.root)] = found.root
            raise _Again from None
        except Stops:
            result, raises = definite(Flow.RAISE), True
        except _OF_THE_RUN as error:
            if isinstance(error, CkadError) and not isinstance(error, LookupError):
                raise
            if isinstance(error, NameError) or not _is_in_loop():
                note_raise()  # an error of the run, if it comes there
                result, raises = definite(Flow.RAISE), True
            else:
                raise CarryError(  # a loop then runs step by step, this side only if it is taken
                    at_place(
                        f"{type(error).__name__}: {error}, on a side of a branch in a loop, which "
                        "is recorded before it is known whether it is run."
                    )
                ) from error
        frames = {id(frame): frame for frame, _ in region.changed}.values()
        owners = [frame.owner for frame in frames if isinstance(frame, (Attributes, Contents))]
        return Side(trace, result, _ends(region), region, raises, Ended(owners))


def _is_in_loop() -> bool:
    """Whether a loop that may be run step by step is recorded once for all its steps."""
    return any(inner.may_be_written_out for inner in enclosing())


def _ends(region: Region) -> dict[Key, Any]:
    return {(frame, name): frame.names.get(name, MISSING) for frame, name in region.changed}
