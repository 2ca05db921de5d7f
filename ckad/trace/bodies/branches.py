"""A branch inside a traced function: both sides are recorded and become one COND row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import CarryError, ConcreteValueError
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.trace.memory.context import current, mark_place, open_trace
from ckad.trace.memory.storage import Storage
from ckad.trace.values.apply import astype
from ckad.trace.values.tracer import Tracer, fresh, lift, value


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """``ckad.cond`` while tracing."""
    mark_place(current())
    if not isinstance(pred, Tracer):
        return run_side(true_fun if pred else false_fun, operands)
    if pred.shape:
        raise ConcreteValueError.here(
            f"the condition has shape {pred.shape}; pass a scalar, for example np.any(x)."
        )
    leaves, tree = trees.flatten(operands)
    traced = [lift(x) for x in leaves]
    sides = [_record(fun, tree, traced) for fun in (true_fun, false_fun)]
    _check_sides(sides[0], sides[1])
    return _cond_row(astype(pred, bool), traced, sides)


def run_side(fun: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The branch of a condition known now, apart from its surroundings as a recorded one is.

    What it writes into its operands, and what is written into its results, reaches nothing else.
    """
    return trees.map_leaves(_own, fun(*trees.map_leaves(_own, operands)))


def _own(x: Any) -> Any:
    if isinstance(x, Tracer):
        return fresh(value(x), scalar=x.scalar)
    return x.copy() if isinstance(x, np.ndarray) else x


class _Side:
    """One recorded branch."""

    def __init__(self, tape: Tape, captured: list[int], tree: trees.Treedef, scalars: list[bool]):
        self.tape, self.captured, self.tree, self.scalars = tape, captured, tree, scalars


def _record(fun: Callable[..., Any], tree: trees.Treedef, operands: Sequence[Tracer]) -> _Side:
    with open_trace() as body:
        given = [Tracer(Storage(body, body.builder.input(x.type)), (), x.scalar) for x in operands]
        leaves, out_tree = trees.flatten(fun(*trees.unflatten(tree, given)))
        results = [lift(x) for x in leaves]
        tape = body.tape([value(x) for x in results])
        return _Side(tape, list(body.captured), out_tree, [x.scalar for x in results])


def _check_sides(one: _Side, other: _Side) -> None:
    if one.tree != other.tree:
        raise CarryError.here(
            f"the two sides of the branch return different structures, {trees.describe(one.tree)} "
            f"and {trees.describe(other.tree)}. Return the same structure from both."
        )
    for k, (a, b) in enumerate(zip(one.tape.output_types, other.tape.output_types, strict=True)):
        if a != b:
            raise CarryError.here(
                f"result {k} of the branch is {a} on the true side and {b} on the false side. "
                "Return the same shapes and dtypes from both (0.0 instead of 0)."
            )


def _cond_row(pred: Tracer, operands: Sequence[Tracer], sides: Sequence[_Side]) -> Any:
    b = current().builder
    captured = list(dict.fromkeys(x for side in sides for x in side.captured))
    bodies = [b.body(_with_captures(b, side, len(operands), captured)) for side in sides]
    rows = [value(pred), *(value(x) for x in operands), *captured]
    results = b.control(Op.COND, rows, bodies, sides[0].tape.output_types)
    both = zip(sides[0].scalars, sides[1].scalars, strict=True)
    shown = [fresh(r, scalar=s and t) for r, (s, t) in zip(results, both, strict=True)]
    return trees.unflatten(sides[0].tree, shown)


def _with_captures(outer: Builder, side: _Side, n_operands: int, captured: list[int]) -> Tape:
    """The side's tape with inputs for everything that either side captures."""
    b, env = Builder(), dict[int, int]()
    inputs = side.tape.inputs.tolist()
    for k in inputs[:n_operands]:
        env[k] = b.input(side.tape.rows[k].type)
    own = dict(zip(side.captured, inputs[n_operands:], strict=True))
    for x in captured:
        fed = b.input(outer.type(x))
        if x in own:
            env[own[x]] = fed
    for k in range(len(side.tape)):
        if k not in env:
            env[k] = b.copy_row(side.tape, k, env)
    return b.tape(env[k] for k in side.tape.outputs.tolist())
