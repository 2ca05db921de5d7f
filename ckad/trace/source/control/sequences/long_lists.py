"""Long lists, which loops and comprehensions run over as if they were arrays."""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import UnrecordableError
from ckad.tape.types import DType
from ckad.trace import dispatch
from ckad.trace.memory.context import current
from ckad.trace.source.choices import can_be_chosen
from ckad.trace.source.control.sequences.iteration import Items, SinglePass, number, of_known
from ckad.trace.source.control.sequences.iteration import items_of as of_numbers
from ckad.trace.source.control.sequences.picking import item as picked_item
from ckad.trace.source.control.sequences.picking import leaf_of
from ckad.trace.source.control.sequences.several import lists_behind
from ckad.trace.source.memory.contents import is_unclear, stack_of
from ckad.trace.source.values import slot_of
from ckad.trace.values.tracer import Tracer

#: Lists of so many numbers, and of so many arrays, are run over as arrays are.
LONG, MANY = 32, 8
#: Counting lists of so many are run over as a range is.
FEW = 5
#: Steps over objects that are fewer rows together are written out, and those over more objects.
MUCH, MOST_OBJECTS = 8_000, 256
#: Iterators of what Python holds all items of.
_OF_LISTS = tuple(map(type, (iter([]), iter(()), iter(range(0)), reversed([]))))
_OF_ANY = type(iter(np.empty(0)))  # of arrays, and of any class with items
_NUMBERS = (float, int, np.float64, np.int64, Tracer)
_FLOATS = (float, np.float64, Tracer)


def items_of(x: Any, loop: ast.For, *, is_deep: bool = False) -> Items | None:
    """The items of a long list that a loop runs over, as those of an array; None for any other.
    Of a loop with deep loops in it, a list of some numbers is long.

    The loop is written out in another recording where it is not known what steps change by that.
    """
    listed = _taken(x)
    if listed is None or (isinstance(x, Iterator) and not _is_taken_whole(loop)):
        return None
    if (counted := _counted(listed)) is not None:
        return of_numbers(counted)
    found = listed_numbers(x)
    if found is not None or loop in current().written_out:
        return found
    is_long = is_deep or len(listed) >= LONG
    if not are_arrays(listed, loop.target) and not (is_long and _are_numbers(listed, loop.target)):
        return None
    current().filling.append(loop)
    return _stacked(listed)


def _is_taken_whole(loop: ast.For) -> bool:
    """Whether it does not matter how many items a loop takes from an iterator: it takes all, or
    nobody else has the iterator, which is made where the loop is written."""
    made = loop.iter
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Name):
        return hasattr(builtins, made.func.id)
    return not any(isinstance(part, (ast.Break, ast.Return)) for part in ast.walk(loop))


def _counted(x: Sequence[Any]) -> range | None:
    """The range whose numbers these are; None if they are of none."""
    if len(x) < FEW or any(type(one) is not int for one in x) or x[0] == x[1]:
        return None
    step = x[1] - x[0]
    counted = range(x[0], x[-1] + (1 if step > 0 else -1), step)
    return counted if tuple(counted) == tuple(x) else None


def of_objects(rest: Any, loop: ast.For, n_rows: int) -> Items | None:
    """The items that an iterator over objects of one class still has, alone or in tuples beside
    numbers, as those at a number; None for any other, and where steps of ``n_rows`` rows are
    little."""
    if n_rows <= MUCH // MOST_OBJECTS or loop in current().written_out:
        return None
    listed = _taken(rest)
    if listed is None or not MUCH // n_rows < len(listed) <= MOST_OBJECTS:
        return None
    if len({trees.flatten(one, _is_part)[1] for one in listed}) > 1:
        return None
    columns = [*zip(*map(_parts, listed), strict=True)]
    if not any(map(_are_objects, columns)):
        return None
    leaves = [_at(column) for column in columns]
    if None in leaves:
        return None
    current().filling.append(loop)
    return _of_leaves(listed, leaves)


def _is_part(x: Any) -> bool:
    return type(x) is not tuple


def _are_objects(column: Sequence[Any]) -> bool:
    kinds = {*map(type, column)}
    return len(kinds) == 1 and kinds != {str} and all(map(can_be_chosen, column))


def _at(column: Sequence[Any]) -> Callable[[Any], Any] | None:
    """What is at a place in a column, by the place."""
    if _are_objects(column):
        return partial(picked_item, list(column))
    if all(type(x) is int and x - column[0] == k for k, x in enumerate(column)):
        return lambda k: number(column[0] + k)
    if _is_of_floats(column) or len({_kind(x) for x in column if _is_array(x)}) == 1:
        return leaf_of(list(column))
    return None


def listed_numbers(x: Any) -> Items | None:
    """The items of a long list or tuple of numbers, as those of an array; None for any other."""
    if type(x) not in (list, tuple) or stack_of(x) is not None or len(x) < LONG:
        return None
    if not all(type(one) in _NUMBERS for one in x) or len(kinds := set(map(slot_of, x))) > 1:
        return None
    (kind,) = kinds
    return None if kind is None or kind.type.shape else of_known(x)


def are_arrays(x: Sequence[Any], target: ast.expr) -> bool:
    """Whether ``x`` are many arrays of one shape, or tuples of numbers and such arrays, of which
    ``target`` names the parts: nobody can ask which of the tuples it is."""
    if len(x) < MANY or not _fits(x[0], target) or not any(map(_is_array, _parts(x[0]))):
        return False
    if not all(_is_array(y) or type(y) in _NUMBERS for one in x for y in _parts(one)):
        return False
    if len({trees.flatten(one)[1] for one in x}) > 1:
        return False
    columns = zip(*map(_parts, x), strict=True)
    return all(len({_kind(y) for y in column}) == 1 for column in columns)


