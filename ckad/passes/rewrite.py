"""What passes share: rebuilding a tape row by row, or with inputs that are constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_

import numpy as np

from ckad.tape.builder import APART, Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: (builder, row, env) -> new value, or None to copy the row as it is
Rewrite = Callable[[Builder, Row, list[int]], int | None]


def as_it_is(b: Builder, row: Row, env: list[int]) -> None:
    """The rewrite that changes nothing."""


def rebuild(
    tape: Tape, rewrite: Rewrite, on_body: Callable[[Tape], Tape], b: Builder | None = None
) -> Tape:
    """Each row as ``rewrite`` gives it, bodies changed by ``on_body``; ``tape`` if all stay."""
    b = Builder() if b is None else b
    env: list[int] = []
    sources, append, rows = tape.sources, b.append, b.rows
    for k, row in enumerate(tape.rows):
        b.where = sources[row.source]
        before = len(rows)
        new = rewrite(b, row, env)
        if len(rows) > before:
            b.emitted += rows[before:]
        if new is None:
            op, operands, attrs, type, _ = row
            if op in APART:
                new = b.copy_row(tape, k, env, on_body)
            else:  # as `copy_row` does it, for most of all rows
                new = append(op, tuple([env[x] for x in operands]), attrs, type)
        env.append(new)
    made = b.tape([env[k] for k in tape.outputs.tolist()])
    return tape if is_same(tape, made) else made


def is_same(tape: Tape, made: Tape) -> bool:
    """Whether one tape has the rows, the outputs and the very bodies and constants of another."""
    return (
        tape.rows == made.rows
        and tape.sources == made.sources
        and _are(tape.bodies, made.bodies)
        and _are(tape.constants, made.constants)
        and tape.inputs.tolist() == made.inputs.tolist()
        and tape.outputs.tolist() == made.outputs.tolist()
    )


def in_bodies(tape: Tape, change: Callable[[Tape], Tape]) -> Tape:
    """The same rows with other bodies."""
    bodies = tuple(map(change, tape.bodies))
    if _are(tape.bodies, bodies):
        return tape
    inputs, outputs = tape.inputs.tolist(), tape.outputs.tolist()
    return Tape.of_rows(tape.rows, inputs, outputs, tape.sources, tape.constants, bodies)


def _are(xs: Sequence[object], ys: Sequence[object]) -> bool:
    return len(xs) == len(ys) and all(map(is_, xs, ys))


def with_outputs(tape: Tape, outputs: Sequence[int]) -> Tape:
    """The same rows, other outputs."""
    inputs = tape.inputs.tolist()
    return Tape.of_rows(tape.rows, inputs, outputs, tape.sources, tape.constants, tape.bodies)


def appended(b: Builder, tape: Tape, operands: Sequence[int]) -> list[int]:
    """Append the rows of a tape on these operands; the rows of its outputs."""
    env = dict(zip(tape.inputs.tolist(), operands, strict=True))
    b.copy_rows(tape, (k for k in range(len(tape)) if k not in env), env)
    return [env[k] for k in tape.outputs.tolist()]


def bind(tape: Tape, values: dict[int, np.ndarray]) -> Tape:
    """``tape`` with the inputs at these positions fixed to the given arrays."""
    b, env = Builder(), dict[int, int]()
    for k, row in enumerate(tape.rows):
        if row.op is Op.INPUT and row.attrs[0] in values:
            env[k] = b.const(values[row.attrs[0]])
        else:
            env[k] = b.copy_row(tape, k, env)
    return b.tape(env[k] for k in tape.outputs.tolist())


def seeded(tape: Tape) -> Tape:
    """``tape`` with its last input, the cotangent of a scalar, fixed to one."""
    one = np.ones((), tape.input_types[-1].numpy)
    return bind(tape, {len(tape.inputs) - 1: one})


def seeded_apart(shared: Sequence[int], tape: Tape) -> Tape:
    """`seeded` for the members of a batch, with one input for all where they share it."""
    b, rows = Builder(), list[int]()
    for k, type in enumerate(tape.input_types[:-1]):
        given = b.input(type.with_shape(type.shape[1:]) if k in shared else type)
        rows.append(b.broadcast_to(given, type.shape) if k in shared else given)
    last = tape.input_types[-1]
    ones = b.broadcast_to(b.const(np.ones((), last.numpy)), last.shape)
    return b.tape(appended(b, tape, [*rows, ones]))
