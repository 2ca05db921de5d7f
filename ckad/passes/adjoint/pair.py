"""The bodies of the pair that a loop becomes: its joint body is split where that keeps least.

What is kept of arrays that a step changes in parts is compared with what it takes to put them back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from ckad.passes.adjoint.bounded import bounded
from ckad.passes.adjoint.outer import Later
from ckad.passes.adjoint.residuals import Joint, Split
from ckad.passes.adjoint.undo import WORTH, Restoring
from ckad.passes.dce import dce, drop_inputs
from ckad.passes.liveness import needed
from ckad.passes.rewrite import with_outputs
from ckad.passes.simplify import mark_simple
from ckad.tape.control import LOOPS, UNBOUNDED, Loop, likely_length
from ckad.tape.tape import Tape


class Active(NamedTuple):
    """What takes part in the derivative, by position."""

    carry: list[int]
    ys: list[int]  # that have a cotangent
    xs: list[int]
    captured: list[int]


class LoopAdjoint(NamedTuple):
    """How one active loop is reversed."""

    loop: Loop
    name: int
    active: Active
    restored: list[int]  # positions of the carry that the reverse sweep puts back
    advance: Tape
    taping: Tape  # with ys, for the forward sweep
    retaping: Tape  # without ys, for the reverse sweep
    reverse: Tape
    later: Sequence[Later] = ()  # what is added to sums behind the loop


class Array(NamedTuple):
    """A carried array that can be put back."""

    position: int  # in the carry
    after: int  # the input of the joint tape that is the array after the step
    states: list[tuple[int, int]]  # rows of its states, and those that restore them

    @property
    def before(self) -> int:
        return self.states[-1][1]


class Outputs(NamedTuple):
    """The rows of a joint tape by what they are."""

    values: list[int]
    totals: list[int]
    ct_xs: list[int]
    arrays: list[Array]
    afters: set[int]  # all inputs that are arrays after the step

    def of_reverse(self, arrays: Sequence[Array]) -> list[int]:
        return [*self.totals, *(array.before for array in arrays), *self.ct_xs]


def outputs_of(joint: Tape, counts: Sequence[int], restoring: Restoring) -> Outputs:
    """The outputs of a joint tape: values, totals, cotangents of xs, and pairs for each array."""
    outputs, inputs = iter(joint.outputs.tolist()), joint.inputs.tolist()
    values, totals, ct_xs, *pairs = ([next(outputs) for _ in range(n)] for n in counts)
    first = len(inputs) - len(restoring.chains)
    complete = restoring.complete()
    arrays = [
        Array(chain.position, inputs[first + at], list(zip(rows[::2], rows[1::2], strict=True)))
        for at, chain in enumerate(restoring.chains)
        if chain in complete
        for rows in [pairs[complete.index(chain)]]
    ]
    return Outputs(values, totals, ct_xs, arrays, set(inputs[first:]))


def key_of(
    loop: Loop,
    active: Active,
    stays: Sequence[bool],
    shared: Mapping[int, int],
    price: Callable[[int], int],
) -> Hashable:
    """What the pair of a loop follows from, but for its name; None of a loop around others, which
    have names of their own."""
    if _has_loops(loop.body, set()):
        return None
    n = len(loop.carry)
    sizes = loop.length, loop.guard, n, len(loop.xs), *map(price, range(n))
    return id(loop.body), sizes, *map(tuple, (*active, stays, shared.items()))


def _has_loops(tape: Tape, seen: set[int]) -> bool:
    """``seen``: the tapes looked into so far."""
    if id(tape) in seen:
        return False
    seen.add(id(tape))
    if any(row.op in LOOPS for row in tape.rows):
        return True
    return any(_has_loops(body, seen) for body in tape.bodies)


def steps_of(loop: Loop) -> int:
    n = loop.length if loop.length < UNBOUNDED else likely_length(loop.length, loop.guard)
    return max(1, n)


def split(
    loop: Loop,
    name: int,
    active: Active,
    joint: Joint,
    rows: Outputs,
    price: Callable[[int], int],
) -> LoopAdjoint:
    """``price``: bytes that the step around has to keep where an array of the carry is put back."""
    parts, restored = _cheapest(joint, rows, lambda x: price(x) / steps_of(loop))
    n, n_primal, reverse = len(loop.carry), joint.n_primal, dce(parts.reverse)
    tape, residuals = bounded(joint.tape, n_primal, parts.residuals, reverse)
    values = tape.outputs.tolist()[: len(rows.values)]
    taping = _primal_part(tape, n_primal, [*values, *residuals])
    with_ys, kept = loop.n_ys > 0, [*values[:n], *residuals]
    return LoopAdjoint(
        loop,
        name,
        active,
        restored,
        dce(with_outputs(loop.body, loop.body.outputs.tolist()[:n])) if with_ys else loop.body,
        taping,
        _primal_part(tape, n_primal, kept) if with_ys else taping,
        mark_simple(reverse),
    )


def _cheapest(
    joint: Joint, rows: Outputs, price: Callable[[int], float]
) -> tuple[Split, list[int]]:
    """The split, and what is put back."""
    plain = _parts(joint, rows, [])
    size = _bytes(joint.tape, plain)
    if not rows.arrays or not size:
        return plain, []
    arrays = _read(rows, _parts(joint, rows, rows.arrays))
    other = _parts(joint, rows, arrays)
    own = _bytes(joint.tape, other) + sum(price(x.position) for x in arrays)
    return (other, [x.position for x in arrays]) if own <= WORTH * size else (plain, [])


def _parts(joint: Joint, rows: Outputs, arrays: Sequence[Array]) -> Split:
    states = dict(pair for array in arrays for pair in array.states)
    left_out = rows.afters - {array.after for array in arrays}
    return joint.split(rows.of_reverse(arrays), states, left_out)


def _read(rows: Outputs, parts: Split) -> list[Array]:
    """The arrays whose states the cotangents are computed from."""
    n, reverse = len(rows.totals), parts.reverse
    outputs = reverse.outputs.tolist()
    live = needed(reverse, [*outputs[:n], *outputs[n + len(rows.arrays) :]])
    afters = reverse.inputs.tolist()[len(reverse.inputs) - len(rows.arrays) :]
    return [array for array, k in zip(rows.arrays, afters, strict=True) if live[k]]


def _bytes(joint: Tape, parts: Split) -> int:
    types = (joint.rows[k].type for k in parts.residuals)
    return sum(t.nbytes for t in types if t.is_array)


def _primal_part(joint: Tape, n_inputs: int, outputs: list[int]) -> Tape:
    """The rows of a joint tape that ``outputs`` need, without the inputs for cotangents."""
    part = dce(with_outputs(joint, outputs))
    return mark_simple(drop_inputs(part, set(range(n_inputs, len(part.inputs)))))
