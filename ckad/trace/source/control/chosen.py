"""What is done with one of several objects, or at one of several places, that a number says.

`choices` says what a name may be. Here each of them is asked, written into or called, and the
number selects among what that gives.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from ckad import trees
from ckad.trace.arrays import called
from ckad.trace.source.choices import (
    Choice,
    can_be_chosen,
    is_word,
    number_of,
    one_of,
    refuse,
)
from ckad.trace.source.control.branches import Thunk, either, is_quiet
from ckad.trace.source.control.checks import note_raise
from ckad.trace.source.library.often import calls_functions
from ckad.trace.source.memory.contents import (
    bodies_around,
    contents,
    is_unclear,
    is_unhoused,
    length_unknown,
    stack_of,
)
from ckad.trace.source.memory.growing import Filled
from ckad.trace.source.memory.objects import attribute
from ckad.trace.source.memory.rows.kinds import kind_of_numbers
from ckad.trace.source.memory.sharing import picked_memory
from ckad.trace.source.memory.twins import can_differ, is_copy
from ckad.trace.source.names.absence import OrNone
from ckad.trace.source.names.frame import MISSING
from ckad.trace.source.outside.equal import same
from ckad.trace.source.outside.guard import ABSENT
from ckad.trace.source.outside.kinds import CONTAINERS, is_computed, is_namespace, users
from ckad.trace.source.values import (
    Slot,
    is_weak,
    one_of_classes,
    slot_of,
    truth,
    weakened,
)
from ckad.trace.values.apply import astype, promote
from ckad.trace.values.filled import is_filled
from ckad.trace.values.tracer import Tracer, known, lift

#: A list of so many numbers is kept in a buffer where it is put into at a traced place.
_LONG = 32
#: Of arrays of so many numbers one is read as a row of all.
_FEW = 512


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


def house_long(items: list[Any], index: Tracer, new: Any) -> None:
    """Have a long list of numbers from outside of the body kept in a buffer: what is read and put
    at traced places is one row then, and not one for each item."""
    if len(items) < _LONG or known(index) is not None or not can_be_filled(items):
        return
    kind = kind_of_numbers([*items, new])
    if kind is not None:
        raise Filled(items, length_unknown(contents(items)), kind)


def can_be_filled(items: list[Any]) -> bool:
    """Whether a list was made before a loop whose steps are recorded now, and may be in buffers."""
    around = bodies_around(items)
    is_loop = around and (around[-1].takes_appends or around[-1].ends_unknown)
    return bool(is_loop) and not (is_unclear(items) or is_unhoused(items) or is_copy(items))


def put_number(choice: Choice, index: int, new: Any, put: Callable[..., None]) -> bool:
    """``choice[index] = new`` of one of several lists, by ``put``, where all that is there and what
    comes is numbers. Whether it is so."""
    before = [one[index] for one in choice.objects if -len(one) <= index < len(one)]
    return len(before) == len(choice.objects) and _put_numbers(choice, index, new, before, put)


def _put_numbers(
    choice: Choice, place: Any, new: Any, before: Sequence[Any], put: Callable[..., None]
) -> bool:
    """Put ``new`` at a place of the one that is meant, and what was there ``before`` at that of the
    others, if all are numbers. Whether they are."""
    slots = [slot_of(x) for x in (*before, new)]
    if any(slot is None or not slot.scalar for slot in slots):
        return False
    for number, one, old in zip(sorted(choice.options), choice.objects, before, strict=True):
        put(one, place, one_of_two(np.equal(choice.number, number), new, old))
    return True


def one_of_two(flag: Any, x: Any, y: Any) -> Any:
    """The number ``x`` where ``flag`` is true, else ``y``."""
    found = np.where(flag, x, y)[()]
    return one_of_classes(weakened(found) if is_weak(x) and is_weak(y) else found, (y, x))


def put_attribute(choice: Choice, name: str, new: Any, old: Callable[[Any], Any], put: Any) -> None:
    """``choice.name = new``: of the one that is meant, by ``put``; the others keep the ``old``."""
    missing = [one for one in choice.objects if one is None]
    if missing:
        note_raise(choice.where(lambda one: one is None))
        choice = Choice(choice.number, choice.options - {number_of(None)})
    if any(is_computed(type(one), name, put=True) for one in choice.objects):
        done_by(choice, [partial(put, one, name, new) for one in choice.objects])
        return
    found = [_or_missing(old, one) for one in choice.objects]
    if _put_numbers(choice, name, new, found, put):
        return
    for number, one, before in zip(sorted(choice.options), choice.objects, found, strict=True):
        flag = lift(np.equal(choice.number, number))
        if before is MISSING:  # the one that is meant gets it
            either(flag, partial(put, one, name, new), partial(_itself, None), "an attribute")
            continue
        put(
            one, name, either(flag, partial(_itself, new), partial(_itself, before), "an attribute")
        )


def _or_missing(old: Callable[[Any], Any], one: Any) -> Any:
    try:
        return old(one)
    except AttributeError:
        return MISSING


def called_one(choice: Choice, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """A call of the one of several functions that is meant; the program stops where it is none."""
    others = [one for one in choice.objects if not callable(one)]
    if 0 < len(others) < len(choice.objects):
        note_raise(choice.where(lambda one: any(one is x for x in others)))
        choice = Choice(choice.number, choice.options - set(map(number_of, others)))
    return call_one(choice, choice.objects, *args, **options)


def _is_chosen_function(x: Any) -> bool:
    """Whether this is one of several functions, or a list that holds such a one."""
    if type(x) in (list, tuple):
        return any(map(_is_chosen_function, x))
    return type(x) is Choice and all(map(callable, x.objects))


def _as_function(x: Any) -> Any:
    """One of several functions as a function, with the attributes of the one that is meant."""
    if not _is_chosen_function(x):
        return x
    if type(x) in (list, tuple):
        return trees.with_items(x, list(map(_as_function, x)))

    def one_of_several(*args: Any, **options: Any) -> Any:
        return called_one(x, args, options)

    for name in {name for one in x.objects for name in getattr(one, "__dict__", ())}:
        vars(one_of_several)[name] = asked(x, partial(attribute, name=name))
    return one_of_several


def put_by(items: dict[Any, Any], choice: Choice, new: Any) -> None:
    """``items[choice] = new`` in a dict that has all keys that may be meant."""
    if not all(one in items for one in choice.objects):
        refuse()
    for number, one in zip(sorted(choice.options), choice.objects, strict=True):
        flag = lift(np.equal(choice.number, number))
        items[one] = either(flag, partial(_itself, new), partial(_itself, items[one]), "by a key")


def asked(choice: Choice, ask: Callable[[Any], Any], name: str = "") -> Any:
    """What ``ask`` gives for the one of several objects that is meant; an attribute's ``name``."""
    own = any(_answers_itself(one, name) for one in choice.objects)
    if own and not is_quiet(partial(_ask_all, choice, ask)):  # it happens to one of them alone
        return done_by(choice, [partial(ask, one) for one in choice.objects])
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


