"""To be recorded: which primal values the reverse of a loop body needs, and how few it can keep.

The adjoint of a body is split in two: the taping body computes the residuals, the reverse body
computes everything else from them. What is cheap to compute again from values that are kept
anyway, or that are the same in every step, is not kept. The smallest set (in bytes) is a minimum
cut between the values that must come from the forward sweep and those the reverse reads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ckad.passes.liveness import needed
from ckad.rules import RULES
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType

#: Capacities of the cut are scaled to fit scipy's 32-bit flows.
LARGEST_CAPACITY = 1 << 20
UNLIMITED = 1 << 28


class Split(NamedTuple):
    """A body's adjoint in two: rows to keep, and the reverse body that starts from them."""

    residuals: list[int]  # rows of the joint tape
    reverse: Tape  # (i, residuals, x, captured, ct..., sums...) -> outputs


def split(joint: Tape, n_primal: int, n_carry: int, n_xs: int, outputs: list[int]) -> Split:
    """Split ``joint``, whose first ``n_primal`` inputs are (i, carry, x, captured).

    ``outputs`` are the rows of the joint tape that the reverse body returns.
    """
    dual = _depends_on_cotangents(joint, n_primal)
    carry = set(joint.inputs[1 : 1 + n_carry].tolist())
    read = _read_by(joint, dual, outputs)
    residuals = _minimum_cut(joint, dual, carry, read)
    return Split(residuals, _reverse_body(joint, n_primal, (n_carry, n_xs), residuals, outputs))


def _depends_on_cotangents(joint: Tape, n_primal: int) -> list[bool]:
    dual: list[bool] = []
    for row in joint.rows:
        if row.op is Op.INPUT:
            dual.append(row.attrs[0] >= n_primal)
        else:
            dual.append(any(dual[x] for x in row.operands))
    return dual


def _read_by(joint: Tape, dual: list[bool], outputs: list[int]) -> set[int]:
    """The primal values that the reverse reads."""
    read = {x for k, row in enumerate(joint.rows) if dual[k] for x in row.operands if not dual[x]}
    return read | {x for x in outputs if not dual[x]}


def _is_cheap(joint: Tape, k: int) -> bool:
    row = joint.rows[k]
    return row.op is Op.CONST or (row.op in RULES and RULES[row.op].cheap)


def _minimum_cut(joint: Tape, dual: list[bool], carry: set[int], read: set[int]) -> list[int]:
    """Value k is an edge 2k -> 2k + 1 of its size; cutting it means to keep the value."""
    primal = [
        k for k in range(len(joint)) if not dual[k] and joint.rows[k].type.dtype != DType.TUPLE
    ]
    source, sink = 2 * len(joint), 2 * len(joint) + 1
    unit = max(1, -(-max((_cells(joint, k) for k in primal), default=1) // LARGEST_CAPACITY))
    edges: list[tuple[int, int, int]] = []
    for k in primal:
        row = joint.rows[k]
        edges.append((2 * k, 2 * k + 1, -(-_cells(joint, k) // unit)))
        if k in carry or (row.op is not Op.INPUT and not _is_cheap(joint, k)):
            edges.append((source, 2 * k, UNLIMITED))
        elif row.op is not Op.INPUT:
            edges.extend((2 * x + 1, 2 * k, UNLIMITED) for x in set(row.operands))
        if k in read:
            edges.append((2 * k + 1, sink, UNLIMITED))
    reachable = _source_side(edges, 2 * len(joint) + 2, source, sink)
    return [k for k in primal if reachable[2 * k] and not reachable[2 * k + 1]]


def _cells(joint: Tape, k: int) -> int:
    type = joint.rows[k].type
    return max(1, type.nbytes) if type.is_array else 1


def _source_side(edges: list[tuple[int, int, int]], n: int, source: int, sink: int) -> np.ndarray:
    """Which nodes the source still reaches when the flow is at its maximum."""
    # loaded here because it takes a while and only programs with loops need it
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    start, stop, capacity = np.array(edges, np.int32).T
    graph = coo_array((capacity, (start, stop)), shape=(n, n)).tocsr()
    flow = maximum_flow(graph, source, sink).flow
    rest = (graph - flow).tocoo()
    left: dict[int, list[int]] = {}
    for a, b, c in zip(*rest.coords, rest.data, strict=True):
        if c > 0:
            left.setdefault(int(a), []).append(int(b))
    reachable = np.zeros(n, bool)
    stack = [source]
    reachable[source] = True
    while stack:
        for b in left.get(stack.pop(), ()):
            if not reachable[b]:
                reachable[b] = True
                stack.append(b)
    return reachable


def _reverse_body(
    joint: Tape, n_primal: int, counts: tuple[int, int], residuals: list[int], outputs: list[int]
) -> Tape:
    n_carry, _ = counts
    b = Builder()
    inputs = joint.inputs.tolist()
    env = {inputs[0]: b.input(joint.rows[inputs[0]].type)}
    for k in residuals:
        env[k] = b.input(joint.rows[k].type)
    for k in inputs[1 + n_carry :]:
        fed = b.input(joint.rows[k].type)
        env.setdefault(k, fed)
    live = needed(joint, outputs, known=set(env))
    for k in range(len(joint)):
        if live[k] and k not in env:
            env[k] = b.copy_row(joint, k, env)
    return b.tape(env[k] for k in outputs)
