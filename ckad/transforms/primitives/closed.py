"""Functions recorded by themselves: what they read from the program around them is a parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ckad import trees
from ckad.passes import dependence, pipeline
from ckad.tape.tape import Tape
from ckad.trace.arguments import take_apart
from ckad.trace.record import inline, record
from ckad.trace.values.tracer import Tracer, fresh, lift, value


class Closed:
    """``fun`` of one array, and the traced values that it reads from outside.

    Called with the array and these values, or others in their place, it may be used in any other
    recording; as many times as it is called its rows are there.
    """

    def __init__(self, fun: Callable[[Any], Any], example: Any) -> None:
        recording = record(fun, take_apart((example,)))
        self.tape, self._tree = recording.tape, recording.out_tree
        self._scalars = recording.out_scalars
        self.parameters = tuple(fresh(row) for row in recording.captured)

    def __call__(self, x: Any, parameters: Sequence[Any]) -> Any:
        rows = [value(lift(p)) for p in (x, *parameters)]
        pairs = zip(inline(self.tape, rows), self._scalars, strict=True)
        found = [Tracer(t.storage, (), scalar) for t, scalar in pairs]
        tree = self._tree
        return found[0] if tree.num_nodes == tree.num_leaves == 1 else trees.unflatten(tree, found)

    def transposed(self) -> Tape | None:
        """From a cotangent of the result and the parameters to that of the array; None if the
        result is not linear in the array."""
        tape = pipeline.recorded().then(pipeline.inlined()).run(self.tape)
        return pipeline.transposed(tape, 1)


def as_now(fun: Callable[..., Any], *examples: Any) -> Callable[..., Any]:
    """``fun`` with what it reads from outside as that is now, whenever it is called."""
    arguments = take_apart(examples)
    recording = record(fun, arguments)
    outside = [fresh(row) for row in recording.captured]

    def now(*given: Any) -> Any:
        rows = [value(lift(x)) for x in (*arguments.like(given).arrays, *outside)]
        pairs = zip(inline(recording.tape, rows), recording.out_scalars, strict=True)
        leaves = [Tracer(t.storage, (), scalar) for t, scalar in pairs]
        return trees.unflatten(recording.out_tree, leaves)

    return now


def has_kinks(fun: Callable[..., Any], *examples: Any) -> bool:
    """Whether ``fun`` chooses between formulas by its arguments, not by what it reads around it."""
    arguments = take_apart(examples)
    recording = record(fun, arguments)
    own, around = len(arguments.arrays), len(recording.captured)
    return dependence.has_kinks(recording.tape, [True] * own + [False] * around)


def floats(parameters: Sequence[Tracer]) -> list[int]:
    """Which of them are differentiated."""
    return [k for k, p in enumerate(parameters) if lift(p).type.is_float]


def replaced(parameters: Sequence[Any], moving: Sequence[Any]) -> list[Any]:
    """``parameters`` with others in the place of those that are floats."""
    others = dict(zip(floats(parameters), moving, strict=True))
    return [others.get(k, p) for k, p in enumerate(parameters)]
