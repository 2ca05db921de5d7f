"""``vmap``: a function of one member, for all members of a batch at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import BatchError, DifferentiationError, UnfinishedError
from ckad.loops.driver import Options
from ckad.passes import pipeline
from ckad.tape.tape import Tape
from ckad.trace.record import named
from ckad.trace.source import follow
from ckad.trace.values.tracer import Tracer
from ckad.tracebacks import trimmed
from ckad.transforms import attempts
from ckad.transforms.call import Call, resolved
from ckad.transforms.gradients import Gradient
from ckad.transforms.reuse import Transformed

#: The axis of each leaf along which its members lie, or None where all share it.
Axis = int | None


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    engine: str = "auto",
    threads: int | None = None,
) -> Batched:
    """Make a function that runs ``fun`` for all members of a batch, in one program.

    Args:
        fun: takes the arrays of one member; it may be what `grad` or `value_and_grad` made, whose
            budget is then that of all members together.
        in_axes: the axis along which the members of an argument lie, None for one that all share;
            a tuple with one entry per argument, or a single one for all. An entry may be a tuple,
            list or dict like the argument itself. Keyword arguments lie along their first axis.
        out_axes: the axis along which the members of a result are stacked; like ``in_axes``, but
            without None.
        engine, threads: those of `jit`; a gradient brings its own.

    Returns:
        A function of arguments with one axis more, which may itself be transformed.

    Raises:
        BatchError: the arguments have no common number of members.
        TraceError: ``fun`` does something that ckad cannot record.

    Where members leave a loop or take a branch on their own they run one after the other there.

    >>> import numpy as np, ckad
    >>> def decay(x, rate):
    ...     for _ in range(3):
    ...         x = x - rate * x
    ...     return x
    >>> print(ckad.vmap(decay, in_axes=(None, 0))(8.0, np.array([0.0, 0.5])))
    [8. 1.]
    >>> print(ckad.vmap(ckad.grad(lambda x: x**2))(np.array([1.0, 2.0])))
    [2. 4.]
    """
    return Batched(fun, in_axes, out_axes, Options(engine=engine, threads=threads))


@dataclass(frozen=True)
class Batched(Transformed):
    """A function for all members of a batch; made by `vmap`."""

    fun: Callable[..., Any]
    in_axes: Any
    out_axes: Any
    options: Options

    @property
    def asked(self) -> Hashable:
        return self.in_axes, self.out_axes, self.options.key

    @trimmed
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fun, batch = self._given(args, kwargs)
        try:
            result = self._together(fun, batch)
        except BatchError:
            result = _one_by_one(fun, batch, self.options)
        return _placed(self.out_axes, result)

    def __repr__(self) -> str:
        return f"<{named(self.fun)} for the members of a batch>"

    def _given(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Members]:
        """The function of all arguments by position, and these as members."""
        entries = self.in_axes
        if not isinstance(entries, (tuple, list)):
            entries = [entries] * len(args)
        if len(entries) != len(args):
            raise _refused(f"in_axes has {len(entries)} entries for {len(args)} arguments")
        fun = self.fun if not kwargs else _by_position(self.fun, len(args), tuple(kwargs))
        return fun, members((*args, *kwargs.values()), (*entries, *[0] * len(kwargs)))

    def _together(self, fun: Callable[..., Any], batch: Members) -> Any:
        first = batch.member(0)
        if isinstance(fun, Gradient):
            with attempts.for_all_numbers():
                call, _, layout = fun.prepare(first, {})
            call.check_for_all()
            call.options = _chosen(call, fun.options, batch.n)
            tape = _gradients(call, layout.wrt, batch.inputs(call), batch.n)
            return fun.shown(call, layout, batch.run(call, tape))
        with attempts.for_all_numbers():
            call = Call(fun, first, {}, self.options)
        call.check_for_all()
        call.options = _chosen(call, self.options, batch.n)
        if trees.has_matrix(call.recording.out_tree):
            raise DifferentiationError.here(
                f"ckad.vmap: {call.name} returns a sparse matrix, with no axis of members. "
                "Return its product with a vector, its .toarray(), or its .data."
            )
        tape = call.made(pipeline.members, batch.inputs(call), batch.n)
        return call.results(batch.run(call, tape))


def _chosen(call: Call, options: Options, n: int) -> Options:
    """The options with the engine for so many members: what is little for one may be much."""
    if not isinstance(options.progress, bool):  # it may be another function each time
        return resolved(call.tape, options, n)
    return call.once(("members", n, options), lambda: resolved(call.tape, options, n))


def _gradients(call: Call, *about: Any) -> Tape:
    """All members side by side, or one after the other where a loop has its own length for each."""

    def found() -> Tape:
        try:
            return call.made(pipeline.gradients, *about)
        except BatchError:
            return call.made(pipeline.gradients_apart, *about)

    return call.once(("gradients", about, call.contracts), found)


@dataclass(frozen=True)
class Members:
    """Arguments taken apart, their members along the first axis of each leaf that has an axis."""

    leaves: list[Any]
    axes: list[Axis]
    own_trees: list[trees.Treedef]  # one per argument
    n: int

    def member(self, k: int) -> tuple[Any, ...]:
        """The arguments of one call."""
        left = [
            x if axis is None else _item(x, k)
            for x, axis in zip(self.leaves, self.axes, strict=True)
        ]
        args = []
        for tree in self.own_trees:
            args.append(trees.unflatten(tree, left[: tree.num_leaves]))
            left = left[tree.num_leaves :]
        return tuple(args)

    def inputs(self, call: Call) -> tuple[bool, ...]:
        """Which inputs of a call's tape are batched; BatchError if a batched leaf is none."""
        traced = call.arguments.traced
        for leaf, axis in enumerate(self.axes):
            if axis is not None and leaf not in traced:
                raise BatchError(f"{call.name} asks for the numbers in an argument that is batched")
        own = [self.axes[leaf] is not None for leaf in traced]
        return (*own, *[False] * (len(call.tape.inputs) - len(own)))

    def run(self, call: Call, tape: Any) -> list[Any]:
        call.arguments = call.arguments._replace(leaves=self.leaves)
        call.members = self.inputs(call), self.n
        try:
            return call.run(tape)
        except UnfinishedError as error:
            if call.recording.may_meet(error):
                raise BatchError("one of the members is told that its solution has ended") from None
            raise


