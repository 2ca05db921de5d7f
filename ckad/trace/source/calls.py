"""Calls in functions that are run from source: the user's functions are followed, others mapped.

A function of the user is run from its source too. What NumPy, ``math`` and Python's builtins do
with traced values stands in the tables of ``functions``. In the body of a loop or branch, which is
recorded once for all its steps, only calls are made that compute from their arguments alone.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from types import (
    BuiltinFunctionType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from ckad.trace.context import current, mark_place
from ckad.trace.extent_joins import SIZED, is_sized
from ckad.trace.external import external
from ckad.trace.functions.creation import CREATIONS
from ckad.trace.functions.grids import GRIDS
from ckad.trace.functions.scalars import BUILTINS, CONSTRUCTORS, MATH
from ckad.trace.parts import counterpart, part_in
from ckad.trace.source import classes
from ckad.trace.source.appends import append
from ckad.trace.source.closures import Closure, call_from_source
from ckad.trace.source.frame import MISSING, check_iterated, ledger, made
from ckad.trace.source.introspection import BUILTINS as BUILTINS_OF_NAMES
from ckad.trace.source.iteration import ITERATORS
from ckad.trace.source.libraries import is_library, python_function
from ckad.trace.source.lookup import is_followed, is_users, own
from ckad.trace.source.repeatable import CONTAINERS, check_callable, check_methods
from ckad.trace.source.text import shown
from ckad.trace.source.values import holds_tracer, is_weak, lifted, weakened
from ckad.trace.tracer import FUNCTIONS, Tracer

#: What reads all that a generator gives at once.
_CONSUMING = {min, max, sum, any, all, sorted, list, tuple, math.fsum, math.prod}
#: Python numbers come out of these if only such go in.
_WEAK_RESULTS = {abs, float, int, bool, round, min, max, sum, pow, *MATH}


def call(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """``callee(*args, **options)``."""
    kind = type(callee)
    if kind is Closure:
        return callee(*args, **options)
    if kind is functools.partial:
        return call(callee.func, (*callee.args, *args), {**callee.keywords, **options})
    if kind is MethodType and type(callee.__func__) is Closure:
        return callee.__func__(callee.__self__, *args, **options)
    done = _by_rule(callee, args, options)
    if done is not MISSING:
        return done
    function, owner = _python_function(callee)
    if function is not None and is_followed(function):
        return call_from_source(function, (*owner, *args), options)
    if type(function) is Closure:
        return function(*owner, *args, **options)
    return _call_library(callee if function is None or owner else function, args, options)


def _by_rule(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """A call that stands for one of Python's own rules; MISSING for any other."""
    kind = type(callee)
    if isinstance(callee, type):
        return classes.construct(callee, args, options)
    if kind is BuiltinFunctionType:
        if callee in BUILTINS_OF_NAMES:
            return BUILTINS_OF_NAMES[callee](*args, **options)
        if callee in _SPECIAL and len(args) and is_users(args[0]):
            rest = args[1:] if callee is not format else args[1:] or ("",)
            return classes.invoke(args[0], _SPECIAL[callee], *rest)
        if callee is object.__new__ and args and not is_library(args[0].__module__):
            new = object.__new__(args[0])
            ledger().made[id(new)] = made(new)
            return new
    elif kind is MethodWrapperType:
        owner, name = callee.__self__, callee.__name__
        if callee.__objclass__ in (object, type) and name in classes.RULES:
            return classes.RULES[name](owner, *args)
        if name == "__call__":
            made_so = isinstance(owner, type) and classes.construct_by_rule(owner, args, options)
            return call(owner, args, options) if made_so is False else made_so
    elif kind is WrapperDescriptorType and callee.__objclass__ in (object, type) and args:
        rule = classes.RULES.get(callee.__name__)
        return MISSING if rule is None else rule(*args)
    return MISSING


#: Builtins that call a method of their argument.
_SPECIAL: dict[Any, str] = {
    getattr(builtins, name): f"__{name}__"
    for name in "len abs round iter next repr hash format".split()
}


def _python_function(callee: Any) -> tuple[Any, tuple[Any, ...]]:
    """The function that a call runs, and what goes before its arguments."""
    kind = type(callee)
    if kind is FunctionType:
        return callee, ()
    if kind is MethodType:
        inner = callee.__func__
        return (inner, (callee.__self__,)) if type(inner) is FunctionType else (None, ())
    if kind is BuiltinFunctionType or isinstance(callee, (type, np.ufunc)):
        return None, ()
    if kind.__module__.startswith("numba."):
        return python_function(callee), ()
    if kind is type(_sample):
        return callee.__wrapped__, ()
    method = own(kind, "__call__")
    return (method, (callee,)) if type(method) in (FunctionType, Closure) else (None, ())


@functools.lru_cache
def _sample() -> None: ...


def _call_library(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    for x in args:
        check_iterated(x)
    if _is_in(callee, _CONSUMING):
        args = [list(x) if type(x) is GeneratorType else x for x in args]
    if type(getattr(callee, "__self__", None)) is list and callee.__name__ == "append":
        return append(callee.__self__, *args)
    counterpart = _counterpart(callee, args, options)
    if counterpart is not None:
        check_methods(*args, *options.values())
        options.pop("like", None)
        mark_place(current())
        result = counterpart(*args, **options)
    else:
        check_callable(callee, args)
        result = callee(*args, **options)
        if isinstance(callee, type) and not is_library(callee.__module__):
            ledger().made[id(result)] = result
            return made(result)
    if type(result) is Tracer and _is_weak_call(callee, args, options):
        return weakened(result)
    if isinstance(result, (*CONTAINERS, Iterator)):
        return made(result)
    if type(result) is str:
        return shown(result, (*args, *options.values(), getattr(callee, "__self__", None)))
    return lifted(result)


def _is_in(callee: Any, functions: Collection[Any]) -> bool:
    try:
        return callee in functions
    except TypeError:  # not hashable
        return False


def _is_weak_call(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> bool:
    try:
        if callee not in _WEAK_RESULTS:
            return False
    except TypeError:
        return False
    if callee in (float, int, bool) or callee in MATH:
        return True
    return not options and all(is_weak(x) for x in args)


def _counterpart(
    callee: Any, args: Sequence[Any], options: dict[str, Any]
) -> Callable[..., Any] | None:
    try:
        part = part_in((*args, *options.values()))
        if part is not None:
            return counterpart(callee, part) or ITERATORS.get(callee)
        if is_sized(callee, args):
            return SIZED[callee]
        if callee in ITERATORS:
            return ITERATORS[callee]
        if callee in CREATIONS:
            return CREATIONS[callee]
        if not (holds_tracer(list(args)) or holds_tracer(options)):
            return None
        for table in (BUILTINS, MATH, CONSTRUCTORS):
            if callee in table:
                return table[callee]
        if callee in FUNCTIONS and not isinstance(callee, np.ufunc):
            return FUNCTIONS[callee]
    except TypeError:  # not hashable
        return None
    return external(callee)


def writable(owner: Any, index: Any) -> Any:
    """``np.mgrid[index]`` and its like; None for any other owner."""
    try:
        grid = GRIDS.get(owner) if type(owner).__module__.startswith("numpy") else None
    except TypeError:
        return None
    return None if grid is None else grid(index)
