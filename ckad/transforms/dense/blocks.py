"""Jacobians and Hessians of pytrees: a block for each array of the result and of the arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import DifferentiationError
from ckad.passes import pipeline
from ckad.tape.types import Type
from ckad.transforms.call import Call
from ckad.transforms.gradients import Gradient
from ckad.transforms.lanes import in_lanes
from ckad.transforms.layout import Layout, layout_of


def jacobian_blocks(call: Call, numbers: Sequence[int], single: bool, mode: str) -> Any:
    """The structure of the result, at each array that of the arguments ``numbers``, of blocks."""
    layout = layout_of(call, numbers, single)
    tree = trees.of_numbers(call.recording.out_tree)
    _real(layout, numbers)
    _of_arrays(tree, "the result")
    ins, outs = [call.tape.input_types[k] for k in layout.wrt], call.tape.output_types
    moving = [t for t in outs if t.is_float]
    n_inputs = len(call.tape.inputs)
    if mode == "rev" or (mode == "auto" and sum(map(_size, outs)) < sum(map(_size, ins))):
        about: tuple[Any, ...] = layout.wrt, n_inputs
        by_input = _rows(call, pipeline.pullbacks, about, moving, ins)
        rows = [list(row) for row in zip(*by_input, strict=True)]
    else:
        about = layout.wrt, n_inputs, len(outs)
        by_output = _rows(call, pipeline.pushforwards, about, ins, moving)
        rows = [[_turned(x, t) for x, t in zip(row, ins, strict=True)] for row in by_output]
    found = iter(rows)
    still = [[np.zeros((*t.shape, *x.shape)) for x in ins] for t in outs if not t.is_float]
    others = iter(still)
    blocks = [layout.structured(next(found if t.is_float else others)) for t in outs]
    return trees.unflatten(tree, blocks)


def hessian_blocks(fun: Gradient, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The structure of the arguments of the gradient, at each array the same again, of blocks."""
    call, _, layout = fun.prepare(args, kwargs)
    _real(layout, fun.numbers(len(args)))
    call.assured()
    types = [call.tape.input_types[k] for k in layout.wrt]
    about = layout.wrt, layout.wrt, len(call.tape.inputs)
    rows = _rows(call, pipeline.hvps, about, types, types)
    turned = [[_turned(x, t) for x, t in zip(row, types, strict=True)] for row in rows]
    whole = layout._replace(scalars=[False] * len(types))  # of structures, not of numbers
    return whole.structured([layout.structured(row) for row in turned])


def _rows(
    call: Call, product: Any, about: tuple[Any, ...], units: Sequence[Type], of: Sequence[Type]
) -> list[list[Any]]:
    """What ``product`` gives for a one at each element of ``units``: per array of ``of`` one block
    for each of ``units``, whose axes come first."""
    sizes = [_size(t) for t in units]
    n = sum(sizes)
    if not (n and of):
        return [[np.zeros((*t.shape, *x.shape), x.numpy) for t in units] for x in of]
    ends = np.cumsum(sizes)
    parts = np.split(np.eye(n), ends[:-1], axis=1)
    given = [
        part.reshape(n, *t.shape).astype(t.numpy) for part, t in zip(parts, units, strict=True)
    ]
    return [
        [
            np.reshape(x[end - size : end], (*t.shape, *of_type.shape))
            for end, size, t in zip(ends.tolist(), sizes, units, strict=True)
        ]
        for x, of_type in zip(in_lanes(call, product, about, given), of, strict=True)
    ]


def _turned(block: Any, first: Type) -> Any:
    """The first axes, those of ``first``, last."""
    n = len(first.shape)
    return np.moveaxis(block, range(n), range(-n, 0)) if n else block


def _size(kind: Type) -> int:
    return math.prod(kind.shape)


def _real(layout: Layout, numbers: Sequence[int]) -> None:
    for n, own in zip(numbers, layout.own_trees, strict=True):
        _of_arrays(own, f"argument {n}")


def _of_arrays(tree: trees.Treedef, what: str) -> None:
    """A structure whose leaves are arrays of real numbers, or an error."""
    if tree.type is trees.Complex:
        raise DifferentiationError.here(
            f"{what} is complex; jacobian and hessian take and return real arrays. Take or "
            "return the real and the imaginary part, or use ckad.vjp and ckad.jvp."
        )
    if tree.type in (trees.Record, trees.Matrix):
        kind = "has named fields" if tree.type is trees.Record else "is a sparse matrix"
        raise DifferentiationError.here(
            f"{what} {kind}; jacobian and hessian take and return arrays of numbers. Pass a "
            "field, or the numbers of a matrix, or use ckad.vjp and ckad.jvp."
        )
    for child in tree.children():
        _of_arrays(child, what)
