"""Calls in functions that are run from source: the user's functions are followed, others mapped.

What libraries do with traced values stands in the table of ``dispatch``. In the body of a loop or
branch, which is recorded once, only calls are made that compute from their arguments alone.
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from ckad.errors import DtypeError
from ckad.trace import dispatch
from ckad.trace.arrays import made_whole
from ckad.trace.memory.context import current, mark_place
from ckad.trace.primitives.part.joins import is_sized
from ckad.trace.source import effects, libraries
from ckad.trace.source.actions import by_builtin, reduced, told_apart
from ckad.trace.source.choices import Choice, numbered
from ckad.trace.source.draws import calls as draws
from ckad.trace.source.libraries import compiles, is_hashable, is_in, is_library, python_function
from ckad.trace.source.library import lists, settled, sparse
from ckad.trace.source.library.allowed import check_callable
from ckad.trace.source.library.called import GETTERS, called, method, thawed
from ckad.trace.source.library.copies import copied
from ckad.trace.source.library.formulas import CLASSES, is_math, of_numbers
from ckad.trace.source.library.noted import note_library
from ckad.trace.source.library.often import is_noted_later, is_solver, solving
from ckad.trace.source.library.sorting import in_order, orders
from ckad.trace.source.memory import listed as in_buffers
from ckad.trace.source.memory import object_arrays
from ckad.trace.source.memory.appends import appender, check_probed
from ckad.trace.source.memory.asked.by_python import note_given, noting_changes
from ckad.trace.source.memory.contents import (
    is_in_buffers,
    new,
    read,
    read_deep,
    stack_of,
)
from ckad.trace.source.memory.twins import check_found
from ckad.trace.source.names import classes, instances
from ckad.trace.source.names.absence import as_told, blamed, given, given_deep
from ckad.trace.source.names.closures import Closure, call_from_source
from ckad.trace.source.names.frame import MISSING, ledger, made
from ckad.trace.source.names.generated import Filtered
from ckad.trace.source.names.kept import forget, kept
from ckad.trace.source.names.reader import definition_of
from ckad.trace.source.outside.calling import calls
from ckad.trace.source.outside.clock import CLOCKS, Moment
from ckad.trace.source.outside.judge import adopted, given_back, hand_over
from ckad.trace.source.outside.kinds import CONTAINERS, SEQUENCES, attributes, users
from ckad.trace.source.outside.python import KEPT, run_by_python
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.text import as_builtin, check_read, shown
from ckad.trace.source.values import (
    holds_tracer,
    is_weak,
    lifted,
    of_builtin,
    untranslated,
    weakened,
)
from ckad.trace.values.filled import is_by_elements, is_undecided, of_function
from ckad.trace.values.tracer import Tracer

#: What looks at the items of a container, but not into them.
_SHALLOW = {len, iter, zip, enumerate, reversed, list, tuple, dict, isinstance, type, id, hasattr}
#: What asks an array for its shape alone.
_OF_SHAPES = frozenset(
    (
        len,
        isinstance,
        type,
        id,
        np.shape,
        np.size,
        np.ndim,
        np.zeros_like,
        np.empty_like,
        np.ones_like,
    )
)
#: What takes the items of a list in buffers by their numbers.
_BY_NUMBER = (zip, enumerate, reversed)
#: What runs from source, beside functions and methods, where Python's functions call it.
_SEEN = (Closure, functools.partial, *GETTERS)
#: What may be asked of None, too.
_LOOKING = (isinstance, type, print, id, repr, str, callable)
#: What asks an object for none of its items, numbers and texts.
_OF_OBJECTS = frozenset(
    {getattr, hasattr, setattr, delattr, issubclass, super, vars}
    | {copy.copy, copy.deepcopy, *_LOOKING}
)
#: Python numbers come out of these if only such go in.
_WEAK_RESULTS = {abs, float, int, bool, round, min, max, sum, pow}


def call(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """``callee(*args, **options)``."""
    if not any(map(is_undecided, args)):
        return _call(callee, args, options)
    result = _call(callee, told_apart(callee, args), options)
    return of_function(callee, args, result) if is_by_elements(callee) else result


def _call(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    if type(callee) in CLASSES:
        found = of_numbers(callee, args, options)
        if found is not NotImplemented:
            return found
    kind = type(callee := given(callee))
    if kind is Closure:
        return callee(*args, **options)
    if kind is functools.partial:
        if type(callee.func) is FunctionType and callee.func in in_buffers.METHODS:
            note_given(*args)
            return callee(*args, **options)
        if watched := watch():
            watched.partial(callee)
        return call(callee.func, (*callee.args, *args), {**callee.keywords, **options})
    callee, args, options = thawed(sparse.replaced(callee, args, options), args, options)
    if kind is type or kind is BuiltinFunctionType:
        own = as_builtin(callee, args)
        if own is not MISSING:
            return call(str if callee is repr else callee, (own,), {})
        if (own := classes.by_builtin(callee, args)) is not MISSING:
            return own
    if isinstance(callee, type):
        new = classes.construct(callee, args, options)
        if new is not MISSING:
            return new
    if kind is KEPT:
        return kept(callee, args, options, call)
    if kind is MethodType and type(callee.__func__) is KEPT:
        return kept(callee.__func__, (callee.__self__, *args), options, call)
    function, owner = _python_function(callee)
    if type(function) is Closure:
        return function(*owner, *args, **options)
    if function is not None and is_followed(function):
        return call_from_source(function, (*owner, *args), options)
    watched = watch()
    if function is not None and watched is not None and not libraries.is_of_library(function):
        run_by_python(watched, function)
        for x in (*owner, *args, *options.values()):
            hand_over(watched, x)
    callee = callee if function is None or owner else function
    try:
        with noting_changes(callee, *args, *options.values()):
            return effects.shown_by(_call_library, callee, args, options)
    except (TypeError, DtypeError) as error:
        blamed(error, args)
        raise


def _python_function(callee: Any) -> tuple[Any, tuple[Any, ...]]:
    """The function that a call runs, and what goes before its arguments."""
    kind = type(callee)
    if kind is FunctionType:
        return callee, ()
    if kind is MethodType:
        inner = callee.__func__
        followed = type(inner) in (FunctionType, Closure)
        return (inner, (callee.__self__,)) if followed else (None, ())
    if kind is BuiltinFunctionType or isinstance(callee, (type, np.ufunc)):
        return None, ()
    if kind.__module__.startswith("numba."):
        if watched := watch():
            watched.holds(callee, "py_func")
        return python_function(callee), ()
    method = None if is_library(kind.__module__) else users(kind, "__call__")
    if type(method) not in (FunctionType, Closure):
        return None, ()
    if watched := watch():
        watched.object(callee)
        watched.on_class(kind, "__call__")
    return method, (callee,)


def is_followed(function: FunctionType) -> bool:
    """Whether a function is run from its source."""
    return not libraries.is_of_library(function) and definition_of(function) is not None


def _call_library(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    object_arrays.called(callee, args)
    if (left_out := effects.skipped(callee, args, options)) is not NotImplemented:
        return left_out
    args = [weakened(numbered(x)) if type(x) is Choice else made_whole(x) for x in args]
    owner = getattr(callee, "__self__", None)
    args = lists.taken_by(callee, args)
    if any(map(is_in_buffers, args)):
        found = lists.function(callee, args, options)
        if found is not NotImplemented:
            return found
        if _is_numpy(callee):
            args = lists.opened(args)
    args = list(map(as_told, args))
    if not isinstance(owner, CONTAINERS) and all(callee is not x for x in _LOOKING):
        args, options = given_deep(args), {k: given_deep(x) for k, x in options.items()}
    callee = sparse.method(method(callee, x := (*args, *options.values())), x)
    note_given(*args, asks=not is_in(callee, _OF_OBJECTS))
    if (longer := appender(callee, args)) is not None:
        return longer(owner, *args)
    if any(isinstance(x, Filtered) for x in args):
        return reduced(callee, args, options)
    if args and type(args[0]) is Closure and compiles(callee):
        return args[0]
    if (by := calls(callee)) or _is_numpy(callee):
        args = [_as_called(x, callee) if by or type(x) is MethodType else x for x in args]
        options = {
            k: _as_called(x, callee) if by or type(x) is MethodType else x
            for k, x in options.items()
        }
    return _call_noted(callee, owner, args, options)


def _call_noted(callee: Any, owner: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Call with arguments that are what it takes, and note what it reads, changes and gives."""
    if not is_noted_later(callee):
        note_library(callee, args, options)
    if is_in(callee, CLOCKS):
        return Moment(callee()) if watch() is not None else callee()
    if orders(callee, owner, args, options):
        return in_order(call, callee, owner, args, options)
    check_read(callee, args)
    _note_effects(callee, owner, args)
    if isinstance(getattr(callee, "__self__", callee), np.ufunc):
        args = lists.arrays(callee, args)
    given = (owner, *args, *options.values())
    _note_reads(callee, (owner, *args) if callee is dict else given)  # it hands its options on
    with solving(callee) if is_solver(callee) else nullcontext():
        result = _computed(callee, args, options)
    if isinstance(callee, type) and not is_library(callee.__module__):
        return _constructed(result, given)
    if type(result) is Tracer and _is_weak_call(callee, args, options):
        result = by_builtin(callee, args, weakened(result))
    if type(result) is Tracer and is_in(callee, _WEAK_RESULTS):
        return of_builtin(callee, args, result)
    if isinstance(result, (*CONTAINERS, tuple)):
        return new(result, given)
    if isinstance(result, Iterator):
        return made(result)
    if type(result) is str and not _hands_out(callee, owner):
        return shown(result, given)
    return lifted(result)


