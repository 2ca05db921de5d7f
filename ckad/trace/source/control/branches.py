"""Branches on traced conditions: both sides are recorded, what they change is merged."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import CarryError
from ckad.place import at_place, call_site
from ckad.tape.ops import OPS, Group, Op
from ckad.trace.arrays import called
from ckad.trace.memory.context import Trace, current, gathering, open_trace
from ckad.trace.memory.storage import Storage, Written
from ckad.trace.source.choices import Choice, can_be_chosen, number_of, one_of, refuse
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
from ckad.trace.source.memory.twins import can_differ
from ckad.trace.source.names.absence import OrNone, side
from ckad.trace.source.names.frame import (
    MISSING,
    Key,
    Region,
    Unclear,
    enclosing,
    open_region,
)
from ckad.trace.source.names.region import Growth
from ckad.trace.source.values import (
    is_weak,
    one_of_classes,
    same,
    slot_of,
    truth,
    weakened,
)
from ckad.trace.values.apply import astype, promote
from ckad.trace.values.tracer import Tracer, known, lift

Thunk = Callable[[], Any]


def either(predicate: Tracer, if_true: Thunk, if_false: Thunk, place: Hashable) -> Any:
    """The value of one of two expressions, whichever the condition asks for.

    ``place`` says where they stand, here and below: what they write into is remembered.
    """
    merged = _merged(predicate, if_true, if_false, place)
    one, other = merged.sides
    results = [side.ended.of(side.result) for side in merged.sides]
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


def _is_harmless(trace: Trace) -> bool:
    """Whether all rows can be computed whatever the numbers are, and cost little."""
    return all(
        OPS[row.op].group in (Group.LEAF, Group.ELEMENTWISE)
        and row.op is not Op.WRAP
        and row.type.size == 1
        for row in trace.builder.rows
    )


def put_item(items: list[Any], index: Tracer, new: Any) -> None:
    """``items[index] = new`` with a traced index, in a list of numbers, of objects that can be
    chosen, or of tuples of these."""
    tuples = all(isinstance(x, tuple) and len(x) == len(new) for x in (new, *items))
    if tuples and items and known(index) is None:
        columns = [list(column) for column in zip(*items, strict=True)]
        for column, x in zip(columns, new, strict=True):
            put_item(column, index, x)
        rows = map(list, zip(*columns, strict=True))
        items[:] = [trees.with_items(x, row) for x, row in zip(items, rows, strict=True)]
        return
    lists = all(type(x) is list and len(x) == len(items[0]) for x in (*items, new))
    if (lists or all(map(can_be_chosen, (*items, new)))) and items and known(index) is None:
        is_it = np.zeros(len(items), dtype=bool, like=index)
        is_it[index] = True
        for k, old in enumerate(items):
            items[k] = either(is_it[k], partial(_itself, new), partial(_itself, old), "an item")
        return
    kinds = [slot_of(x) for x in (*items, new)]
    if not items or known(index) is not None or any(k is None or not k.scalar for k in kinds):
        items[index.__index__()] = new  # says why this cannot be
        return
    dtype = np.result_type(*promote(*items, new))
    stack = np.stack([astype(x, dtype) for x in items])
    stack[index] = new
    weak = all(map(is_weak, (*items, new)))
    found = [weakened(stack[k]) if weak else stack[k] for k in range(len(items))]
    items[:] = [one_of_classes(x, (old, new)) for x, old in zip(found, items, strict=True)]


def put_attribute(choice: Choice, name: str, new: Any, old: Callable[[Any], Any], put: Any) -> None:
    """``choice.name = new``: of the one that is meant, by ``put``; the others keep the ``old``."""
    missing = [one for one in choice.objects if one is None]
    if missing:
        note_raise(choice.where(lambda one: one is None))
    for number, one in zip(sorted(choice.options), choice.objects, strict=True):
        if one is not None:
            flag = lift(np.equal(choice.number, number))
            before = partial(_itself, old(one))
            put(one, name, either(flag, partial(_itself, new), before, "an attribute"))


def called_one(choice: Choice, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """A call of the one of several functions that is meant."""
    return call_one(choice, choice.objects, *args, **options)


def put_by(items: dict[Any, Any], choice: Choice, new: Any) -> None:
    """``items[choice] = new`` in a dict that has all keys that may be meant."""
    if not all(one in items for one in choice.objects):
        refuse()
    for number, one in zip(sorted(choice.options), choice.objects, strict=True):
        flag = lift(np.equal(choice.number, number))
        items[one] = either(flag, partial(_itself, new), partial(_itself, items[one]), "by a key")


def asked(choice: Choice, ask: Callable[[Any], Any]) -> Any:
    """What ``ask`` gives for the one of several objects that is meant."""
    found, missing = [], []
    for one in choice.objects:
        try:
            found.append(ask(one))
        except (LookupError, AttributeError):
            missing.append(one)
    if not found:
        return ask(missing[0])  # raises
    if missing:
        note_raise(choice.where(lambda one: any(one is x for x in missing)))
        choice = Choice(choice.number, choice.options - set(map(number_of, missing)))
    return of_several(choice, found)


def of_several(choice: Choice, values: list[Any]) -> Any:
    """The one of ``values`` that belongs to the object that is meant."""
    first = values[0]
    # equal containers are still several: what is put into one is in that one alone
    if all(x is first or (not can_differ(x) and same(first, x)) for x in values):
        return first
    if all(map(can_be_chosen, values)):
        return one_of(values, lambda numbers: choice.looked_up([lift(k) for k in numbers]))
    slots = [slot_of(x) for x in values]
    if all(slot is not None and slot.scalar for slot in slots):
        result = choice.looked_up([lift(x) for x in values])
        result = weakened(result) if all(map(is_weak, values)) else result
        return one_of_classes(result, values)
    if all(callable(x) and type(x) not in (OrNone, Choice) for x in values):
        return partial(call_one, choice, values)
    return done_by(choice, [partial(_itself, x) for x in values])


def _itself(x: Any) -> Any:
    return x


def call_one(choice: Choice, functions: list[Any], *args: Any, **options: Any) -> Any:
    """A call of one of several functions, one for each of the objects."""
    return done_by(choice, [partial(called, x, *args, **options) for x in functions])


def done_by(choice: Choice, thunks: list[Thunk]) -> Any:
    """What is done for the object that is meant, by the one of ``thunks`` that belongs to it."""
    (first, *others), (thunk, *rest) = choice.objects, thunks
    if not others:
        return thunk()
    left = Choice(choice.number, choice.options - {number_of(first)})
    return either(
        choice.where(lambda one: one is first),
        thunk,
        lambda: done_by(left, rest),
        ("one of several", len(thunks)),
    )


#: What is asked of words and of members of enumerations.
_OF_WORDS = (len, float, int, str, ord)


def of_one(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """A call of one of several functions; an item of a dict by a key that is traced; a member of an
    enumeration by its value. MISSING for any other call."""
    if type(callee) is Choice:
        return called_one(callee, args, options)
    if len(args) == 1 and isinstance(args[0], Tracer) and isinstance(callee, enum.EnumMeta):
        members: list[Any] = list(callee)
        flags = [np.equal(args[0], member.value) for member in members]
        note_raise(np.logical_not(np.any(np.stack(flags))))
        return one_of(members, lambda numbers: np.select(flags, [lift(k) for k in numbers]))
    if not args or type(args[0]) is not Choice:
        return MISSING
    if len(args) == 1 and callee in _OF_WORDS:
        return asked(args[0], callee)
    owner: Any = getattr(callee, "__self__", None)
    if isinstance(owner, dict) and callee.__name__ == "get":
        return asked(args[0], lambda known: owner.get(known, *args[1:]))
    return MISSING


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
        except (LookupError, UnboundLocalError) as error:
            if all(x.index is None for x in enclosing()):  # an error of the run, if it comes there
                note_raise()
                result, raises = definite(Flow.RAISE), True
            elif isinstance(error, UnboundLocalError):
                raise
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


def _ends(region: Region) -> dict[Key, Any]:
    return {(frame, name): frame.names.get(name, MISSING) for frame, name in region.changed}
