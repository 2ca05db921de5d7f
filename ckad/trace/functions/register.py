"""How a NumPy function gets its traced counterpart, and what all counterparts share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

from ckad.errors import ConcreteValueError, UnsupportedFunctionError
from ckad.place import at_place
from ckad.trace.apply import is_plain
from ckad.trace.tracer import FUNCTIONS, Tracer, holds_complex
from ckad.trace.ufuncs import store

Function = Callable[..., Any]


def implements(*functions: Any, contiguous: bool = False) -> Callable[[Function], Function]:
    """Decorator: what NumPy calls on tracers in place of ``functions``.

    ``contiguous`` says that NumPy's new arrays are C-contiguous whatever the operands' layout is.
    """

    def register(function: Function) -> Function:
        name = functions[0].__name__
        checked = _rejecting_unknown_options(name, function)
        marked = checked if contiguous else _marking_layout(checked)
        dispatched = or_complex(functions[0], marked)
        for numpy_function in functions:
            FUNCTIONS[numpy_function] = dispatched
        return dispatched

    return register


def or_complex(numpy_function: Any, function: Function) -> Function:
    """Calls that hold complex numbers, or ask for them, have a table of their own."""

    @wraps(function)
    def either(*args: Any, **options: Any) -> Any:
        if any(map(holds_complex, args)) or any(map(holds_complex, options.values())):
            from ckad.trace import complex_functions

            return complex_functions.call(numpy_function, args, options)
        return function(*args, **options)

    return either


def _rejecting_unknown_options(name: str, function: Function) -> Function:
    # NumPy has checked the names already, so one that is not ours is an option without a rule.
    parameters = inspect.signature(function).parameters.values()
    known = {p.name for p in parameters}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function

    @wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        unknown = options.keys() - known
        reject(bool(unknown), f"np.{name} with {min(unknown, default='')}=")
        return function(*args, **options)

    return checked


def _marking_layout(function: Function) -> Function:
    @wraps(function)
    def marking(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        operands = list(tracers((args, tuple(options.values()))))
        if not all(is_plain(x) for x in operands):
            own = {id(x.storage) for x in operands}
            for x in tracers(result):
                if id(x.storage) not in own and len(x.shape) > 1:
                    x.storage.plain = False
        return result

    return marking


def called(function: Function, *args: Any, **options: Any) -> Any:
    """What the user's ``function`` returns, its loops and branches read from its source."""
    from ckad.trace.source.calls import call

    return call(function, args, options)


def tracers(x: Any) -> Iterator[Tracer]:
    """All tracers in nested lists and tuples."""
    if isinstance(x, Tracer):
        yield x
    elif isinstance(x, (list, tuple)):
        for item in x:
            yield from tracers(item)


def reject(wrong: Any, call: str) -> None:
    """UnsupportedFunctionError naming ``call`` if ``wrong``."""
    if wrong:
        raise UnsupportedFunctionError(
            at_place(
                f"ckad has no rule for {call}. Leave the option out, or write it with the "
                "functions and options that docs/numpy.md lists."
            )
        )


def needs_numbers(call: str, remedy: str) -> Function:
    """A counterpart that only says why the result's shape or order cannot be recorded."""

    def refuse(*args: Any, **options: Any) -> Any:
        raise ConcreteValueError(
            at_place(
                f"the shape of {call} depends on numbers that are not known while the program "
                f"is recorded. {remedy}"
            )
        )

    return refuse


def finish(result: Tracer, out: Any) -> Tracer:
    """``result``, or ``out`` after ``result`` was written into it; their shapes must agree."""
    if out is None:
        return result
    if isinstance(out, Tracer) and out.shape != result.shape:
        raise ValueError(at_place(f"the result has shape {result.shape}, but out {out.shape}"))
    return store(out, result)


def given(option: Any) -> bool:
    """Whether an optional argument was passed."""
    return option is not None and option is not np._NoValue
