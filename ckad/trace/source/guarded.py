"""``try``: the path without an exception, and what Python itself raises while it is recorded."""

from __future__ import annotations

import ast

from ckad.errors import CkadError, ConcreteValueError
from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.tape.row import Row
from ckad.trace.memory.context import current
from ckad.trace.source.actions import evaluate, run_block
from ckad.trace.source.control.branches import run_on
from ckad.trace.source.control.flow import Flow
from ckad.trace.source.names.frame import Frame

_DIVIDES = {Op.DIV, Op.SAFEDIV, Op.FLOORDIV, Op.MOD, Op.POW}
_HAS_A_DOMAIN = {Op.SQRT, Op.LOG, Op.LOG1P, Op.LOG2, Op.LOG10, Op.ASIN, Op.ACOS, Op.ACOSH}
_OVERFLOWS = {Op.EXP, Op.EXPM1, Op.EXP2, Op.SINH, Op.COSH, Op.POW, Op.LGAMMA}
#: What Python's numbers raise where NumPy's give inf or nan: ops by the name of the exception.
_BY_NUMBERS = {
    "ZeroDivisionError": _DIVIDES,
    "ValueError": {*_HAS_A_DOMAIN, Op.ATANH, Op.LGAMMA},
    "OverflowError": _OVERFLOWS,
    "ArithmeticError": _DIVIDES | _OVERFLOWS,
}


def try_statement(frame: Frame, node: ast.Try) -> Flow | None:
    try:
        flow = _guarded(frame, node)
    finally:
        last = run_block(frame, node.finalbody)
    return flow if last is None else last


def _guarded(frame: Frame, node: ast.Try) -> Flow | None:
    builder = current().builder
    n_rows, n_bodies = len(builder.rows), len(builder.bodies)
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
                return run_block(frame, handler.body)
        raise
    inner = [row for body in builder.bodies[n_bodies:] for row in body.rows]
    _check_certain(node, [*builder.rows[n_rows:], *inner])
    if not node.orelse:
        return flow
    return run_on(flow, lambda: run_block(frame, node.orelse), ("else", node))


def _check_certain(node: ast.Try, rows: list[Row]) -> None:
    """Whether a handler runs is not decided by numbers that only the run has."""
    ops = {row.op for row in rows if not row.type.shape}
    for handler in node.handlers:
        for part in ast.walk(handler.type) if handler.type is not None else ():
            if isinstance(part, ast.Name) and ops & _BY_NUMBERS.get(part.id, set()):
                raise ConcreteValueError(
                    at_place(
                        f"whether {part.id} is raised here depends on traced numbers: Python's "
                        "numbers raise it, NumPy's give inf or nan. Test the numbers instead: "
                        "if x == 0: ..."
                    )
                )