def _answers_itself(one: Any, name: str) -> bool:
    """Whether a function of the user's may be called for what is asked of an object."""
    if is_word(one) or isinstance(one, (*CONTAINERS, FunctionType)):
        return False
    return not name or is_computed(type(one), name)


def _ask_all(choice: Choice, ask: Callable[[Any], Any]) -> None:
    for one in choice.objects:
        with suppress(LookupError, AttributeError):
            ask(one)


def truth_of(choice: Choice) -> Any:
    """Whether the one of several objects that is meant is true, as its class says, if that does."""
    asks = any(
        users(type(one), name) is not ABSENT
        for one in choice.objects
        for name in ("__bool__", "__len__")
    )
    if not asks:
        return choice.where(bool)
    return done_by(choice, [partial(truth, one) for one in choice.objects])


def of_several(choice: Choice, values: list[Any]) -> Any:
    """The one of ``values`` that belongs to the object that is meant."""
    first = values[0]
    # equal containers are still several: what is put into one is in that one alone
    if all(x is first or (not can_differ(x) and same(first, x)) for x in values):
        return first
    if all(map(can_be_chosen, values)) or _differ_in_length(values):
        return one_of(values, lambda numbers: choice.looked_up([lift(k) for k in numbers]))
    slots = [slot_of(x) for x in values]
    if all(slot is not None and slot.scalar for slot in slots):
        result = choice.looked_up([lift(x) for x in values])
        result = weakened(result) if all(map(is_weak, values)) else result
        return one_of_classes(result, values)
    functions = [callable(x) and type(x) not in (OrNone, Choice) for x in values]
    if all(functions):
        return partial(call_one, choice, values)
    if all(is_one or slot for is_one, slot in zip(functions, slots, strict=True)) and any(
        functions
    ):
        return one_of(values, lambda numbers: choice.looked_up([lift(k) for k in numbers]))
    if _are_small(values, slots):  # one row of all is a shorter program than a branch for each
        stack: Any = np.stack([lift(x) for x in values])
        picked_memory(stack, values)
        return stack[choice.looked_up([lift(k) for k in range(len(values))])]
    return done_by(choice, [partial(_itself, x) for x in values])


