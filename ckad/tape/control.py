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
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape


class Loop(NamedTuple):
    """A LOOP or TAPED_LOOP row, unpacked."""

    body: Tape
    taping: Tape | None
    length: int
    name: int
    carry: tuple[int, ...]
    xs: tuple[int, ...]
    captured: tuple[int, ...]

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

    @property
    def n_residuals(self) -> int:
        return len(self.taping.outputs) - self.n_carry

    @property
    def n_ct_xs(self) -> int:
        return len(self.reverse.outputs) - len(self.ct_carry) - len(self.sums)


def loop_attrs(body: int, length: int, n_carry: int, n_xs: int) -> tuple[int, ...]:
    return (body, length, n_carry, n_xs)


def taped_loop_attrs(
    body: int, taping: int, length: int, n_carry: int, n_xs: int, name: int
) -> tuple[int, ...]:
    """``name`` tells the loops of a program apart; the pair shares it, as do copies of it."""
    return (body, taping, length, n_carry, n_xs, name)


def read_loop(tape: Tape, row: Row) -> Loop:
    if row.op is Op.TAPED_LOOP:
        body, taping, length, n_carry, n_xs, name = row.attrs
    else:
        (body, length, n_carry, n_xs), taping, name = row.attrs, -1, -1
    carry, rest = row.operands[:n_carry], row.operands[n_carry:]
    tapes = tape.bodies[body], tape.bodies[taping] if taping >= 0 else None
    return Loop(*tapes, length, name, carry, rest[:n_xs], rest[n_xs:])


def reverse_loop_attrs(
    bodies: Sequence[int],
    length: int,
    n_carry: int,
    counts: Sequence[int],
    name: int,
) -> tuple[int, ...]:
    """``counts``: how many xs, captured, ct_carry, ct_ys and sums the operands hold."""
    return (*bodies, length, n_carry, name, *counts)


def read_reverse_loop(tape: Tape, row: Row) -> ReverseLoop:
    advance, taping, reverse, length, n_carry, name, *counts = row.attrs
    groups, at = [], 1
    for n in counts:
        groups.append(row.operands[at : at + n])
        at += n
    bodies = (tape.bodies[advance], tape.bodies[taping], tape.bodies[reverse])
    return ReverseLoop(*bodies, length, n_carry, name, row.operands[0], *groups)
