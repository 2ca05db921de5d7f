"""A call's arguments, taken apart: what is traced, and what stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad import trees
from ckad.trace.given import given, has_made, holds_computed, whole
from ckad.trace.numbers_outside import Place
from ckad.trace.values.tracer import Tracer, concrete


class Arguments(NamedTuple):
    """A call's arguments, taken apart: the array leaves are traced, the others stay as they are."""

    leaves: list[Any]
    treedef: trees.Treedef
    traced: list[int]  # positions of the array leaves
    spans: list[range]  # leaf positions of each argument
    own_trees: list[trees.Treedef]  # structure of each argument
    flat: bool  # whether every argument is one leaf
    places: tuple[Place, ...] = ()  # from where the last of them are, which the function reads
    has_made: bool = False  # objects among them stand for themselves by what they were given

    @property
    def arrays(self) -> list[Any]:
        """The array leaves: plain arrays, or tracers of an enclosing transformation."""
        return [self.leaves[k] for k in self.traced]

    def like(self, args: Sequence[Any]) -> Arguments:
        """``args`` taken apart, which have the structure of these and leaves of the same kinds."""
        args = given(tuple(args)) if self.has_made else tuple(args)
        return Arguments._make(([*args] if self.flat else trees.flatten(args)[0], *self[1:]))

    def rebuild(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        leaves = list(self.leaves)
        for k, array in zip(self.traced, arrays, strict=True):
            leaves[k] = array
        args: tuple[Any, ...] = trees.unflatten(self.treedef, leaves)
        return whole(args) if self.has_made else args

    @property
    def integers(self) -> list[np.ndarray]:
        """The plain arrays of integers and bools among the leaves that are traced."""
        return [self.leaves[k] for k in self.traced if _is_integers(self.leaves[k])]

    def pinned(self) -> Arguments:
        """The same with plain arrays of integers and bools as they are, not traced."""
        leaves = [x.copy() if _is_integers(x) else x for x in self.leaves]
        return self._replace(
            leaves=leaves, traced=[k for k in self.traced if not _is_integers(leaves[k])]
        )

    def parts(self) -> list[int]:
        """Which of the array leaves are the real or imaginary part of a complex one."""
        imaginary = trees.imaginary(self.treedef)
        both = {k - real for k, found in enumerate(imaginary) if found for real in (0, 1)}
        return [k for k, leaf in enumerate(self.traced) if leaf in both]

    def inputs_of(self, argument: int) -> list[int]:
        """Which tape inputs the leaves of one argument are; -1 for a leaf that is not traced."""
        position = {leaf: k for k, leaf in enumerate(self.traced)}
        return [position.get(leaf, -1) for leaf in self.spans[argument]]


def take_apart(args: Sequence[Any]) -> Arguments:
    """Split arguments into leaves: arrays and floats are traced; ints, strings, functions not."""
    leaves: list[Any] = []
    spans: list[range] = []
    own_trees, known, made = [], [], False
    for arg in args:
        own, tree = trees.flatten(arg)
        if holds_computed(tree):
            arg = given(arg)
            own, tree = trees.flatten(arg)
            made = made or has_made(tree)
        own_trees.append(tree)
        spans.append(range(len(leaves), len(leaves) + len(own)))
        leaves.extend(own)
        known.append(arg)
    _, treedef = trees.flatten(tuple(known))
    traced = [k for k, x in enumerate(leaves) if is_traced(x)]
    for k in traced:
        if not isinstance(leaves[k], Tracer):
            leaves[k] = _keep_kind(leaves[k])
    flat = len(args) == treedef.num_leaves == treedef.num_nodes - 1
    return Arguments(leaves, treedef, traced, spans, own_trees, flat, has_made=made)


def _is_integers(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind in "iub"


def is_traced(leaf: Any) -> bool:
    """Whether a leaf becomes a tracer: arrays, floats and NumPy floats do."""
    return isinstance(leaf, (Tracer, np.ndarray, float, np.floating)) and not isinstance(leaf, bool)


def _keep_kind(leaf: Any) -> Any:
    if type(leaf) is float:
        return leaf
    array = concrete(leaf)
    return array if isinstance(leaf, np.ndarray) else array[()]
