"""Liveness: which rows are needed, who reads them, and when for the last time."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

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
