"""Common subexpressions: equal rows become one."""

from __future__ import annotations

from ckad.passes.rewrite import rebuild
from ckad.tape.builder import Builder
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.tape import Row, Tape


def cse(tape: Tape) -> Tape:
    """``tape`` with every value computed once (control rows are left alone)."""
    seen: dict[tuple[object, ...], int] = {}

    def rewrite(b: Builder, k: int, row: Row, env: dict[int, int]) -> int | None:
        shared = OPS[row.op].group is not Group.LEAF or row.op is Op.RESULT
        if not shared or OPS[row.op].group is Group.CONTROL:
            return None
        key = (row.op, tuple(env[x] for x in row.operands), row.attrs, row.type)
        if key not in seen:
            seen[key] = b.copy_row(tape, k, env)
        return seen[key]

    return rebuild(tape, rewrite, cse)