def _are_numbers(x: Sequence[Any], target: ast.expr) -> bool:
    """Whether ``x`` are two or more floats, or tuples of numbers, of which some are traced: floats,
    and integers of which traced values say which they are."""
    if len(x) < 2 or not _fits(x[0], target) or len({trees.flatten(one)[1] for one in x}) > 1:
        return False
    columns = [*zip(*map(_parts, x), strict=True)]
    if not any(type(y) is Tracer for column in columns for y in column):
        return False
    return all(_is_of_floats(column) or _is_of_traced(column) for column in columns)


def _is_of_floats(column: Sequence[Any]) -> bool:
    return all(type(y) in _FLOATS and _kind(y) == ((), DType.F64) for y in column)


def _is_of_traced(column: Sequence[Any]) -> bool:
    return all(type(y) is Tracer and _kind(y) == ((), DType.I64) for y in column)


def _kind(x: Any) -> Any:
    kind = slot_of(x)
    return kind and (kind.type.shape, kind.type.dtype)


def _fits(x: Any, target: ast.expr) -> bool:
    if type(x) is not tuple:
        return not isinstance(target, (ast.Tuple, ast.List)) or _is_array(x)
    if not isinstance(target, (ast.Tuple, ast.List)) or len(x) != len(target.elts):
        return False
    return all(map(_fits, x, target.elts))


def _stacked(x: Sequence[Any]) -> Items:
    """The items, each of whose leaves is read from all items' at once."""
    leaves = [leaf_of(list(column)) for column in zip(*map(_parts, x), strict=True)]
    return _of_leaves(x, leaves)


def _of_leaves(x: Sequence[Any], leaves: Sequence[Callable[[Any], Any] | None]) -> Items:
    """The items, whose parts are what ``leaves`` give for their number."""
    tree = trees.flatten(x[0], _is_part)[1]

    def item(k: Any) -> Any:
        if not isinstance(k, Tracer):
            return x[k]
        return trees.unflatten(tree, [leaf(k) for leaf in leaves if leaf is not None])

    return Items(len(x), item)


def _parts(x: Any) -> list[Any]:
    return [y for part in x for y in _parts(part)] if type(x) is tuple else [x]


def _is_array(x: Any) -> bool:
    return type(x) in (Tracer, np.ndarray) and x.ndim > 0 and x.dtype == np.float64


def _taken(x: Any) -> Sequence[Any] | None:
    """What a list, or ``zip`` and ``enumerate`` of lists, will give; None for what may run code."""
    if type(x) in (list, tuple):
        return None if stack_of(x) is not None else tuple(x)
    again = _copied(x)
    return None if again is None else tuple(again)


def _copied(x: Any) -> Any:
    """An iterator over lists and numbers that is where ``x`` is; None for any other."""
    if type(x) in _OF_LISTS or (type(x) is _OF_ANY and type(x.__reduce__()[1][0]) is np.ndarray):
        return copy.copy(x)
    if type(x) not in (zip, enumerate):
        return None
    make, given, *state = x.__reduce__()
    iterators = [part for part in given if isinstance(part, Iterator)]
    parts = [_copied(part) if isinstance(part, Iterator) else part for part in given]
    if any(part is None for part in parts) or len({*map(id, iterators)}) < len(iterators):
        return None
    found = make(*parts)
    for at in state:
        found.__setstate__(at)
    return found


def _product(*iterables: Any, repeat: Any = 1) -> Any:
    """``itertools.product`` of many known numbers, by their places; Python's of any other."""
    if type(repeat) is not int or not all(map(_is_of_known, iterables)):
        return itertools.product(*iterables, repeat=repeat)
    pools = [x if type(x) is range else tuple(x) for x in iterables] * max(repeat, 0)
    length = math.prod(map(len, pools))
    if length < LONG or len(pools) < 2:
        return itertools.product(*pools)

    def item(k: Any) -> tuple[Any, ...]:
        found: list[Any] = []
        for pool in reversed(pools[1:]):
            found.append(_item_of(pool, number(k % len(pool))))
            k = number(k // len(pool))
        return _item_of(pools[0], k), *reversed(found)

    return SinglePass([], length, item)


def _is_of_known(x: Any) -> bool:
    if type(x) not in (list, tuple):
        return type(x) is range
    return stack_of(x) is None and not is_unclear(x) and {*map(type, x)} in ({int}, {float})


def _item_of(pool: Any, k: Any) -> Any:
    if type(pool) is range and isinstance(k, Tracer):
        return number(pool.start + k * pool.step)
    return picked_item(pool, k) if isinstance(k, Tracer) else pool[k]


dispatch.put(itertools.product, _product, (*dispatch.ANY, dispatch.SHORT))
dispatch.always(itertools.product)


class Unchanged:
    """Lists that a loop runs over by their numbers as they were: its steps may not change them."""

    def __init__(self, items: Any) -> None:
        self._lists = lists_behind(items)
        self._before = [tuple(x) for x in self._lists]

    def check(self) -> None:
        for items, before in zip(self._lists, self._before, strict=True):
            now = () if stack_of(items) or is_unclear(items) else tuple(items)
            if len(now) != len(before) or any(map(operator.is_not, now, before)):
                raise UnrecordableError.here(
                    "a loop runs over a list that its steps change, which is not recorded"
                )
