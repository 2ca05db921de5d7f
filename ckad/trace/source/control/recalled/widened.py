"""Integers that become floats from the first step on, as ``t = 0`` does by ``t += dt``.

Such a number is carried as a float from the start. Where that is recalled, not found, it has to
follow from what else a step computes with: floats come of floats, also where none was meant.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.row import Row
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type

_FLOAT = Type(DType.F64, ())
#: Floats of any numbers; floats if one operand is.
_ALWAYS, _IF_ONE = (Op.DIV,), (Op.ADD, Op.SUB, Op.MUL)


def are_floats(b: Builder, ends: Mapping[int, int]) -> bool:
    """Whether all ``ends`` (input: row at the end of a step) are floats if inputs were integers."""
    unsure = dict(ends)
    while unsure:
        known = _Rows(b.rows, b.bodies, b.converted, unsure)
        found = [x for x, end in unsure.items() if known.is_float(end)]
        if not found:
            return False
        for x in found:
            del unsure[x]
    return True


class _Rows:
    """Rows of which some may be integers in truth."""

    def __init__(
        self,
        rows: Sequence[Row],
        bodies: Sequence[Tape],
        converted: Container[int] | None,  # constants that may be; None where all may be
        unsure: Container[int],
    ) -> None:
        self.rows, self.bodies, self.converted, self.unsure = rows, bodies, converted, unsure
        self.reached = [False] * len(rows)  # whether a row depends on one of ``unsure``
        for k, row in enumerate(rows):
            self.reached[k] = k in unsure or any(self.reached[x] for x in row.operands)

    def is_float(self, k: int) -> bool:
        """Whether a row is a float, whatever those that are unsure are."""
        row = self.rows[k]
        if row.type != _FLOAT or k in self.unsure or row.op is Op.CONVERT:
            return False
        if row.op is Op.CONST:
            return self.converted is not None and k not in self.converted
        if row.op is Op.RESULT:
            return self._is_float_after(self.rows[row.operands[0]], row.attrs[0])
        if not self.reached[k] or row.op in _ALWAYS:
            return True
        return row.op in _IF_ONE and any(map(self.is_float, row.operands))

    def _is_float_after(self, row: Row, result: int) -> bool:
        """The same of a result of a branch, whose sides have to be floats both."""
        if row.op is not Op.COND:
            return not any(self.reached[x] for x in row.operands)
        operands = row.operands[1:]
        for body in (self.bodies[k] for k in row.attrs):
            inputs = dict(zip(body.inputs.tolist(), operands, strict=True))
            unsure = [
                x
                for x, at in inputs.items()
                if body.rows[x].type == _FLOAT and not self.is_float(at)
            ]
            if not _Rows(body.rows, body.bodies, None, unsure).is_float(
                body.outputs.tolist()[result]
            ):
                return False
        return True
