"""Loops and branches of LLVM IR: the blocks and phis that every other writer of code needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from ckad.engines.native.ir.element import I64, Value, whole


@contextmanager
def count(b: ir.IRBuilder, start: Value, stop: Value, step: int = 1) -> Iterator[Value]:
    """The code inside runs for start, start + step, ... while below ``stop``."""
    with carry(b, start, stop, (), step) as (at, _, _):
        yield at


@contextmanager
def carry(
    b: ir.IRBuilder,
    start: Value,
    stop: Value,
    initial: Sequence[Value],
    step: int = 1,
    goes_on: Callable[[list[Value]], Value] | None = None,
) -> Iterator[tuple[Value, list[Value], Callable[[Sequence[Value]], None]]]:
    """A loop that carries values: yields (index, values, a function that takes the new values).

    ``goes_on`` reads from the values whether there is another turn. After the loop the index and
    the values yielded hold what the last turn left; a value that no turn changes is the same as
    before, so that pointers are known by their identity.
    """
    head, body, done = (b.append_basic_block(name) for name in ("head", "body", "done"))
    before = b.block
    b.branch(head)
    b.position_at_end(head)
    at = b.phi(I64)
    at.add_incoming(start, before)
    values = [b.phi(x.type) for x in initial]
    for phi, x in zip(values, initial, strict=True):
        phi.add_incoming(x, before)
    more = b.icmp_signed("<", at, stop)
    b.cbranch(b.and_(more, goes_on(values)) if goes_on else more, body, done)
    b.position_at_end(body)
    following: list[Value] = []
    yield at, values, following.extend
    after = b.add(at, whole(step))
    for phi, x in zip(values, following, strict=True):
        phi.add_incoming(x, b.block)
    at.add_incoming(after, b.block)
    b.branch(head)
    b.position_at_end(done)
    same = [phi is x for phi, x in zip(values, following, strict=True)]
    values[:] = [x if k else phi for phi, x, k in zip(values, initial, same, strict=True)]


def smaller(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    return b.select(b.icmp_signed("<", x, y), x, y)


def larger(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    return b.select(b.icmp_signed(">", x, y), x, y)
