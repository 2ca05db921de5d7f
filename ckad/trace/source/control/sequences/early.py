"""What ends before all items of an iterator are taken: ``any`` and ``all``, a loop that is left.

Where it ends may be traced. What making an item does beside, Python does not do for those behind
it, and an iterator that the program still has is left there.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from itertools import islice
from types import GeneratorType
from typing import Any, cast

from ckad.errors import UnrecordableError
from ckad.trace import dispatch
from ckad.trace.memory.context import open_trace
from ckad.trace.memory.storage import Written
from ckad.trace.primitives.methods import Flat
from ckad.trace.primitives.scalars import DECISIONS
from ckad.trace.source.control import branches
from ckad.trace.source.control.checks import Stops
from ckad.trace.source.control.sequences.filtered import reduced
from ckad.trace.source.memory.aliases import is_shown
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.source.names.frame import open_region
from ckad.trace.source.names.generated import Driven, Each, Filtered, Lazy, UndecidedItem
from ckad.trace.source.values import truth

#: Items of an iterator that loops take at most.
MOST_LISTED = 100_000
#: What iterators hold others in.
_HOLDING = (tuple, type(gc.get_referents(itertools.tee(iter(()), 1)[0])[0]))
#: How many iterators may stand in each other: zip(map(...), iter(...)).
_DEEPEST = 4


def rest_of(iterator: Iterator[Any]) -> tuple[int, Callable[[], Iterator[Any]]]:
    """How many items are left, and what gives them, as often as it is asked."""
    if not is_read_later(iterator) and (one := _again(iterator)) is not None:
        return sum(1 for _ in one), lambda: _again(iterator) or iter(())
    left = _left_of(iterator)
    if isinstance(iterator, Each):
        return len(left), lambda: iterator.of(left)
    return len(left), lambda: iter(left)


#: What gives the items of lists that are there when their turn comes.
_OF_LISTS: tuple[Any, ...] = (type(iter(list[Any]())), enumerate, zip)


def _again(iterator: Iterator[Any]) -> Iterator[Any] | None:
    """An iterator over what is left for one over lists; None for any other."""
    if type(iterator) not in _OF_LISTS:
        return None
    make, given, *state = cast("tuple[Any, ...]", iterator.__reduce__())
    if type(iterator) is _OF_LISTS[0]:
        found = make(*given)
        if state:
            found.__setstate__(*state)
        return cast("Iterator[Any]", found)
    inner = given[:1] if make is enumerate else given
    copies = [_again(x) for x in inner]
    if any(x is None for x in copies):
        return None
    return cast("Iterator[Any]", make(*copies, *given[len(inner) :]))


def _left_of(iterator: Iterator[Any]) -> list[Any]:
    """The items that are left, or those that they are made from."""
    source = iterator.items if isinstance(iterator, Each) else iterator
    is_generator = isinstance(iterator, Lazy | GeneratorType)
    if is_generator or is_read_later(iterator):
        what = "a generator" if is_generator or isinstance(iterator, Each) else "an iterator"
        raise UnrecordableError.here(
            f"a loop over {what} ends early on a traced "
            "condition. Loop over a list of what it gives: list(...)."
        )
    left = list(islice(source, MOST_LISTED + 1))
    if len(left) > MOST_LISTED:
        raise UnrecordableError.here(
            f"a loop ends early on a traced condition, and has more than "
            f"{MOST_LISTED:,} steps of which only Python knows the items. Loop over a "
            "range or an array, or write while True: and count."
        )
    return left


def is_read_later(iterator: Iterator[Any], depth: int = _DEEPEST) -> bool:
    """Whether the program has an iterator by name, or one that it takes its items from."""
    if is_shown(iterator):
        return True
    inner = gc.get_referents(iterator)
    held = (y for x in inner if isinstance(x, _HOLDING) for y in gc.get_referents(x))
    sources = [x for x in (*inner, *held) if isinstance(x, Iterator)]
    return depth > 0 and any(is_read_later(x, depth - 1) for x in sources)


# --- any and all ---------------------------------------------------------------------------------


def _deciding(original: Any) -> Callable[[Any], Any]:
    of_list = DECISIONS[original]
    end = original is any  # the verdict that ends it

    def decided(items: Any) -> Any:
        if isinstance(items, Lazy):
            items = _kept(items)
        if type(items) is Flat:
            items = items.all_items()
        if isinstance(items, Filtered):
            return reduced(original, (items,), {})
        if isinstance(items, Driven):
            return call_from_source(_any if end else _all, (items,), {})
        if not isinstance(items, Each):
            return of_list(items)
        for item in items:
            verdict = truth(item)
            if not isinstance(verdict, bool):
                return _rest(items, verdict)
            if verdict is end:
                return end
        return not end

    def _rest(items: Each, first: Any) -> Any:
        """All at once where nobody can tell, else one after the other."""
        if items.is_quiet and not is_read_later(items):
            return of_list([first, *items])
        left = _left_of(items)
        if _is_quiet(lambda: list(items.of(left))):
            return of_list([first, *items.of(left)])
        return _in_order(first, left, items.value)

    def _in_order(verdict: Any, left: list[Any], value: Callable[[Any], Any]) -> Any:
        def rest() -> Any:
            for k, x in enumerate(left):
                found = truth(value(x))
                if not isinstance(found, bool):
                    return _in_order(found, left[k + 1 :], value)
                if found is end:
                    return end
            return not end

        place = original, len(left)
        if end:
            return branches.either(verdict, lambda: True, rest, place)
        return branches.either(verdict, rest, lambda: False, place)

    return decided


def _any(items: Any) -> Any:
    found = False
    for item in items:
        if item:
            found = True
            break
    return found


def _all(items: Any) -> Any:
    found = True
    for item in items:
        if not item:
            found = False
            break
    return found


def _kept(items: Lazy) -> Any:
    """The items that a condition keeps."""
    if not items.is_undecided():
        each = items.plain() if not is_read_later(items) else iter(items)
        if is_read_later(each):
            return each
        try:
            return each.of(list(each.items))
        except UndecidedItem:
            pass
    if not _is_quiet(items.filtered):
        raise UnrecordableError.here(
            "any() or all() of items that a traced condition keeps, and making one does more "
            "than give a value, which Python does for none behind the one that decides. Write "
            "a for loop with break."
        )
    return items.used()


def _is_quiet(run: Callable[[], Any]) -> bool:
    """Whether it only computes, so that nobody can tell whether it is done."""
    with open_trace(adopts=True) as trace, open_region() as region:
        try:
            run()
        except (Written, Stops, LookupError, ArithmeticError, ValueError, TypeError):
            return False
        return not trace.adopted and not region.has_effects


for _builtin in (any, all):
    _decided = _deciding(_builtin)
    for _kind in dispatch.ANY:
        dispatch.put(_builtin, _decided, _kind)
    dispatch.always(_builtin)
