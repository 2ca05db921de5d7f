"""``try``, ``with``, ``assert`` and ``raise``.

Of ``try`` the path without an exception is recorded, and those that Python itself raises while it
is recorded are met by its handlers. Managers are the user's, those of generators, or Python's own.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import threading
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ckad.errors import CkadError, ConcreteValueError, RaisedError, UnrecordableError
from ckad.trace.memory.context import current
from ckad.trace.source.actions import assign, evaluate, run_block, tested
from ckad.trace.source.choices import Choice
from ckad.trace.source.control.branches import branch, ended, run_on
from ckad.trace.source.control.checks import Stops, may_be_caught, n_rows, note_checks, note_raise
from ckad.trace.source.control.chosen import asked
from ckad.trace.source.control.flow import Flow
from ckad.trace.source.control.sequences.generators import around, generated_by
from ckad.trace.source.names import classes
from ckad.trace.source.names.closures import Closure
from ckad.trace.source.names.frame import Frame, Ledger, Region, ledger, region
from ckad.trace.source.names.reader import definition_of
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.skipped import Skipped
from ckad.trace.values.tracer import Tracer


def try_statement(frame: Frame, node: ast.Try) -> Flow | None:
    flow: Flow | None
    last: Flow | None
    try:
        flow = _guarded(frame, node)
    except BaseException as error:
        last = run_block(frame, node.finalbody)
        of_program = isinstance(error, Exception) and not isinstance(error, CkadError)
        if last is None or last.always(Flow.RAISE) or not of_program:
            raise
        if last.goes(Flow.NEXT) is not False:
            raise UnrecordableError.here(
                "whether an exception goes on past this 'finally' depends on a traced value. "
                "Return, break and continue after it."
            ) from None
        return last
    last = run_block(frame, node.finalbody)
    goes = True if last is None else last.goes(Flow.NEXT)
    if last is None or goes is True:
        return flow
    if goes is False:
        return last
    return branch(goes, lambda: flow, partial(ended, last, Flow.NEXT), ("finally", node))


class _Open(threading.local):
    """The bodies of ``try`` statements that are being run, the innermost last."""

    def __init__(self) -> None:
        self.guards: list[tuple[Region | None, Frame, ast.Try]] = []


_open = _Open()


def is_guarded() -> bool:
    """Whether an exception that is raised now may be met by a handler, whatever the numbers are:
    no loop or branch that is being recorded stands between."""
    return bool(_open.guards) and _open.guards[-1][0] is region()


def is_caught(error: Any) -> bool:
    """The same where it is known which one is raised."""
    for inner, frame, node in reversed(_open.guards):
        if inner is not region():
            return False
        if _handler(frame, node, error) is not None:
            return True
    return False


def _handler(frame: Frame, node: ast.Try, error: Any) -> ast.ExceptHandler | None:
    for handler in node.handlers:
        kinds = Exception if handler.type is None else evaluate(frame, handler.type)
        if isinstance(error, kinds):
            return handler
    return None


def _guarded(frame: Frame, node: ast.Try) -> Flow | None:
    flow: Flow | None
    _open.guards.append((region(), frame, node))
    depth = len(_open.guards)
    try:
        with _catching(*(_caught(frame, handler.type) for handler in node.handlers)):
            flow = run_block(frame, node.body)
    except CkadError:
        raise
    except Exception as error:
        del _open.guards[depth - 1 :]
        handler = _handler(frame, node, error)
        if handler is None:
            raise
        if handler.name:
            frame.bind(handler.name, error)
        handled: Flow | None = run_block(frame, handler.body)
        return handled
    finally:
        del _open.guards[depth - 1 :]
    if not node.orelse:
        return flow
    return run_on(flow, lambda: run_block(frame, node.orelse), ("else", node))


def _caught(frame: Frame, kinds: ast.expr | None) -> Any:
    """What a handler catches, as far as that is known before anything is raised."""
    try:
        found = Exception if kinds is None else evaluate(frame, kinds)
        issubclass(Exception, found)
    except Exception:
        return Exception
    return found


@contextlib.contextmanager
def _catching(*kinds: Any) -> Iterator[None]:
    """What Python's numbers would raise in here stops the program, if it is one of ``kinds``."""
    opened = ledger()
    before = opened.caught
    opened.caught = (*before, *kinds)
    current().handlers.extend(kinds)
    _check_floating()
    first = n_rows()
    try:
        yield
        note_checks(first)
    finally:
        opened.caught = before


def _check_floating() -> None:
    """NumPy's errors are not raised by numbers that only the run has."""
    if may_be_caught(FloatingPointError) and "raise" in np.geterr().values():
        raise ConcreteValueError.here(
            "whether a FloatingPointError is raised and caught here depends on traced numbers. "
            "Leave np.errstate or np.seterr out and test the numbers: np.isfinite(x)."
        )


