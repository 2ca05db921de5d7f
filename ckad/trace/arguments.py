"""A call's arguments, taken apart: what is traced, and what stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import string_at
from typing import Any, NamedTuple

import numpy as np

from ckad import trees
from ckad.patterns import together
from ckad.trace.given import given, has_made, holds_computed, whole
from ckad.trace.numbers_outside import Place
from ckad.trace.overlap import meets, sharing
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
        leaves, traced = [*self.leaves], [*self.traced]
        for k, copied in _copied(self.leaves, self.treedef).items():
            leaves[k] = copied
            traced.remove(k)
        return self._replace(leaves=leaves, traced=traced)

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
    spans: list[range] = []
    own_trees, known, made, length = [], [], False, 0
    for arg in args:
        own, tree = trees.flatten(arg)
        if holds_computed(tree):
            arg = given(arg)
            own, tree = trees.flatten(arg)
            made = made or has_made(tree)
        own_trees.append(tree)
        spans.append(range(length, length + len(own)))
        length += len(own)
        known.append(arg)
    leaves, treedef = trees.flatten(tuple(known))
    traced = [k for k, x in enumerate(leaves) if is_traced(x)]
    for k in traced:
        if not isinstance(leaves[k], Tracer):
            leaves[k] = _keep_kind(leaves[k])
    flat = len(args) == treedef.num_leaves == treedef.num_nodes - 1
    return Arguments(leaves, treedef, traced, spans, own_trees, flat, has_made=made)


def _is_integers(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind in "iub"


def _copied(leaves: Sequence[Any], tree: trees.Treedef) -> dict[int, np.ndarray]:
    """By their places, copies of plain arrays of integers that share memory as the arrays do; not
    of short ones that share it, or what shares it with other arrays: these are put together anew,
    and nobody knows then what writes change."""
    shared = sharing(leaves)
    found = {k: x.copy() for k, x in enumerate(leaves) if _is_integers(x) and k not in shared}
    if not shared:
        return found
    short = _are_short(tree)
    others = [leaves[k] for k in shared if short[k] or not _is_integers(leaves[k])]
    alike = {
        id(leaves[k]): k for k in shared if _is_integers(leaves[k]) and not meets(leaves[k], others)
    }
    places = [k for k in shared if id(leaves[k]) in alike]
    for members, first, length in together([leaves[k] for k in alike.values()]):
        memory = bytearray(string_at(first, length))
        for x in members:
            at = x.ctypes.data - first
            copied = np.ndarray(x.shape, x.dtype, memory, at, x.strides)
            found.update({k: copied for k in places if leaves[k] is x})
    return found


def _are_short(tree: trees.Treedef) -> list[bool]:
    """Per leaf, whether it is the numbers of an array of short integers."""
    if tree.type is trees.ShortIntegers:
        return [True]
    children = tree.children()
    return [x for child in children for x in _are_short(child)] or [False] * tree.num_leaves


def is_traced(leaf: Any) -> bool:
    """Whether a leaf becomes a tracer: arrays, floats and NumPy floats do."""
    return isinstance(leaf, (Tracer, np.ndarray, float, np.floating)) and not isinstance(leaf, bool)


def _keep_kind(leaf: Any) -> Any:
    if type(leaf) is float:
        return leaf
    array = concrete(leaf)
    return array if isinstance(leaf, np.ndarray) else array[()]
