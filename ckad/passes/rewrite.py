"""What passes share: rebuilding a tape row by row."""

from __future__ import annotations

from collections.abc import Callable

from ckad.tape.builder import Builder
from ckad.tape.tape import Row, Tape

#: (builder, k, row, env) -> new value, or None to copy the row as it is
Rewrite = Callable[[Builder, int, Row, dict[int, int]], int | None]


def rebuild(tape: Tape, rewrite: Rewrite, on_body: Callable[[Tape], Tape]) -> Tape:
    """A new tape: each row as ``rewrite`` gives it, bodies changed by ``on_body``."""
    b, env = Builder(), dict[int, int]()
    for k, row in enumerate(tape.rows):
        b.where = tape.sources[row.source]
        new = rewrite(b, k, row, env)
        env[k] = b.copy_row(tape, k, env, on_body) if new is None else new
    return b.tape(env[k] for k in tape.outputs.tolist())


def with_outputs(tape: Tape, outputs: list[int]) -> Tape:
    """The same rows, other outputs."""
    b, env = Builder(), dict[int, int]()
    for k in range(len(tape)):
        env[k] = b.copy_row(tape, k, env)
    return b.tape(env[k] for k in outputs)
