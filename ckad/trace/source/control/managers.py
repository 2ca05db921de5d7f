"""``with`` statements: managers of the user, of generators, and those that Python enters."""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.errors import CkadError
from ckad.trace.source.actions import assign, evaluate, run_block
from ckad.trace.source.control.flow import Flow
from ckad.trace.source.control.sequences.generators import around, generated_by
from ckad.trace.source.names import classes
from ckad.trace.source.names.frame import Frame
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.skipped import Skipped


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
    watched = watch()
    if watched is not None and not isinstance(manager, (*known, Skipped)):
        watched.give_up(f"with {type(manager).__qualname__}")


def _entered(
    frame: Frame, node: ast.With, items: Sequence[ast.withitem], value: Any
) -> Flow | None:
    target = items[0].optional_vars
    if target is not None:
        assign(frame, target, value)
    return _within(frame, node, items[1:])
