"""Functions of lists and deques whose items are rows of buffers."""

from __future__ import annotations

import builtins
import functools
import itertools
import math
import statistics
from collections import deque
from collections.abc import Callable, Iterator, Sequence, ValuesView
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from ckad.trace import dispatch
from ckad.trace.primitives.methods import Flat
from ckad.trace.source.actions import listed
from ckad.trace.source.libraries import is_hashable, is_in
from ckad.trace.source.memory import keyed
from ckad.trace.source.memory.appends import seen
from ckad.trace.source.memory.asked import by_python
from ckad.trace.source.memory.asked.by_python import iterated
from ckad.trace.source.memory.contents import contents, length_unknown, read, rows_of, stack_of
from ckad.trace.source.memory.listed import array, copied, length, of_values, stack_in
from ckad.trace.source.names import classes
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.source.names.generated import Driven, Each, Filtered, Lazy
from ckad.trace.source.names.reader import definition_of
from ckad.trace.source.names.region import check_iterated
from ckad.trace.source.outside.kinds import SEQUENCES
from ckad.trace.source.values import holds_tracer, weakened


def columns(owner: Any) -> Any:
    """``zip(*xs)`` of tuples: what stands at each of their places, as a list."""
    tree = stack_in(owner).layout.kind.tree
    if not (isinstance(tree.type, type) and issubclass(tree.type, (tuple, list))):
        raise length_unknown(contents(owner))
    return call_from_source(_columns, (owner, tree.num_children), {})


def _columns(rows: Any, n: int) -> Any:
    return [[row[k] for row in rows] for k in range(n)]


def _sum(owner: Any, start: Any = 0) -> Any:
    total: Any = np.sum(stack_in(owner).array(), axis=0)
    slot = stack_in(owner).layout.kind.slots[0]
    return np.add(weakened(total) if slot.weak else total, start)


def _extremum(name: str) -> Callable[..., Any]:
    find = getattr(np, f"arg{name}")

    def best(owner: Any) -> Any:
        found = stack_in(owner).array()
        chosen = found[find(found)]
        return weakened(chosen) if stack_in(owner).layout.kind.slots[0].weak else chosen

    return best


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    builtins.len: length,
    builtins.list: lambda owner: copied(owner),
    builtins.sum: _sum,
    builtins.max: _extremum("max"),
    builtins.min: _extremum("min"),
}
_OF_NUMBERS = (builtins.sum, builtins.max, builtins.min)


