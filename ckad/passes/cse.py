"""Common subexpressions: equal rows become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping

from ckad.passes.rewrite import as_it_is, rebuild
from ckad.tape.builder import Builder
from ckad.tape.ops import BY_CODE, OPS, Group, Op
from ckad.tape.tape import Tape
from ckad.tape.types import Type

#: Control rows are left alone; inputs differ, and a builder pools constants already.
_SHARED = {
    op for op in BY_CODE if OPS[op].group not in (Group.LEAF, Group.CONTROL) or op is Op.RESULT
}
#: The same to the bit with their operands exchanged.
_SYMMETRIC = {Op.ADD, Op.MUL, Op.EQ, Op.NE, Op.AND, Op.OR, Op.XOR}


def cse(tape: Tape) -> Tape:
    """``tape`` with every value computed once (control rows are left alone)."""
    return rebuild(tape, as_it_is, cse, Sharing())


class Sharing(Builder):
    """A builder that appends no row twice."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[object, ...], int] = {}

    def append(self, op: Op, operands: tuple[int, ...], attrs: tuple[int, ...], type: Type) -> int:
        if op in _SHARED:
            named = operands
            if op in _SYMMETRIC and operands[0] > operands[1]:
                named = operands[1], operands[0]
            n = len(self.rows)
            found = self._seen.setdefault((op, named, attrs, type), n)
            if found < n:
                return found
        return _append(self, op, operands, attrs, type)

    def copy_rows(
        self,
        tape: Tape,
        wanted: Iterable[int],
        env: MutableMapping[int, int] | list[int],
        change: Callable[[Tape], Tape] = lambda body: body,
    ) -> None:
        for k in wanted:
            env[k] = self.copy_row(tape, k, env, change)


_append = Builder.append