# --- with ---------------------------------------------------------------------------------------


def with_statement(frame: Frame, node: ast.With) -> Flow | None:
    return _within(frame, node, node.items)


def _within(frame: Frame, node: ast.With, items: Sequence[ast.withitem]) -> Flow | None:
    """Run the body of a ``with`` statement inside of what is left of its context managers."""
    if not items:
        flow: Flow | None = run_block(frame, node.body)
        return flow
    manager = evaluate(frame, items[0].context_expr)
    generated = None if _is_of_texts(manager) else generated_by(manager)
    if generated is not None:
        return around(generated, lambda value: _entered(frame, node, items, value))
    if type(manager) is not Choice and classes.method(manager, "__enter__") is None:
        _entering(manager)
        stack: contextlib.ExitStack[bool] = contextlib.ExitStack()
        with stack:
            value = stack.enter_context(manager)
            with _catching(*_suppressed(manager)):
                return _entered(frame, node, items, value)
        return None
    try:
        value = _told(manager, "__enter__")
        with _catching(*_suppressed(manager)):
            flow = _entered(frame, node, items, value)
    except CkadError:
        raise
    except Exception as error:
        if not _told(manager, "__exit__", type(error), error, error.__traceback__):
            raise
        return None
    _told(manager, "__exit__", None, None, None)
    return flow


def _told(manager: Any, name: str, *args: Any) -> Any:
    """What a context manager answers, which may be one of several."""
    if type(manager) is not Choice:
        return classes.invoke(manager, name, *args)
    for one in manager.objects:
        if classes.method(one, name) is None:
            raise UnrecordableError.here(
                f"which context manager is entered depends on a traced value, and {name} of "
                f"{type(one).__name__} is not run from source. Enter each under a condition."
            )
    return asked(manager, lambda known: classes.invoke(known, name, *args))


def _suppressed(manager: Any) -> Sequence[Any]:
    """The exceptions that may end at a context manager."""
    if isinstance(manager, contextlib.suppress):
        named: Sequence[Any] = vars(manager)["_exceptions"]
        return named
    if type(manager) is Choice:
        return [Exception]
    ends = classes.method(manager, "__exit__")
    definition = None
    if ends is not None:
        definition = ends.definition if isinstance(ends, Closure) else definition_of(ends)
    parts = [] if definition is None else ast.walk(definition.node)
    answers = [ast.unparse(x.value) for x in parts if isinstance(x, ast.Return) and x.value]
    return [] if {"None", "False"}.issuperset(answers) else [Exception]


def _entering(manager: Any) -> None:
    """Note that Python enters a context, and leaves it."""
    known = (np.errstate, contextlib.nullcontext, contextlib.suppress, warnings.catch_warnings)
    is_known = isinstance(manager, (*known, Skipped)) or _is_of_texts(manager)
    watched = watch()
    if watched and not (is_known or (isinstance(manager, io.IOBase) and watched.is_own(manager))):
        watched.give_up(f"with {type(manager).__qualname__}")


def _is_of_texts(manager: Any) -> bool:
    """Whether it is one of ``np.printoptions``, which decide how arrays are shown in its block."""
    is_generated = isinstance(manager, contextlib._GeneratorContextManager)
    return is_generated and manager.func is inspect.unwrap(np.printoptions)


def _entered(
    frame: Frame, node: ast.With, items: Sequence[ast.withitem], value: Any
) -> Flow | None:
    target = items[0].optional_vars
    if target is not None:
        assign(frame, target, value)
    return _within(frame, node, items[1:])


# --- errors that the program raises --------------------------------------------------------------


def assert_statement(frame: Frame, node: ast.Assert) -> None:
    verdict = tested(frame, node.test)
    if isinstance(verdict, Tracer):
        note_raise(np.logical_not(verdict))
    elif not verdict:
        is_certain = region() is None or is_guarded()
        told = [evaluate(frame, node.msg)] if node.msg and is_certain else []
        _throw(AssertionError(*told))


def raise_statement(frame: Frame, node: ast.Raise) -> None:
    if node.exc is None:
        raise
    is_certain = region() is None or is_guarded()
    error: Any = evaluate(frame, node.exc) if is_certain else None
    error = error() if isinstance(error, type) else error
    if node.cause is not None and is_certain:
        cause = evaluate(frame, node.cause)
        error.__cause__ = cause() if isinstance(cause, type) else cause
    _throw(error)


def _throw(error: Any) -> NoReturn:
    """Raise an error if a handler may meet it, or nothing is recorded; else the program stops."""
    if is_caught(error):
        raise error
    if region() is not None:
        note_raise()
        raise Stops
    if isinstance(ledger().names[Ledger.CHECKS], Tracer):  # another one may come before
        raise RaisedError.here("the program raises an error here, or before it comes here.")
    raise error