def function(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """``callee(xs, ...)`` of a list whose items are rows of buffers; NotImplemented if unknown."""
    for x in args:
        if rows_of(x) is not None and callee is not builtins.len:
            read(x)  # a plain dict again
    if args and rows_of(args[0]) is not None:
        return keyed.length(*args)
    if not args or stack_of(args[0]) is None:
        return NotImplemented
    own = _FUNCTIONS.get(callee) if isinstance(callee, type) or callable(callee) else None
    if own is None or options.keys() - {"start"}:
        return NotImplemented
    if callee in _OF_NUMBERS:
        args = [of_values(args[0]), *args[1:]]
    stack = stack_in(args[0])
    tree = stack.layout.kind.tree
    if callee in _OF_NUMBERS and not stack.layout.kind.is_of_numbers:
        return NotImplemented
    if callee in _OF_NUMBERS and (tree.num_nodes > 1 or len(args) > 1 + (callee is sum)):
        return NotImplemented
    is_empty = isinstance(stack.count, int) and not stack.count
    if callee in _OF_NUMBERS[1:] and (stack.layout.kind.slots[0].type.shape or is_empty):
        return NotImplemented
    return own(*args, **options)


def opened(args: Sequence[Any]) -> list[Any]:
    """Arguments of a function of NumPy: lists whose items are rows of buffers as arrays."""
    found = []
    for x in args:
        as_array = array(of_values(x)) if stack_of(x) is not None else None
        found.append(x if as_array is None else as_array)
    return found


def without_deques(callee: Any, args: list[Any]) -> list[Any]:
    """NumPy reads a deque as a list, in which traced values are looked for."""
    if not any(type(x) is deque and stack_of(x) is None for x in args):
        return args
    if not str(getattr(callee, "__module__", "")).startswith("numpy"):
        return args
    return [list(seen(x)) if type(x) is deque and stack_of(x) is None else x for x in args]


def arrays(callee: Any, args: Sequence[Any]) -> Sequence[Any]:
    """The operands of a ufunc; it does not look for traced values in lists."""
    if callee.__name__ == "at":  # its second argument is an index
        return args
    listed = [isinstance(x, (list, tuple)) and holds_tracer(x) for x in args]
    array = partial(dispatch.call, np.asarray)
    return [array((x,), {}) if has else x for x, has in zip(args, listed, strict=True)]


#: What reads all that a generator gives at once.
_CONSUMING = {
    *(min, max, sum, sorted, list, tuple, set, dict, deque, math.fsum, math.prod),
    *(np.fromiter, functools.reduce, *map(vars(statistics).get, statistics.__all__)),
}
#: Those that take a list whose items are rows of buffers.
_OF_ROWS = (min, max, sum, list)
_FIRST, _SECOND, _ALL, _OTHERS = slice(1), slice(1, 2), slice(None), slice(1, None)
#: What runs over the items of what it is given, and which of its arguments that are.
_RUNNING: dict[Any, slice] = {
    **dict.fromkeys((list, tuple, set, frozenset, sum, sorted, any, all, iter, enumerate), _FIRST),
    **dict.fromkeys((deque, math.fsum, math.prod), _FIRST),
    **dict.fromkeys((itertools.accumulate, itertools.islice, itertools.combinations), _FIRST),
    **dict.fromkeys((itertools.cycle, itertools.pairwise, itertools.permutations), _FIRST),
    **dict.fromkeys((itertools.groupby, itertools.chain.from_iterable), _FIRST),
    **dict.fromkeys((zip, itertools.chain, itertools.product, itertools.zip_longest), _ALL),
    **dict.fromkeys((filter, functools.reduce, itertools.takewhile, itertools.dropwhile), _SECOND),
    map: _OTHERS,
}
#: Those that ask for the length as well, and methods of lists that do, and of others that do not.
_SIZED = (list, tuple, sorted)
_EXTENDING = {"extend": True, "extendleft": False}


def taken_by(callee: Any, args: Sequence[Any]) -> Sequence[Any]:
    """Arguments of a function that runs over some of them: what methods of the user's give for
    those, and lists of what generators give."""
    at, asks_length = None, is_in(callee, _SIZED)
    if callee is min or callee is max:
        at = _FIRST if len(args) == 1 else None
    elif is_hashable(callee):
        at = _RUNNING.get(callee)
    if type(getattr(callee, "__self__", None)) in SEQUENCES and callee.__name__ in _EXTENDING:
        args = [by_python.all_of(x, _EXTENDING[callee.__name__]) for x in args]
    if at is not None:
        takes = callee is enumerate or is_in(callee, _CONSUMING)
        chosen = range(len(args))[at]
        args = [_given_by(x, asks_length, takes) if k in chosen else x for k, x in enumerate(args)]
    if is_in(callee, _CONSUMING):
        args = [_all_of(x, apart=not is_in(callee, _OF_ROWS)) for x in args]
    return args


def _given_by(x: Any, asks_length: bool, takes_all: bool) -> Any:
    """What a method of the user's gives; a generator runs by Python for who takes single items."""
    method = classes.method(x, "__iter__")
    definition = definition_of(method) if type(method) is FunctionType else None
    if not takes_all and definition is not None and definition.yields:
        return x
    return iterated(x, asks_length)


def _all_of(x: Any, apart: bool) -> Any:
    """What a generator gives, as a list; ``apart`` for who takes its items one by one."""
    if isinstance(x, (Lazy, Flat)):
        return x.all_items()
    if isinstance(x, Filtered):
        return x
    if isinstance(x, Driven):
        return list(x) if apart else listed(x)
    is_pythons = isinstance(x, Iterator) and type(x).__module__ in ("builtins", "itertools")
    if not (is_pythons or isinstance(x, (Each, ValuesView))):
        return x
    check_iterated(x)
    return list(x)
