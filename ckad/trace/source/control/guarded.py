"""``try``: the path without an exception, and what Python itself raises while it is recorded."""

from __future__ import annotations

import ast

from ckad.errors import CkadError, ConcreteValueError
from ckad.place import at_place
from ckad.trace.source.actions import evaluate, run_block
from ckad.trace.source.control.branches import run_on
from ckad.trace.source.control.flow import Flow
from ckad.trace.source.names.frame import Frame, ledger

#: What Python's numbers and the functions of math raise where NumPy's give inf or nan.
_DECIDED = {
    ZeroDivisionError: ({"ZeroDivisionError", "ArithmeticError"}, "a division of Python's numbers"),
    ValueError: ({"ValueError"}, "a function of math"),
}


def try_statement(frame: Frame, node: ast.Try) -> Flow | None:
    try:
        flow = _guarded(frame, node)
    finally:
        last = run_block(frame, node.finalbody)
    return flow if last is None else last


def _guarded(frame: Frame, node: ast.Try) -> Flow | None:
    before = ledger().may_raise.copy()
    flow: Flow | None
    try:
        flow = run_block(frame, node.body)
    except CkadError:
        raise
    except Exception as error:
        for handler in node.handlers:
            kinds = Exception if handler.type is None else evaluate(frame, handler.type)
            if isinstance(error, kinds):
                if handler.name:
                    frame.bind(handler.name, error)
                handled: Flow | None = run_block(frame, handler.body)
                return handled
        raise
    for kind in ledger().may_raise - before:
        _check_certain(node, *_DECIDED[kind])
    if not node.orelse:
        return flow
    return run_on(flow, lambda: run_block(frame, node.orelse), ("else", node))


def _check_certain(node: ast.Try, names: set[str], what: str) -> None:
    """Whether a handler runs is not decided by numbers that only the run has."""
    for handler in node.handlers:
        for part in ast.walk(handler.type) if handler.type is not None else ():
            if isinstance(part, ast.Name) and part.id in names:
                raise ConcreteValueError(
                    at_place(
                        f"whether {part.id} is raised here depends on traced numbers: {what} "
                        "raises it, where NumPy gives inf or nan. Test the number instead: "
                        "if x > 0: ..."
                    )
                )
