"""What a choice does not take is computed of a harmless number, so that its derivative is finite.

In ``where(a == 0, 1, sin(a) / a)`` the quotient at a = 0 is seen by nobody, but its cotangent, a
zero, would be divided by a. A row that only the sides of choices read, through rows of elements,
gets other operands there. No value that is seen changes, since the rest of the row is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ckad.passes.cse import Sharing
from ckad.passes.squares import Squares
from ckad.rules.facts import LINEAR, TAME, harmless
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row, Tape

#: Masks and whether they are true: where all are so, a value may be seen.
Conditions = frozenset[tuple[int, bool]]

_ALWAYS: Conditions = frozenset()
#: Of choices within more choices than these, only the innermost is looked at.
_DEEPEST = 8
#: What moves elements of a mask as it does those of a value.
_MOVES = (Op.BROADCAST, Op.SLICE, Op.TRANSPOSE)
#: Ops whose derivatives do not depend on their operands, and stay zero where a cotangent is zero.
_PLAIN = {*LINEAR, *_MOVES, Op.RESHAPE, Op.SELECT, Op.CONVERT, Op.MAXIMUM, Op.MINIMUM}
#: What makes masks of masks.
_OF_MASKS = {*_MOVES, Op.RESHAPE, Op.NOT, Op.AND, Op.OR}


def unseen(tape: Tape) -> Tape:
    """``tape`` with harmless operands where no choice lets a result be seen, in its bodies too."""
    bodies = {id(body): unseen(body) for body in tape.bodies}
    seen: list[Conditions] = []
    replaced: dict[int, list[bool]] = {}
    if any(row.op is Op.SELECT for row in tape.rows):
        seen = _seen(tape.rows, tape.outputs.tolist())
        replaced = _replaced(tape, seen)
    if not replaced and all(body is bodies[id(body)] for body in tape.bodies):
        return tape
    return _rebuilt(tape, seen, replaced, lambda body: bodies[id(body)])


def _seen(rows: Sequence[Row], outputs: Sequence[int]) -> list[Conditions]:
    """Where the elements of each row can be seen: what holds for all who read it."""
    found: list[Conditions | None] = [None] * len(rows)
    for x in outputs:
        found[x] = _ALWAYS
    for k in range(len(rows) - 1, -1, -1):
        for at, x in enumerate(rows[k].operands):
            given, known = _given(rows, k, at, found[k] or _ALWAYS), found[x]
            found[x] = given if known is None else known & given
    return [each or _ALWAYS for each in found]


def _given(rows: Sequence[Row], k: int, at: int, own: Conditions) -> Conditions:
    """Where an operand of row k is seen through it; ``own`` says where the row is."""
    row = rows[k]
    if not (row.type.is_float and rows[row.operands[at]].type.is_float):
        return _ALWAYS
    if row.op is Op.SELECT:
        inner = _literal(rows, row.operands[0], at == 1)
        return own | {inner} if len(own) < _DEEPEST else frozenset({inner})
    if row.op in _MOVES:
        moved = [each for each in own if _moved(rows, row, each[0])]
        return frozenset(_literal(rows, rows[m].operands[0], holds) for m, holds in moved)
    return own if is_elementwise(row.op) or row.op is Op.RESHAPE else _ALWAYS


def _literal(rows: Sequence[Row], mask: int, holds: bool) -> tuple[int, bool]:
    while rows[mask].op is Op.NOT:
        mask, holds = rows[mask].operands[0], not holds
    return mask, holds


def _moved(rows: Sequence[Row], row: Row, mask: int) -> bool:
    """Whether a mask of the result of ``row`` comes from one of its operand by the same move."""
    same = rows[mask]
    return (same.op, same.attrs, same.type.shape) == (row.op, row.attrs, row.type.shape) and (
        rows[same.operands[0]].type.shape == rows[row.operands[0]].type.shape
    )


def _replaced(tape: Tape, seen: Sequence[Conditions]) -> dict[int, list[bool]]:
    """The rows that become other ones, and which of their operands are replaced."""
    rows, found = tape.rows, dict[int, list[bool]]()
    known, tests, squares = _known(tape), _tests_of_numbers(rows), Squares(tape)
    kept = set(_kept(squares))
    finite = set(known)  # wherever they are not seen
    for k, (op, operands, _, type, _) in enumerate(rows):
        if not (seen[k] and type.is_float and (op in _PLAIN or is_elementwise(op))):
            continue
        floats = {x for x in operands if rows[x].type.is_float}
        plain = op in _PLAIN or _is_linear(op, operands, known)
        doubtful = floats - finite if any(mask in tests for mask, _ in seen[k]) else set[int]()
        unsafe = floats - known if op not in TAME else set[int]()
        if op is Op.DIV:
            unsafe &= {operands[1]}
        elif k in squares.wanted:  # what holds its square keeps it
            unsafe = floats - known
        replaceable = {x for x in unsafe | doubtful if not _is_chosen(rows, x, seen[k], known)}
        chosen = [not plain and x in replaceable and (k, x) not in kept for x in operands]
        if any(chosen) or not found.keys().isdisjoint(operands):
            found[k] = chosen
        if not plain or finite >= floats:
            finite.add(k)
    return found


def _kept(squares: Squares) -> Iterator[tuple[int, int]]:
    """Rows and their operands that are roots held by their squares, which have to be found again.

    The operands of these roots are replaced instead.
    """
    rows = squares.rows
    for k, row in enumerate(rows):
        held = [x for x in row.operands if x in squares.scaled]
        if k in squares.uses:
            yield from ((k, x) for x in held or row.operands)
        elif row.op is Op.EXP and held and squares.scaled[held[0]].root in squares.wanted:
            yield k, held[0]
    for root in squares.under:
        at = rows[root].operands[2]
        yield at, rows[at].operands[0]


def _is_chosen(rows: Sequence[Row], x: int, where: Conditions, known: set[int]) -> bool:
    """Whether x is harmless already, by a choice that the program makes itself."""
    if rows[x].op is not Op.SELECT:
        return False
    mask, taken, other = rows[x].operands
    mask, holds = _literal(rows, mask, True)
    return where in ({(mask, holds)}, {(mask, not holds)}) and (
        (other if (mask, holds) in where else taken) in known
    )


def _known(tape: Tape) -> set[int]:
    """The rows of constants that are finite and not zero."""
    found = set[int]()
    for k, (op, operands, attrs, type, _) in enumerate(tape.rows):
        if op is Op.CONST and type.is_float:
            array = tape.constants[attrs[0]]
            if np.isfinite(array).all() and array.all():
                found.add(k)
        elif op in _MOVES and operands[0] in found:
            found.add(k)
    return found


def _tests_of_numbers(rows: Sequence[Row]) -> set[int]:
    """Masks that may say which numbers of data are NaN: only these are of use for products.

    A comparison also does, but products under it are what limiters are made of.
    """
    found = set[int]()
    for k, (op, operands, _, _, _) in enumerate(rows):
        asks = op in (Op.ISNAN, Op.ISINF, Op.CONST) or (
            op in (Op.EQ, Op.NE) and operands[0] == operands[1]
        )
        if asks or (op in _OF_MASKS and not found.isdisjoint(operands)):
            found.add(k)
    return found


def _is_linear(op: Op, operands: Sequence[int], known: set[int]) -> bool:
    """Whether a row is a product of a value and a constant, perhaps with a sum."""
    if op is Op.DIV:
        return operands[1] in known
    return op in (Op.MUL, Op.FMA) and not known.isdisjoint(operands[:2])


def _places(rows: Sequence[Row], moving: dict[int, list[bool]]) -> list[int]:
    """Before which row each is computed: the rows that change, before the first that reads them.

    Where a choice is made its mask is known, which may have been computed after its sides.
    """
    places = [len(rows) if k in moving else k for k in range(len(rows))]
    for k in range(len(rows) - 1, -1, -1):
        for x in rows[k].operands:
            if x in moving:
                places[x] = min(places[x], places[k])
    return places


def _rebuilt(
    tape: Tape,
    seen: Sequence[Conditions],
    replaced: dict[int, list[bool]],
    on_body: Callable[[Tape], Tape],
) -> Tape:
    b, env = _Choices(), dict[int, int]()
    places = _places(tape.rows, replaced)
    for k in sorted(range(len(tape)), key=lambda k: (places[k], k)):
        row = tape.rows[k]
        if any(replaced.get(k, ())):
            b.where = tape.sources[row.source]
            where = [(env[mask], holds) for mask, holds in sorted(seen[k])]
            xs = [
                b.harmless(env[x], where, row.op) if flag else env[x]
                for x, flag in zip(row.operands, replaced[k], strict=True)
            ]
            env[k] = b.append(row.op, tuple(xs), row.attrs, row.type)
        else:
            env[k] = b.copy_row(tape, k, env, on_body)
    return b.tape([env[k] for k in tape.outputs.tolist()])


class _Choices(Sharing):
    """Rows in the making, of which some are computed of other numbers where nobody looks."""

    def harmless(self, x: int, where: Sequence[tuple[int, bool]], op: Op) -> int:
        """``x`` where all these masks hold, elsewhere a number that is harmless for ``op``."""
        number = self.full_like(x, harmless(op))
        mask, holds = where[0] if len(where) == 1 else (self._all(where), True)
        mask = self.reshape_to(mask, self.type(x).shape)
        return self.select(mask, *((x, number) if holds else (number, x)))

    def _all(self, where: Sequence[tuple[int, bool]]) -> int:
        """Whether all masks hold; they may have other shapes, but of as many elements."""
        shape = self.type(where[0][0]).shape
        first, *others = (
            self.reshape_to(mask if holds else self.emit(Op.NOT, (mask,)), shape)
            for mask, holds in where
        )
        for other in others:
            first = self.emit(Op.AND, (first, other))
        return first