def members(args: Sequence[Any], entries: Sequence[Any]) -> Members:
    """The arguments apart, each leaf with its members first."""
    leaves: list[Any] = []
    axes: list[Axis] = []
    own_trees = []
    for k, (arg, entry) in enumerate(zip(args, entries, strict=True)):
        own, tree = trees.flatten(arg)
        own_axes = _axes(entry, arg, f"in_axes of argument {k}")
        for leaf, axis in zip(own, own_axes, strict=True):
            leaves.append(leaf if axis is None else _members_first(leaf, axis, k))
        axes += own_axes
        own_trees.append(tree)
    lengths = {x.shape[0] for x, axis in zip(leaves, axes, strict=True) if axis is not None}
    if len(lengths) != 1 or 0 in lengths:
        found = ", ".join(map(str, sorted(lengths))) or "none"
        raise _refused(f"the arguments have to have one number of members, at least 1; got {found}")
    return Members(leaves, axes, own_trees, lengths.pop())


def _axes(entry: Any, tree: Any, what: str) -> list[Axis]:
    """The axis of each leaf of ``tree``, from an entry like it or like what is around it."""
    if entry is None or (isinstance(entry, int) and not isinstance(entry, bool)):
        return [entry] * len(trees.flatten(tree)[0])
    if isinstance(entry, dict) and isinstance(tree, dict) and entry.keys() == tree.keys():
        ordered = {key: _axes(entry[key], tree[key], what) for key in entry}
        return [axis for key in sorted(tree) for axis in ordered[key]]
    both = isinstance(entry, (tuple, list)) and isinstance(tree, (tuple, list))
    if both and len(entry) == len(tree):
        return [axis for e, t in zip(entry, tree, strict=True) for axis in _axes(e, t, what)]
    raise _refused(f"{what} is {entry!r}; pass an int, None, or a structure like the argument's")


def _members_first(leaf: Any, axis: int, argument: int) -> Any:
    rank = len(leaf.shape) if isinstance(leaf, (Tracer, np.ndarray)) else 0
    if not -rank <= axis < rank:
        kind = f"an array with {rank} axes" if rank else f"a {type(leaf).__name__}"
        raise _refused(f"argument {argument} holds {kind}, which has no axis {axis}")
    moved = leaf if axis in (0, -rank) else np.moveaxis(leaf, axis, 0)
    return np.ascontiguousarray(moved) if isinstance(moved, np.ndarray) else moved


def _item(x: Any, k: int) -> Any:
    """Member k: a NumPy scalar where that is one float, else an array."""
    member = x[k]
    is_number = isinstance(member, np.generic) and member.dtype.kind != "f"
    return np.asarray(member) if is_number else member


def _by_position(fun: Callable[..., Any], n: int, names: Sequence[str]) -> Callable[..., Any]:
    @wraps(fun)
    def by_position(*args: Any) -> Any:
        return follow(fun)(*args[:n], **dict(zip(names, args[n:], strict=True)))

    return by_position


def _one_by_one(fun: Callable[..., Any], batch: Members, options: Options) -> Any:
    """The results of one call each, stacked."""
    flat = []
    for k in range(batch.n):
        leaves, tree = trees.flatten(follow(fun)(*batch.member(k)))
        flat.append(leaves)
    return trees.unflatten(tree, [np.stack(parts) for parts in zip(*flat, strict=True)])


def _placed(out_axes: Any, result: Any) -> Any:
    if isinstance(out_axes, int) and out_axes == 0:
        return result
    leaves, tree = trees.flatten(result)
    moved = []
    for x, axis in zip(leaves, _axes(out_axes, result, "out_axes"), strict=True):
        if axis is None:
            raise _refused("out_axes holds None; every result has an axis of members")
        moved.append(np.moveaxis(x, 0, axis))
    return trees.unflatten(tree, moved)


def _refused(why: str) -> BatchError:
    return BatchError.here(f"ckad.vmap: {why}.")
