"""Transformations of tapes: pure functions, one file each."""

from ckad.passes.cse import cse
from ckad.passes.dce import dce
from ckad.passes.fold import fold
from ckad.tape.tape import Tape


def simplify(tape: Tape) -> Tape:
    """fold, cse, dce: the same results from fewer rows."""
    return dce(cse(fold(tape)))
