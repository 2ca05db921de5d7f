"""How the control rows lay out their operands, attributes, bodies and results.

LOOP          operands  carry, xs, captured
              body      (i, carry, x, captured) -> (carry, y)
              results   carry, ys
TAPED_LOOP    the same, and a token: the place where its checkpoints and residuals lie
              bodies    the primal; taping: (i, carry, x, captured) -> (carry, y, residuals)
REVERSE_LOOP  operands  token, xs, captured, cotangents of the carry, of the ys, sums so far
              bodies    advance: (i, carry, x, captured) -> carry
                        taping: (i, carry, x, captured) -> (carry, residuals)
                        reverse: (i, residuals, x, captured, ct_carry, ct_y, sums)
                                 -> (ct_carry, sums, ct_x)
              results   cotangents of the initial carry, sums, cotangents of the xs
COND          operands  predicate, operands;  bodies: if true, if false

A loop may be guarded: ``length`` is then the most steps it runs, and the first of the carry tells
how many it runs indeed, so that no ys are stacked.

guard 1 (WHILE)   carry[0] is a flag, a scalar bool: step i runs while i < length and the flag is
                  true; the body returns the next flag
guard 2 (COUNTED) carry[0] is a number n, a scalar i64: min(max(n, 0), length) steps run; the body
                  returns it as it is
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckad.tape.ops import Op
from ckad.tape.row import Row
from ckad.tape.tape import Tape

#: How a loop ends: after ``length`` steps, with its flag, after the number of steps it carries.
UNGUARDED, WHILE, COUNTED = range(3)
#: The rows that are loops.
LOOPS = (Op.LOOP, Op.TAPED_LOOP, Op.REVERSE_LOOP)
#: The length of a loop that has no known bound.
UNBOUNDED = 2**62
#: The number of steps that an open loop is thought to run where nothing better is known.
GUESS = 64


class Loop(NamedTuple):
    """A LOOP or TAPED_LOOP row, unpacked."""

    body: Tape
    taping: Tape | None
    length: int
    name: int
    carry: tuple[int, ...]
    xs: tuple[int, ...]
    captured: tuple[int, ...]
    guard: int = UNGUARDED

    @property
    def n_ys(self) -> int:
        return len(self.body.outputs) - len(self.carry)

    @property
    def n_residuals(self) -> int:
        return len(self.taping.outputs) - len(self.body.outputs) if self.taping else 0


class ReverseLoop(NamedTuple):
    """A REVERSE_LOOP row, unpacked."""

    advance: Tape
    taping: Tape
    reverse: Tape
    length: int
    n_carry: int
    name: int
    token: int
    xs: tuple[int, ...]
    captured: tuple[int, ...]
    ct_carry: tuple[int, ...]
    ct_ys: tuple[int, ...]
    sums: tuple[int, ...]
    guard: int = UNGUARDED

    @property
    def n_residuals(self) -> int:
        return len(self.taping.outputs) - self.n_carry

    @property
    def n_ct_xs(self) -> int:
        return len(self.reverse.outputs) - len(self.ct_carry) - len(self.sums)


def is_open(length: int, guard: int) -> bool:
    """Whether a loop's length says little about how long it runs: none is known, or a flag ends it.

    The actions of its reversal are made for a number of steps that is assumed, and grows if it was
    too small.
    """
    return length >= UNBOUNDED or (guard == WHILE and length > GUESS)


def has_open_loop(tape: Tape) -> bool:
    """Whether a loop of the tape, or of a body of it, is open."""
    loops = [read_loop(tape, row) for row in tape.rows if row.op in (Op.LOOP, Op.TAPED_LOOP)]
    own = any(is_open(loop.length, loop.guard) for loop in loops)
    return own or any(map(has_open_loop, tape.bodies))


def likely_length(length: int, guard: int) -> int:
    """How many steps a loop is thought to run."""
    return GUESS if is_open(length, guard) else length


def loop_attrs(
    body: int, length: int, n_carry: int, n_xs: int, guard: int = UNGUARDED
) -> tuple[int, ...]:
    return (body, length, n_carry, n_xs, guard)


def taped_loop_attrs(
    body: int,
    taping: int,
    length: int,
    n_carry: int,
    n_xs: int,
    name: int,
    guard: int = UNGUARDED,
) -> tuple[int, ...]:
    """``name`` tells the loops of a program apart; the pair shares it, as do copies of it."""
    return (body, taping, length, n_carry, n_xs, name, guard)


def read_loop(tape: Tape, row: Row) -> Loop:
    if row.op is Op.TAPED_LOOP:
        body, taping, length, n_carry, n_xs, name, guard = row.attrs
    else:
        (body, length, n_carry, n_xs, guard), taping, name = row.attrs, -1, -1
    carry, rest = row.operands[:n_carry], row.operands[n_carry:]
    tapes = tape.bodies[body], tape.bodies[taping] if taping >= 0 else None
    return Loop(*tapes, length, name, carry, rest[:n_xs], rest[n_xs:], guard)


def reverse_loop_attrs(
    bodies: Sequence[int],
    length: int,
    n_carry: int,
    counts: Sequence[int],
    name: int,
    guard: int,
) -> tuple[int, ...]:
    """``counts``: how many xs, captured, ct_carry, ct_ys and sums the operands hold."""
    return (*bodies, length, n_carry, name, *counts, guard)


def read_reverse_loop(tape: Tape, row: Row) -> ReverseLoop:
    advance, taping, reverse, length, n_carry, name, *counts, guard = row.attrs
    groups, at = [], 1
    for n in counts:
        groups.append(row.operands[at : at + n])
        at += n
    bodies = (tape.bodies[advance], tape.bodies[taping], tape.bodies[reverse])
    xs, captured, ct_carry, ct_ys, sums = groups
    own = length, n_carry, name, row.operands[0]
    return ReverseLoop(*bodies, *own, xs, captured, ct_carry, ct_ys, sums, guard)