def _hands_out(callee: Any, owner: Any) -> bool:
    """Whether a call gives what is there, and makes no text of what it is given."""
    if type(callee) in (operator.itemgetter, operator.attrgetter):
        return True
    return isinstance(owner, CONTAINERS) and not callee.__name__.startswith("__")


def _note_effects(callee: Any, owner: Any, args: Sequence[Any]) -> None:
    """Note what a call changes or may raise beside its result."""
    check_found(callee, owner, args)
    if type(owner) in SEQUENCES and callee.__name__ in ("append", "appendleft", "insert"):
        check_probed(owner, args[-1])
    if type(owner) is KEPT and callee.__name__ == "cache_clear":
        forget(owner)


def _computed(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """By the counterpart of a function, by drawing later, a copy, or by the function itself."""
    if (own := settled.called(callee, args, options)) is not NotImplemented:
        return own
    counterpart = _counterpart(callee, args, options)
    if counterpart is not None:
        options.pop("like", None)
        mark_place(current())
        return counterpart(*args, **options)
    for other in (draws.call(callee, args, options), copied(callee, args)):
        if other is not NotImplemented:
            return other
    check_callable(callee, args, options)
    result = untranslated(callee, args, options)
    if watched := watch():
        adopted(watched, callee, result)
    return result


def _constructed(made_now: Any, given: Sequence[Any]) -> Any:
    """An object of the user's class that Python has made."""
    ledger().made[id(made_now)] = made_now
    for part in attributes(made_now).values():
        new(part, given)
    return instances.note(made(made_now))


def _as_called(x: Any, callee: Any) -> Any:
    """A function as one that ``callee`` can call: its counterpart, or what runs from its source."""
    known = callable(x) and is_hashable(x) and dispatch.knows(x)
    followed = callable(x) and (type(x) in _SEEN or _python_function(x)[0] is not None)
    if not (known or followed or is_in(x, _WEAK_RESULTS) or is_math(x)):
        return x

    def from_source(*given: Any, **named: Any) -> Any:
        return given_back(callee, call(x, given, named))

    vars(from_source)["__wrapped__"] = x  # its signature
    return from_source


def _is_numpy(callee: Any) -> bool:
    """Whether a function reads a list as an array."""
    module = getattr(callee, "__module__", None) or ""
    return isinstance(callee, np.ufunc) or module.partition(".")[0] in ("numpy", "scipy")


def _note_reads(callee: Any, given: Sequence[Any]) -> None:
    """Note which containers and arrays a function of a library looks into."""
    if np.ndarray in map(type, given) and not is_in(callee, _OF_SHAPES):
        for x in given:
            if type(x) is np.ndarray:
                current().note_known(x)
    if isinstance(given[0], CONTAINERS) or is_in(callee, _SHALLOW):
        for x in given:
            if stack_of(x) is None or not is_in(callee, _BY_NUMBER):
                read(x)
    else:
        read_deep(tuple(given))


def _is_weak_call(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> bool:
    to_whole = callee is round and len(args) == 1 and not options
    if to_whole or is_in(callee, (float, int, bool)) or is_math(callee):
        return True
    if not is_in(callee, _WEAK_RESULTS):
        return False
    items = args[0] if callee is sum and type(args[0]) in (list, tuple) else args
    return not options and all(is_weak(x) for x in items)


def _counterpart(
    callee: Any, args: Sequence[Any], options: dict[str, Any]
) -> Callable[..., Any] | None:
    """What is called in place of ``callee``; NumPy hands its ufuncs over itself."""
    traced = holds_tracer([*args, *options.values()])
    if (own := called(callee, args, options, traced)) is not None:
        return own
    if isinstance(callee, np.ufunc) or not is_hashable(callee):
        return None
    if is_sized(callee, args):
        return dispatch.cell(callee, dispatch.LENGTH)
    if not traced and not dispatch.is_always_called(callee):
        return None
    return dispatch.cell(callee, dispatch.kind_of_call(args, options))