def _are_small(values: Sequence[Any], slots: Sequence[Slot | None]) -> bool:
    """Whether these are arrays of one kind, all together no more than some hundreds of numbers."""
    kinds = {None if slot is None else slot.type for slot in slots}
    plain = all(type(x) is Tracer and not is_filled(x) for x in values)
    return plain and len(kinds) == 1 and sum(x.size for x in values) <= _FEW


def _differ_in_length(values: Sequence[Any]) -> bool:
    """Whether these are lists of known items, not all as long."""
    plain = all(type(x) is list and stack_of(x) is None and not is_unclear(x) for x in values)
    return plain and len({len(x) for x in values}) > 1


def _itself(x: Any) -> Any:
    return x


def call_one(choice: Choice, functions: list[Any], *args: Any, **options: Any) -> Any:
    """A call of one of several functions, one for each of the objects."""
    return done_by(choice, [partial(called, x, *args, **options) for x in functions])


def done_by(choice: Choice, thunks: list[Thunk]) -> Any:
    """What is done for the object that is meant, by the one of ``thunks`` that belongs to it."""
    if len(thunks) == 1:
        return thunks[0]()
    numbers, half = sorted(choice.options), len(thunks) // 2
    low, high = (Choice(choice.number, frozenset(x)) for x in (numbers[:half], numbers[half:]))
    return either(
        lift(np.less(choice.number, numbers[half])),
        lambda: done_by(low, thunks[:half]),
        lambda: done_by(high, thunks[half:]),
        ("one of several", numbers[0], len(thunks)),
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
    if calls_functions(callee) and any(map(_is_chosen_function, (*args, *options.values()))):
        named = {name: _as_function(x) for name, x in options.items()}
        return called(callee, *map(_as_function, args), **named)
    if not args or type(args[0]) is not Choice:
        return MISSING
    if len(args) == 1 and callee in _OF_WORDS:
        return asked(args[0], lambda known: called(callee, known))
    if callee is callable or callee is isinstance:
        return asked(args[0], lambda known: called(callee, known, *args[1:]))
    owner: Any = getattr(callee, "__self__", None)
    if isinstance(owner, dict) and callee.__name__ == "get":
        return asked(args[0], lambda known: owner.get(known, *args[1:]))
    return MISSING


def refuse_held(x: Any) -> None:
    """Refuse a container that holds what may be one of several objects: Python does not know
    which."""
    x = vars(x) if is_namespace(x) else x
    if isinstance(x, (tuple, *CONTAINERS)):
        for item in x.values() if isinstance(x, dict) else x:
            if type(item) is Choice:
                refuse()
            refuse_held(item)
