"""Liveness: which rows are needed, who reads them, and when for the last time."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ckad.tape.control import UNGUARDED
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: The last read of an output: after everything.
FOREVER = 1 << 60


def needed(tape: Tape, outputs: Iterable[int], known: Container[int] = ()) -> list[bool]:
    """Per row: does it have to run for ``outputs``, when the rows in ``known`` are given?"""
    flags = [False] * len(tape)
    for k in outputs:
        flags[k] = True
    rows = tape.rows
    for k in range(len(rows) - 1, -1, -1):
        if flags[k] and k not in known:
            for x in rows[k].operands:
                flags[x] = True
    return flags


def readers(tape: Tape) -> list[list[int]]:
    """Per row: the rows that read it, once for each operand."""
    return readers_of(tape.rows)


def readers_of(rows: Sequence[Row]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in rows]
    for k, row in enumerate(rows):
        for x in row.operands:
            found[x].append(k)
    return found


def last_reads(reads: Iterable[Iterable[int]], outputs: Sequence[int]) -> dict[int, int]:
    """The place in an execution order at which each value is read last.

    ``reads`` lists, in that order, the values that each item reads. An output is read for ever.
    """
    last = {x: at for at, values in enumerate(reads) for x in values}
    return last | dict.fromkeys(outputs, FOREVER)


class Reads:
    """What single results of loops and branches depend on, found without a tape for each of them.

    What is cut down to one result (`dce`) depends on these operands, or on more of them.
    """

    def __init__(self) -> None:
        # by the identity of a body, which is held here: it, and the inputs by output
        self._made: dict[int, tuple[Tape, dict[int, frozenset[int]]]] = {}

    def behind(self, rows: Sequence[Row], bodies: Sequence[Tape], k: int) -> Sequence[int]:
        """The rows that row ``k`` is computed from."""
        if rows[k].op is not Op.RESULT:
            return rows[k].operands
        control, result = rows[rows[k].operands[0]], rows[k].attrs[0]
        if control.op is Op.COND:
            sides = (self._inputs(bodies[at], result) for at in control.attrs[:2])
            places = frozenset[int]().union(*sides)
            return [control.operands[0], *(control.operands[1 + p] for p in sorted(places))]
        if control.op is Op.LOOP:
            return self._behind_loop(control, bodies[control.attrs[0]], result)
        return rows[k].operands

    def _behind_loop(self, row: Row, body: Tape, result: int) -> Sequence[int]:
        _, _, n_carry, _, guard = row.attrs
        done, found = set[int](), set[int]()
        pending = [result] if guard == UNGUARDED else [0, result]
        while pending:
            output = pending.pop()
            if output in done:
                continue
            done.add(output)
            if output < n_carry:
                found.add(output + 1)
            inputs = self._inputs(body, output)
            found |= inputs
            pending += [p - 1 for p in inputs if 0 < p <= n_carry]
        return [row.operands[p - 1] for p in sorted(found) if p > 0]

    def _inputs(self, body: Tape, output: int) -> frozenset[int]:
        """The inputs that an output depends on, by their positions."""
        _, known = self._made.setdefault(id(body), (body, {}))
        if output not in known:
            target = int(body.outputs[output])
            seen, pending = {target}, [target]
            while pending:
                new = {*self.behind(body.rows, body.bodies, pending.pop())} - seen
                seen |= new
                pending += new
            inputs = (body.rows[k] for k in seen)
            known[output] = frozenset(row.attrs[0] for row in inputs if row.op is Op.INPUT)
        return known[output]
