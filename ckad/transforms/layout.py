"""Where the gradients of a tape belong in pytrees like the arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad import trees
from ckad.errors import DifferentiationError
from ckad.trace.given import alone, holds_computed
from ckad.trace.values.tracer import Tracer
from ckad.transforms.call import Call
from ckad.transforms.reuse import finished


class Layout(NamedTuple):
    """Where the gradients by the inputs ``wrt`` belong in pytrees like the arguments."""

    wrt: tuple[int, ...]
    scalars: list[bool]  # which are NumPy scalars rather than 0-d arrays
    own_trees: list[trees.Treedef]  # one per argument
    single: bool  # one pytree alone, not a tuple of several
    flat: bool  # one gradient per argument, and nothing around it
    imaginary: list[bool]  # which are by the imaginary part of a complex number
    has_made: bool  # objects among them stand for themselves by what they were given

    def structured(self, gradients: Sequence[Any]) -> Any:
        left = finished(gradients, self.scalars)
        left = left if self.flat else conjugated(left, self.imaginary)
        out = left if self.flat else []
        for own in () if self.flat else self.own_trees:
            tree = trees.unflatten(own, left[: own.num_leaves])
            out.append(alone(tree) if self.has_made else tree)
            left = left[own.num_leaves :]
        return out[0] if self.single else tuple(out)


def layout_of(call: Call, numbers: Sequence[int], single: bool) -> Layout:
    """The layout of the gradients by the arguments ``numbers``; an error if one has no floats."""
    wrt = tuple(k for n in numbers for k in _differentiable(call, n))
    arrays = call.arguments.arrays
    own_trees = [call.arguments.own_trees[n] for n in numbers]
    flat = all(own.num_nodes == own.num_leaves == 1 for own in own_trees)
    scalars = [_is_scalar(arrays[k]) for k in wrt]
    imaginary = [part for own in own_trees for part in trees.imaginary(own)]
    made = call.arguments.has_made
    return Layout(wrt, scalars, own_trees, single, flat, imaginary, made)


def conjugated(leaves: Sequence[Any], imaginary: Sequence[bool]) -> list[Any]:
    """The leaves of complex values conjugated: a gradient is ``df/dx - i df/dy``."""
    return [-x if part else x for x, part in zip(leaves, imaginary, strict=True)]


def _is_scalar(x: Any) -> bool:
    return x.scalar if isinstance(x, Tracer) else not isinstance(x, np.ndarray)


def _differentiable(call: Call, argument: int) -> list[int]:
    """The tape inputs of one argument; an error if a leaf of it is not a float."""
    check_given(call, argument)
    inputs = call.arguments.inputs_of(argument)
    types = call.tape.input_types
    for k, leaf in zip(inputs, call.arguments.spans[argument], strict=True):
        if k < 0 or not types[k].is_float:
            found = call.arguments.leaves[leaf]
            kind = f"dtype {types[k].numpy}" if k >= 0 else type(found).__name__
            raise DifferentiationError.here(
                f"argument {argument} of {call.name} holds {kind}, which cannot be "
                f"differentiated by. {_remedy(found)}, or leave the argument out of argnums."
            )
    if not inputs:
        raise DifferentiationError.here(
            f"argument {argument} of {call.name} holds no arrays, so there is nothing to "
            "differentiate by. Pass an array, or leave the argument out of argnums."
        )
    return inputs


def check_given(call: Call, argument: int) -> None:
    """Refuse an object whose class would have computed other attributes."""
    if kind := holds_computed(call.arguments.own_trees[argument]):
        raise DifferentiationError.here(
            f"argument {argument} of {call.name} is, or holds, a {kind} that is not what its "
            "__post_init__ makes of its fields, so that what follows from them is not known. Pass "
            "these fields, and make the object in the function; or leave the argument out of "
            "argnums."
        )


def _remedy(found: Any) -> str:
    if isinstance(found, (np.ndarray, Tracer, int)):
        return "Pass floats (2.0 instead of 2, or .astype(np.float64))"
    if np.asarray(found).dtype.kind in "fiub":  # a table, a buffer
        return "Pass its numbers as an array, np.asarray(x)"
    return "Pass its numbers alone, as arrays in a tuple, a dict or a dataclass"
