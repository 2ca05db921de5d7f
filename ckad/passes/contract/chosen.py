"""Masks under which alone sums are looked at: all that reads them chooses under these.

``c[i, i:] = x[:, i] @ x[:, i:]`` is for all i a product of which one triangle is chosen.
"""

from __future__ import annotations

from collections.abc import Callable

from ckad.passes.liveness import readers_of
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: Ops that give, with their derivatives, something finite where a sum that nobody looks at is zero.
_TAME = (Op.NEG, Op.ADD, Op.SUB, Op.MUL, Op.EXP, Op.SIN, Op.COS, Op.TANH)


def chosen_by(tape: Tape, is_sum: Callable[[Row], bool]) -> dict[int, frozenset[int]]:
    """For sums the rows of the masks that all of their readers choose under, if there are any."""
    readers, outputs = readers_of(tape.rows), set(tape.outputs.tolist())

    def masks(k: int) -> frozenset[int]:
        """What all readers of row k have in common; none where one of them looks at it whole."""
        if k in outputs or not readers[k]:
            return frozenset()
        found = [of_reader(k, reader) for reader in readers[k]]
        return found[0].intersection(*found[1:])

    def of_reader(k: int, reader: int) -> frozenset[int]:
        op, operands, *_ = tape.rows[reader]
        if op in _TAME or (op is Op.RESHAPE and _is_of_units(tape, k, reader)):
            return masks(reader)
        is_choice = op is Op.SELECT and operands[1] == k and k not in (operands[0], operands[2])
        return frozenset(operands[:1]) if is_choice else frozenset()

    found = {k: masks(k) for k, row in enumerate(tape.rows) if is_sum(row)}
    return {k: x for k, x in found.items() if x}


def _is_of_units(tape: Tape, x: int, y: int) -> bool:
    """Whether two rows differ in axes of length one alone."""
    long = [[n for n in tape.rows[k].type.shape if n != 1] for k in (x, y)]
    return long[0] == long[1]
