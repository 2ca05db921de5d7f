"""Outer products that steps add to the cotangent of a matrix: of all steps one product of matrices.

Where a loop multiplies a matrix that it does not change by a vector in each step, each step of the
reverse would add an outer product to the whole cotangent. The two vectors are much smaller: they
are kept for all steps, as the cotangents of xs are, and multiplied once behind the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckad.passes.liveness import readers_of
from ckad.passes.rewrite import with_outputs
from ckad.tape.builder import Builder
from ckad.tape.control import UNBOUNDED, UNGUARDED, Loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import Type

#: Smaller matrices stay in the nearest cache.
LEAST = 1 << 11
#: The vectors of all steps may have as many elements as this times the matrix.
MOST_TIMES = 2


class Vectors(NamedTuple):
    """Rows of which a step adds the outer product, or takes it away; or of few of them."""

    left: int
    right: int
    negative: bool
    inner: int = 1  # how many outer products
    turned: tuple[int, int] = (1, 0)  # which are transposed, as a MATMUL has it


class Later(NamedTuple):
    """What is added to a sum behind the loop."""

    at: int  # which of the sums
    products: tuple[Vectors, ...]

    def total(self, b: Builder, type: Type, stacks: Sequence[int]) -> int:
        """The sum of the outer products of the vectors in ``stacks``, two for each."""
        lengths = [k for k in type.shape if k != 1]
        total = None
        for at, each in enumerate(self.products):
            left, right = (
                _behind_one_another(b, x, n, each.inner, inner_last)
                for x, n, inner_last in zip(
                    stacks[2 * at : 2 * at + 2],
                    lengths,
                    (not each.turned[0], bool(each.turned[1])),
                    strict=True,
                )
            )
            made = b.matmul(b.neg(left) if each.negative else left, right, attrs=each.turned)
            total = made if total is None else b.add(total, made)
        assert total is not None
        return b.reshape_to(total, type.shape)


def _behind_one_another(b: Builder, x: int, n: int, inner: int, inner_last: bool) -> int:
    """The vectors of all steps as one matrix."""
    steps = b.type(x).shape[0]
    if not inner_last:
        return b.reshape_to(x, (1, steps * inner, n))
    turned = b.transpose(b.reshape_to(x, (steps, n, inner)), attrs=(1, 0, 2))
    return b.reshape_to(turned, (1, n, steps * inner))


def deferred(
    tape: Tape, counts: Sequence[int], sums: Sequence[int], loop: Loop
) -> tuple[Tape, list[int], list[Later]]:
    """The joint tape with such vectors in place of sums, and the new counts of its outputs.

    ``counts`` are those of values, of totals, the sums last, of cotangents of xs, and others.
    """
    n_values, n_totals, n_xs, *others = counts
    outputs, later, vectors = tape.outputs.tolist(), [], list[int]()
    if loop.guard == UNGUARDED and loop.length < UNBOUNDED:
        for at, start in enumerate(sums):
            k = n_values + n_totals - len(sums) + at
            found = _products(tape, start, outputs[k])
            n_vectors = loop.length * sum(each.inner for each in found)
            if found and _are_small(tape.rows[start].type, n_vectors):
                outputs[k] = start
                vectors += [x for pair in found for x in (pair.left, pair.right)]
                later.append(Later(at, tuple(found)))
    if not later:
        return tape, list(counts), []
    behind = n_values + n_totals + n_xs
    outputs[behind:behind] = vectors
    return with_outputs(tape, outputs), [n_values, n_totals, n_xs + len(vectors), *others], later


def _are_small(type: Type, n_products: int) -> bool:
    """Whether the vectors of so many products take little beside the matrix."""
    wide = [n for n in type.shape if n != 1]
    return type.size >= LEAST and n_products * sum(wide) <= MOST_TIMES * type.size


def _products(tape: Tape, start: int, total: int) -> list[Vectors]:
    """The outer products that lead from a sum so far to its total; none if there is more to it."""
    if len([n for n in tape.rows[start].type.shape if n != 1]) != 2:
        return []
    readers, outputs = readers_of(tape.rows), tape.outputs.tolist()
    found: list[Vectors] = []
    k = start
    while k != total:
        if len(readers[k]) != 1 or k in outputs:
            return []
        (reader,) = readers[k]
        op, operands, *_ = tape.rows[reader]
        if op is not Op.RESHAPE:
            vectors = _added(tape, op, operands, k)
            if vectors is None:
                return []
            found.append(vectors)
        k = reader
    return found if outputs.count(total) == 1 else []


def _added(tape: Tape, op: Op, operands: Sequence[int], k: int) -> Vectors | None:
    """What a row adds to row k."""
    if op is Op.FMA and operands[2] == k and k not in operands[:2]:
        return _outer(tape, operands[0], operands[1])
    if op is Op.ADD and operands.count(k) == 1:
        return _of_product(tape, operands[1 - operands.index(k)])
    if op is Op.SUB and operands[0] == k != operands[1]:
        made = _of_product(tape, operands[1])
        return None if made is None else made._replace(negative=not made.negative)
    return None


def _of_product(tape: Tape, k: int) -> Vectors | None:
    op, operands, *_ = tape.rows[k]
    if op is Op.RESHAPE:
        return _of_product(tape, operands[0])
    if op is Op.NEG:
        made = _of_product(tape, operands[0])
        return None if made is None else made._replace(negative=not made.negative)
    if op is Op.MATMUL:
        return _of_matrices(tape, k)
    return _outer(tape, operands[0], operands[1]) if op is Op.MUL else None


def _of_matrices(tape: Tape, k: int) -> Vectors | None:
    """A product of one matrix by another, of few columns each."""
    row = tape.rows[k]
    (batch, n, m), (tx, ty) = row.type.shape, row.attrs
    inner = tape.rows[row.operands[0]].type.shape[1 if tx else 2]
    if batch != 1 or n == 1 or m == 1:
        return None
    return Vectors(row.operands[0], row.operands[1], False, inner, (tx, ty))


def _outer(tape: Tape, x: int, y: int) -> Vectors | None:
    """Two vectors, one repeated along each of the two axes."""
    found: dict[int, int] = {}
    for k in (x, y):
        axis, vector = _repeated(tape, k)
        found[axis] = vector
    return Vectors(found[0], found[1], False) if found.keys() == {0, 1} else None


def _repeated(tape: Tape, k: int) -> tuple[int, int]:
    """Along which of the two axes that are longer than one a row differs, and the vector."""
    row = tape.rows[k]
    if row.op is not Op.BROADCAST:
        return -1, k
    source = tape.rows[row.operands[0]].type.shape
    own = (1,) * (len(row.type.shape) - len(source)) + source
    wide = [a for a, n in enumerate(row.type.shape) if n != 1]
    mine = [at for at, a in enumerate(wide) if own[a] != 1]
    return (mine[0], row.operands[0]) if len(mine) == 1 else (-1, k)
