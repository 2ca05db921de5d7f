"""What is noted of a call for who uses the recording again."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from functools import partial
from types import FunctionType
from typing import Any

from ckad.errors import UnrecordableError
from ckad.place import user_place
from ckad.trace.source import effects
from ckad.trace.source.libraries import is_of_library
from ckad.trace.source.outside.clock import CLOCKS, TimeText, shows_time
from ckad.trace.source.outside.guard import IMMUTABLE
from ckad.trace.source.outside.judge import SIMPLE, hand_over, is_simple, judge
from ckad.trace.source.outside.kinds import DISPLAYS, is_console
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.values import holds_tracer
from ckad.trace.values.tracer import Tracer


def note_library(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> None:
    """Note what the call of a library reads from outside, and what it shows."""
    watched = watch()
    if watched is None:
        return
    user_function = type(callee) is FunctionType and not is_of_library(callee)
    if type(callee) in SIMPLE and is_simple(callee):
        given = (*args, *options.values()) if options else args
        for x in given:
            if type(x) is not Tracer:
                hand_over(watched, x)
        return
    name = effects.name_of(callee, args)
    if any(callee is x for x in CLOCKS):
        return
    writes = is_console(getattr(callee, "__self__", None))
    if callee is print or writes:
        if any(map(shows_time, args)):
            watched.guard.once.setdefault(name or "print", user_place())
        elif writes:
            watched.shown(callee, args, options)
        else:
            watched.printed(args, options)
        for x in args:
            if type(x) is not TimeText:  # the text of an object decides nothing here
                hand_over(watched, x, keeps=watched.is_own(x))
    elif name is not None and (name.partition(".")[0] in DISPLAYS or name in effects.ONCE):
        if _is_question(callee, args, options) and (asked := _Question(callee, args, options)).ends:
            watched.guard.answers.append((asked, asked()))
            return
        watched.guard.once.setdefault(name, user_place())
    elif not user_function:  # those were looked into
        judge(watched, callee, args, options)


def _is_question(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> bool:
    """Whether a call of what shows things looks like one that asks, as ``axes.get_xlim()``."""
    given = (*args, *options.values())
    asks = getattr(callee, "__name__", "").startswith(("get", "is", "has"))
    return asks and all(type(x) in IMMUTABLE for x in given)


class _Question:
    """A call that may give a number, or a tuple of numbers."""

    def __init__(self, callee: Any, args: Sequence[Any], options: dict[str, Any]) -> None:
        self.ask = partial(callee, *args, **options)

    def __call__(self) -> Any:
        try:
            return self.ask()
        except Exception as error:
            return type(error)

    @property
    def ends(self) -> bool:
        """Whether it gives them."""
        found = self()
        parts = found if type(found) is tuple else (found,)
        return found is not None and all(type(x) in IMMUTABLE for x in parts)


def by_library(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What a library gives where nothing that it reads is traced; None where something is.

    What a function reads from outside is seen when the library calls it and gets no number. Some
    of them ask for it in ways that end in errors of their own.
    """
    if holds_tracer([*args, *options.values()]):
        return None
    told = io.StringIO()
    try:
        with redirect_stderr(told):
            found = function(*args, **options)
    except Exception:  # SciPy's C code prints a ConcreteValueError and turns it into its own
        return None
    if told.tell():
        sys.stderr.write(told.getvalue())
    note_library(function, args, options)
    return found


def refusing(solver: Callable[..., Any], remedy: str) -> Callable[..., Any]:
    """What stands for a solver that is not recorded: its own result where nothing is traced."""

    def instead(*args: Any, **options: Any) -> Any:
        found = by_library(solver, *args, **options)
        if found is None:
            name = f"{'.'.join(solver.__module__.split('.')[:2])}.{solver.__name__}"
            raise UnrecordableError.here(f"{name} is not recorded. {remedy}")
        return found

    return instead
