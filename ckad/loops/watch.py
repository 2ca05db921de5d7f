"""check_finite=True: a program runs as it is, and again row by row if something was not finite.

What is watched costs nothing in the program: the exceptions that the processor notes
(`ckad.engines.flags`), and the results, which are looked at once. They say that there was a NaN or
an infinity, also one that vanished again; the vm, which looks at every row, then says where.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ckad.engines import flags
from ckad.errors import NonFiniteError
from ckad.rules import RULES
from ckad.tape.ops import Op
from ckad.tape.tape import Tape

Run = Callable[[], list[np.ndarray]]


class Watch:
    """The watch over the program of a tape. ``row_by_row`` runs it with a look at every row."""

    def __init__(
        self, tape: Tape, row_by_row: Callable[[Sequence[np.ndarray]], list[np.ndarray]]
    ) -> None:
        self.row_by_row = row_by_row
        #: What depends on constants alone, a compiler may compute: the processor sees none of it.
        self.constants_finite = constants_are_finite(tape)
        #: Whether the processor's notes are believed: not once they were about values that no row
        #: of the program has, such as a quotient computed in advance for a branch not taken.
        self.believed = flags.AVAILABLE

    def __call__(self, run: Run, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """``run()`` on ``inputs``; NonFiniteError if a row gives a NaN or an infinity."""
        watched = flags.AVAILABLE and self.constants_finite
        if not watched or not all(map(is_finite, inputs)):
            self.row_by_row(inputs)
            return run()
        with flags.watching() as noted:
            outputs = run()
        finite = all(map(is_finite, outputs))
        if not finite or (noted.seen and self.believed):
            again = self.row_by_row(inputs)
            if finite:
                self.believed = False
            elif all(map(is_finite, again)):
                raise NonFiniteError(
                    "a result is not finite, though each row by itself is: the last bits, which "
                    "differ between the engines, decide whether it overflows. Scale the values "
                    "down."
                )
        return outputs


def constants_are_finite(tape: Tape) -> bool:
    """Whether no row that depends on constants alone gives a NaN or an infinity."""
    known: dict[int, np.ndarray] = {}
    for k, row in enumerate(tape.rows):
        evaluate = RULES[row.op].evaluate if row.op in RULES else None
        if row.op is Op.CONST:
            known[k] = tape.constants[row.attrs[0]]
        elif evaluate is not None and row.operands and known.keys() >= set(row.operands):
            with np.errstate(all="ignore"):
                known[k] = np.asarray(
                    evaluate(row.type, row.attrs, *(known[x] for x in row.operands))
                )
            if not is_finite(known[k]):
                return False
    return all(map(constants_are_finite, tape.bodies))


def is_finite(x: np.ndarray) -> bool:
    """Whether no element is a NaN or an infinity."""
    if x.dtype.kind != "f":
        return True
    return math.isfinite(x) if x.ndim == 0 else bool(np.isfinite(x).all())
