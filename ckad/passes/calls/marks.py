"""Routines that say how something is derived, gone when all is: marks, and names of rows."""

from __future__ import annotations

from ckad.passes.rewrite import rebuild
from ckad.passes.simplify import simplify
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Row, Tape


def unmarked(tape: Tape) -> Tape:
    """``tape`` as engines run it: a mark is its first operand, a name of rows is those rows."""
    return simplify(_without(tape)) if _has_marks(tape) else tape


def _has_marks(tape: Tape) -> bool:
    return any(map(_is_name, tape.rows)) or any(map(_has_marks, tape.bodies))


def _is_name(row: Row) -> bool:
    return row.op is Op.CALL and (routine_of(row).marks or routine_of(row).rows is not None)


def _without(tape: Tape) -> Tape:
    return rebuild(tape, _named, _without)


def _named(b: Builder, row: Row, env: list[int]) -> int | None:
    if not _is_name(row):
        return None
    operands, rows = [env[x] for x in row.operands], routine_of(row).rows
    return operands[0] if rows is None else rows(b, operands, row.attrs[1:])
