"""The same results from fewer rows: what every other pass leaves to be cleared up."""

from __future__ import annotations

from weakref import WeakKeyDictionary, WeakSet

from ckad.passes.cse import Sharing
from ckad.passes.dce import dce
from ckad.passes.fold import fold_row, folding, is_final
from ckad.passes.liveness import needed
from ckad.passes.rewrite import rebuild
from ckad.tape.control import LOOPS
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Tape

#: What `simplify` would return as it is: bodies stay the same through many tapes.
_simple: WeakSet[Tape] = WeakSet()
#: Those among them that a walk has left as they were, or would.
_settled: WeakSet[Tape] = WeakSet()
#: What it has made of others: one body is that of many loops.
_made: WeakKeyDictionary[Tape, Tape] = WeakKeyDictionary()


def simplify(tape: Tape) -> Tape:
    """fold, cse, dce: the same results from fewer rows."""
    if tape in _simple:
        return tape
    made = _made.get(tape)
    if made is None:
        made = mark_simple(_walked(tape))
        if made is not tape:
            _made[tape] = made
    return made


def simplify_again(tape: Tape) -> Tape:
    """`simplify` of what is simple: the rows that one walk makes may be folded in the next."""
    return tape if tape in _settled else mark_simple(_walked(tape))


def _walked(tape: Tape) -> Tape:
    # one walk does the work of two: what a folded row leaves is shared as it is appended
    b, fold = Sharing(), folding(tape)
    walked = rebuild(tape, fold, simplify, b)
    made = dce(walked)
    if made is tape or (fold is fold_row and is_final(b) and _is_as_walked(made, walked)):
        _settled.add(made)
    return made


def _is_as_walked(made: Tape, walked: Tape) -> bool:
    """Whether another walk would see each row as this one did: `dce` has left out rows alone, and
    none that reads what is written, by which rules ask for readers."""
    if made is walked:
        return True
    if _loops(made) != _loops(walked):
        return False
    ops = walked.ops
    if Op.CALL in ops and any(x.op is Op.CALL and routine_of(x).alone for x in walked.rows):
        return False
    if Op.UPDATE not in ops and Op.SCATTER not in ops:
        return True
    written = {k for k, row in enumerate(walked.rows) if row.op in (Op.UPDATE, Op.SCATTER)}
    live = needed(walked, walked.outputs.tolist())
    return all(live[k] or written.isdisjoint(x.operands) for k, x in enumerate(walked.rows))


def _loops(tape: Tape) -> list[tuple[Tape, int]]:
    rows = tape.rows if tape.bodies else ()
    return [(tape.bodies[x.attrs[0]], len(x.operands)) for x in rows if x.op in LOOPS]


def mark_simple(tape: Tape) -> Tape:
    """``tape``, remembered as one in which `simplify` finds nothing."""
    _simple.add(tape)
    for body in tape.bodies:
        mark_simple(body)
    return tape
