"""Marks, which say how what is before them is derived: gone when all is derived."""

from __future__ import annotations

from ckad.passes.rewrite import rebuild
from ckad.passes.simplify import simplify
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Row, Tape


def unmarked(tape: Tape) -> Tape:
    """``tape`` as engines run it: a mark is its first operand."""
    return simplify(_without(tape)) if _has_marks(tape) else tape


def _has_marks(tape: Tape) -> bool:
    own = any(row.op is Op.CALL and routine_of(row).marks for row in tape.rows)
    return own or any(map(_has_marks, tape.bodies))


def _without(tape: Tape) -> Tape:
    return rebuild(tape, _first_operand, _without)


def _first_operand(b: Builder, row: Row, env: list[int]) -> int | None:
    return env[row.operands[0]] if row.op is Op.CALL and routine_of(row).marks else None
