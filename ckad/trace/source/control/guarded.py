"""``try``: the path without an exception, and what Python itself raises while it is recorded.

``with``: managers of the user, of generators, and those that Python enters.
"""

from __future__ import annotations

import ast
import contextlib
import threading
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.errors import CkadError, ConcreteValueError
from ckad.place import at_place
from ckad.trace.source.actions import assign, evaluate, run_block
from ckad.trace.source.control.branches import run_on
from ckad.trace.source.control.flow import Flow
from ckad.trace.source.control.sequences.generators import around, generated_by
from ckad.trace.source.names import classes
from ckad.trace.source.names.frame import Frame, Region, ledger, region
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.skipped import Skipped

_NUMBERS = "{} raises it, where NumPy gives inf or nan. Test the number instead: if x > 0: ..."
#: Handlers whose exceptions may or may not be raised when the program runs, and why.
_DECIDED = {
    ZeroDivisionError: (
        {"ZeroDivisionError", "ArithmeticError"},
        _NUMBERS.format("a division of Python's numbers"),
    ),
    ValueError: ({"ValueError"}, _NUMBERS.format("a function of math")),
    NameError: (
        {"NameError", "UnboundLocalError", "AttributeError"},
        "they decide whether a name is bound. Bind it before, to None, and ask that.",
    ),
}


def try_statement(frame: Frame, node: ast.Try) -> Flow | None:
    try:
        flow = _guarded(frame, node)
    finally:
        last = run_block(frame, node.finalbody)
    return flow if last is None else last


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
    before = ledger().may_raise.copy()
    flow: Flow | None
    _open.guards.append((region(), frame, node))
    depth = len(_open.guards)
    try:
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
    for kind in ledger().may_raise - before:
        _check_certain(node, *_DECIDED[kind])
    if not node.orelse:
        return flow
    return run_on(flow, lambda: run_block(frame, node.orelse), ("else", node))


def _check_certain(node: ast.Try, names: set[str], why: str) -> None:
    """Whether a handler runs is not decided by numbers that only the run has."""
    for handler in node.handlers:
        for part in ast.walk(handler.type) if handler.type is not None else ():
            if isinstance(part, ast.Name) and part.id in names:
                raise ConcreteValueError(
                    at_place(f"whether {part.id} is raised here depends on traced numbers: {why}")
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
    generated = generated_by(manager)
    if generated is not None:
        return around(generated, lambda value: _entered(frame, node, items, value))
    if classes.method(manager, "__enter__") is None:
        _entering(manager)
        stack: contextlib.ExitStack[bool] = contextlib.ExitStack()
        with stack:
            return _entered(frame, node, items, stack.enter_context(manager))
        return None
    try:
        flow = _entered(frame, node, items, classes.invoke(manager, "__enter__"))
    except CkadError:
        raise
    except Exception as error:
        if not classes.invoke(manager, "__exit__", type(error), error, error.__traceback__):
            raise
        return None
    classes.invoke(manager, "__exit__", None, None, None)
    return flow


def _entering(manager: Any) -> None:
    """Note that Python enters a context, and leaves it."""
    known = (np.errstate, contextlib.nullcontext, contextlib.suppress, warnings.catch_warnings)
    if (watched := watch()) and not isinstance(manager, (*known, Skipped)):
        watched.give_up(f"with {type(manager).__qualname__}")


def _entered(
    frame: Frame, node: ast.With, items: Sequence[ast.withitem], value: Any
) -> Flow | None:
    target = items[0].optional_vars
    if target is not None:
        assign(frame, target, value)
    return _within(frame, node, items[1:])
