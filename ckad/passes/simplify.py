"""The same results from fewer rows: what every other pass leaves to be cleared up."""

from __future__ import annotations

from weakref import WeakSet

from ckad.passes.cse import Sharing
from ckad.passes.dce import dce
from ckad.passes.fold import folding
from ckad.passes.rewrite import rebuild
from ckad.tape.tape import Tape

#: What `simplify` would return as it is: bodies stay the same through many tapes.
_simple: WeakSet[Tape] = WeakSet()
#: Those among them that a walk has left as they were.
_settled: WeakSet[Tape] = WeakSet()


def simplify(tape: Tape) -> Tape:
    """fold, cse, dce: the same results from fewer rows."""
    if tape in _simple:
        return tape
    return mark_simple(_walked(tape))


def simplify_again(tape: Tape) -> Tape:
    """`simplify` of what is simple: the rows that one walk makes may be folded in the next."""
    return tape if tape in _settled else mark_simple(_walked(tape))


def _walked(tape: Tape) -> Tape:
    # one walk does the work of two: what a folded row leaves is shared as it is appended
    made = dce(rebuild(tape, folding(tape), simplify, Sharing()))
    if made is tape:
        _settled.add(tape)
    return made


def mark_simple(tape: Tape) -> Tape:
    """``tape``, remembered as one in which `simplify` finds nothing."""
    _simple.add(tape)
    for body in tape.bodies:
        mark_simple(body)
    return tape
