"""What passes share: rebuilding a tape row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ckad.tape.builder import Builder
from ckad.tape.tape import Row, Tape

#: (builder, row, env) -> new value, or None to copy the row as it is
Rewrite = Callable[[Builder, Row, list[int]], int | None]


def as_it_is(b: Builder, row: Row, env: list[int]) -> None:
    """The rewrite that changes nothing."""


def rebuild(
    tape: Tape, rewrite: Rewrite, on_body: Callable[[Tape], Tape], b: Builder | None = None
) -> Tape:
    """A new tape: each row as ``rewrite`` gives it, bodies changed by ``on_body``."""
    b = Builder() if b is None else b
    env: list[int] = []
    sources = tape.sources
    for k, row in enumerate(tape.rows):
        b.where = sources[row.source]
        new = rewrite(b, row, env)
        env.append(b.copy_row(tape, k, env, on_body) if new is None else new)
    return b.tape([env[k] for k in tape.outputs.tolist()])


def with_outputs(tape: Tape, outputs: Sequence[int]) -> Tape:
    """The same rows, other outputs."""
    inputs = tape.inputs.tolist()
    return Tape.of_rows(tape.rows, inputs, outputs, tape.sources, tape.constants, tape.bodies)


def appended(b: Builder, tape: Tape, operands: Sequence[int]) -> list[int]:
    """Append the rows of a tape on these operands; the rows of its outputs."""
    env = dict(zip(tape.inputs.tolist(), operands, strict=True))
    for k in range(len(tape)):
        if k not in env:
            env[k] = b.copy_row(tape, k, env)
    return [env[k] for k in tape.outputs.tolist()]
