"""Derivative rules that the user gives: recorded as tapes, turned into each other, appended.

A rule's tape goes from (directions, results, operands) to directions: tangents of the float
operands to those of the float results, or cotangents the other way. It is linear in them, so that
one rule is the other one transposed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ckad import trees
from ckad.errors import DifferentiationError
from ckad.passes import pipeline
from ckad.place import Source
from ckad.rules.registry import Contribution, Tangents
from ckad.tape.builder import Builder
from ckad.tape.tape import Tape
from ckad.tape.types import Type
from ckad.trace.arguments import Arguments
from ckad.trace.memory.context import Trace, current, open_trace
from ckad.trace.memory.storage import Storage
from ckad.trace.record import note_given
from ckad.trace.source.outside.guard import Guard
from ckad.trace.source.outside.watch import watching
from ckad.trace.values.apply import astype
from ckad.trace.values.tracer import Tracer, lift, value
from ckad.transforms.primitives.forms import Leaf, Results, converted

#: (args, kwargs, tangents of the args) -> the tangent of the result
Push = Callable[[Any, Any, Any], Any]
#: (cotangent of the result, the result, args, kwargs) -> a cotangent per positional argument
Pull = Callable[[Any, Any, Any, Any], Any]


class Rule(NamedTuple):
    """A rule as a tape, and what it read from outside when it was recorded."""

    tape: Tape  # as it is appended
    present: tuple[bool, ...]  # of the float operands, those that it has a derivative by
    recorded: bytes  # the contents of what was recorded
    guard: Guard | None


class _Checking(threading.local):
    def __init__(self) -> None:
        self.now: set[int] = set()


_checking = _Checking()


class _Making(threading.local):
    def __init__(self) -> None:
        self.now: set[tuple[int, str]] = set()


_making = _Making()


class Known(NamedTuple):
    """A result that is known where a rule is recorded: rules often call their function again."""

    owner: tuple[Any, ...]
    trace: Trace
    operands: list[int]
    out: Any


class _Recording(threading.local):
    def __init__(self) -> None:
        self.known: list[Known] = []


_recording = _Recording()


def known_result(owner: tuple[Any, ...], operands: Sequence[int]) -> Any:
    """What a function gives of these rows, if a rule of it is recorded for them; None if not."""
    for known in _recording.known[-1:]:
        here = known.trace is current() and known.operands == list(operands)
        if here and known.owner and known.owner[0] is owner[0] and known.owner == owner:
            return known.out
    return None


@dataclass(eq=False)
class Derivatives:
    """The derivatives of one function for arguments of one form."""

    name: str
    arguments: Arguments  # with examples as leaves
    operands: tuple[Leaf, ...]
    results: Results  # those that lie in the packed array
    whole: Results  # and all of them
    push: Push | None
    pull: Pull | None
    gets_results: bool  # whether the packed array has all of them
    first: int = 0  # of the routine's operands, that which is the first argument
    owner: tuple[Any, ...] = ()  # the function, and which of it this is

    def __post_init__(self) -> None:
        self._rules: dict[str, Rule] = {}
        self._is_retired = False
        self.floats = [k for k, leaf in enumerate(self.operands) if leaf.type.is_float]

    @property
    def is_current(self) -> bool:
        """Whether the rules would be recorded as they were."""
        if self._is_retired or id(self) in _checking.now:
            return not self._is_retired
        _checking.now.add(id(self))
        try:
            self._is_retired = not all(self._holds(*item) for item in [*self._rules.items()])
        finally:
            _checking.now.discard(id(self))
        return not self._is_retired

    def _holds(self, which: str, rule: Rule) -> bool:
        if (self.push if which == "jvp" else self.pull) is None:
            return True  # it follows from the other one
        if rule.guard is not None:
            return rule.guard.holds()
        now = self._recorded(which)
        return now.recorded == rule.recorded and now.present == rule.present

    # --- as a routine has them -----------------------------------------------------------------

    def jvp(
        self, b: Builder, tangents: Tangents, out: int, *operands: int, attrs: Sequence[int] = ()
    ) -> int | None:
        place, first, n = b.where, self.first, len(self.operands)
        self._refuse_captured(place, tangents[first + n :])
        own = tangents[first : first + n]
        if all(own[k] is None for k in self.floats):
            return None
        rule = self._rule("jvp", place)
        directions = []
        for k, present in zip(self.floats, rule.present, strict=True):
            t = own[k]
            if t is not None and k not in self._by_position():
                self._refuse_keyword(place)
            if present:
                type = self.operands[k].type
                directions.append(b.full(type, 0.0) if t is None else converted(b, t, type))
        given = self._given(b, out, operands[first : first + n])
        moved = iter(pipeline.appended(b, rule.tape, [*directions, *given]))
        b.where = place
        rows = [
            converted(b, next(moved), leaf.cells) if leaf.type.is_float
            else b.full(leaf.cells, 0)
            for leaf in self.results.leaves
        ]  # fmt: skip
        total = self.results.joined(b, rows)
        return converted(b, total, b.type(out))

    def vjp(
        self, b: Builder, ct: int, out: int, *operands: int, attrs: Sequence[int] = ()
    ) -> tuple[Contribution, ...]:
        place, first, n = b.where, self.first, len(self.operands)
        rule = self._rule("vjp", place)
        ct = converted(b, ct, self.results.packed)
        pieces = zip(self.results.leaves, self.results.pieces(b, ct), strict=True)
        cts = [piece for leaf, piece in pieces if leaf.type.is_float]
        given = self._given(b, out, operands[first : first + n])
        found = iter(pipeline.appended(b, rule.tape, [*cts, *given]))
        b.where = place
        contributions: list[Contribution] = [None] * len(operands)
        by_position = self._by_position()
        for k, present in zip(self.floats, rule.present, strict=True):
            if present:
                contributions[first + k] = converted(b, next(found), b.type(operands[first + k]))
            elif k not in by_position:
                contributions[first + k] = lambda b, so_far: self._refuse_keyword(place)
        for k in range(first + n, len(operands)):
            contributions[k] = lambda b, so_far: self._refuse_captured(place, (0,))
        return tuple(contributions)

    def _given(self, b: Builder, out: int, operands: Sequence[int]) -> list[int]:
        results = self.results.pieces(b, out) if self.gets_results else []
        pairs = zip(self.operands, operands, strict=True)
        return [*results, *(converted(b, x, leaf.type) for leaf, x in pairs)]

    def _by_position(self) -> set[int]:
        """Operands that are in positional arguments."""
        spans = self.arguments.spans[0]
        return {k for k, leaf in enumerate(self.arguments.traced) if leaf in spans}

    def _refuse_keyword(self, place: Source) -> int:
        raise self._error(
            place, "is differentiated by an argument that is passed by name. Pass it by position"
        )

    def _refuse_captured(self, place: Source, tangents: Sequence[int | None]) -> int:
        if any(t is not None for t in tangents):
            raise self._error(
                place,
                "is differentiated by a traced value that it reads from the function around it, "
                "which its rule does not know. Pass that value as an argument",
            )
        return -1

    def _error(self, place: Source | None, says: str) -> DifferentiationError:
        return DifferentiationError.here(f"{self.name} {says}.", place)

    # --- the tapes -------------------------------------------------------------------------------

    def _rule(self, which: str, place: Source) -> Rule:
        if which not in self._rules:
            making = _making.now
            if (id(self), which) in making:
                own = "JVP" if which == "vjp" else "VJP"
                raise self._error(
                    place,
                    f"has a {own} rule that calls it with directions: the other rule would follow "
                    f"from itself. Give that by .def{which}",
                )
            making.add((id(self), which))
            try:
                self._rules[which] = self._made(which, place)
            finally:
                making.discard((id(self), which))
        return self._rules[which]

    def _made(self, which: str, place: Source) -> Rule:
        own, other = (self.push, self.pull) if which == "jvp" else (self.pull, self.push)
        if own is not None:
            return self._recorded(which)
        if other is None:
            raise self._error(
                place, "has no derivative. Give it a rule by .defvjp or .defjvp, or keep what it "
                "computes out of derivatives by ckad.stop_gradient of its arguments"
            )  # fmt: skip
        rule = self._rule("vjp" if which == "jvp" else "jvp", place)
        n = sum(rule.present) if which == "vjp" else self._n_results()
        return rule._replace(tape=self._transposed(rule.tape, n, which, place))

    def _n_results(self) -> int:
        return sum(leaf.type.is_float for leaf in self.results.leaves)

    def _transposed(self, tape: Tape, n: int, which: str, place: Source) -> Tape:
        """The rule from directions of what ``tape`` gives to those of what it takes."""
        turned = pipeline.transposed(tape, n)
        if turned is None:
            own, given = ("jvp", "vjp") if which == "vjp" else ("vjp", "jvp")
            raise self._error(
                place,
                f"has a {own.upper()} rule that is not linear in its directions, so that no "
                f"{given.upper()} follows from it. Give that by .def{given}",
            )
        return turned

    def _recorded(self, which: str) -> Rule:
        run = self._run_push if which == "jvp" else self._run_pull
        with watching() as watched, open_trace() as trace, _known(self.owner, trace):
            outputs, present = run(trace)
            raw = trace.tape(outputs)
            if trace.captured:
                raise self._error(
                    None, f"has a {which.upper()} rule that reads a traced value of the function "
                    "around it. Pass that value as an argument"
                )  # fmt: skip
        guard = watched.guard if watched.reason is None else None
        tape = pipeline.recorded().then(pipeline.inlined()).run(raw)
        return Rule(tape, present, raw.digest, guard)

    def _run_push(self, trace: Trace) -> tuple[list[int], tuple[bool, ...]]:
        assert self.push is not None
        tangents = [tracer_of(trace, self.operands[k]) for k in self.floats]
        _, args, kwargs = self._inputs(trace)
        traced = dict(zip((self.arguments.traced[k] for k in self.floats), tangents, strict=True))
        leaves = [traced.get(k) for k in range(len(self.arguments.leaves))]
        moved = trees.unflatten(self.arguments.treedef, leaves)[0]
        note_given(self.push, (args, kwargs, moved), {})
        found = self._matched(self.whole.tree, self.push(args, kwargs, moved), "tangent")
        rows = [
            self._row(x, leaf.type, f"the tangent of result {k}")
            for k, (x, leaf) in enumerate(zip(found, self.whole.leaves, strict=True))
            if leaf.type.is_float
        ]
        return rows, (True,) * len(self.floats)

    def _run_pull(self, trace: Trace) -> tuple[list[int], tuple[bool, ...]]:
        assert self.pull is not None
        cts = [tracer_of(trace, x) if x.type.is_float else None for x in self.whole.leaves]
        out, args, kwargs = self._inputs(trace)
        ct = trees.unflatten(self.whole.tree, cts)
        note_given(self.pull, (ct, out, args, kwargs), {})
        found = self.pull(ct, out, args, kwargs)
        if type(found) not in (tuple, list) or len(found) != len(args):
            what = f"{len(found)} of them" if type(found) in (tuple, list) else type(found).__name__
            raise self._error(
                None, f"takes {len(args)} arguments by position, and its VJP rule returns {what}. "
                "Return a tuple with a cotangent for each, None where that is zero"
            )  # fmt: skip
        structures = self.arguments.treedef.children()[0].children()
        leaves = [
            x for tree, ct in zip(structures, found, strict=True)
            for x in ([None] * tree.num_leaves if ct is None
                      else self._matched(tree, ct, "cotangent of an argument"))
        ]  # fmt: skip
        rows, present = [], []
        for k in self.floats:
            at = self.arguments.traced[k]
            x = leaves[at] if at < len(leaves) else None
            present.append(x is not None)
            if x is not None:
                rows.append(self._row(x, self.operands[k].type, f"the cotangent of operand {k}"))
        return rows, tuple(present)

    def _inputs(self, trace: Trace) -> tuple[Any, Any, Any]:
        """The result, if it is given, and the arguments."""
        out = None
        if self.gets_results:
            outs = [tracer_of(trace, leaf) for leaf in self.whole.leaves]
            out = trees.unflatten(self.whole.tree, outs)
        primals = [tracer_of(trace, leaf) for leaf in self.operands]
        if self.gets_results:
            rows = [x.storage.row for x in primals]
            _recording.known[-1] = Known(self.owner, trace, rows, out)
        args, kwargs = self.arguments.rebuild(primals)
        return out, args, kwargs

    def _matched(self, tree: trees.Treedef, x: Any, what: str) -> list[Any]:
        """The leaves of something with the structure ``tree``, None where it has none."""
        try:
            leaves: list[Any] = tree.flatten_up_to(x)
        except ValueError:
            shown = trees.describe(trees.flatten(x)[1])
            raise self._error(
                None, f"has a rule that returns {shown} as the {what}, where "
                f"{trees.describe(tree)} is needed"
            ) from None  # fmt: skip
        return leaves

    def _row(self, x: Any, type: Type, what: str) -> int:
        found = lift(0.0 if x is None and not type.shape else x) if x is not None else None
        if found is None:
            found = lift(np.zeros(type.shape, type.numpy))
        if found.shape != type.shape:
            raise self._error(
                None, f"has a rule that gives {what} the shape {found.shape}, where "
                f"{type.shape} is needed"
            )  # fmt: skip
        return value(astype(found, type.numpy))


@contextmanager
def _known(owner: tuple[Any, ...], trace: Trace) -> Iterator[None]:
    """Room for a known result of the function whose rule is recorded."""
    _recording.known.append(Known(owner, trace, [-1], None))
    try:
        yield
    finally:
        _recording.known.pop()


def tracer_of(trace: Trace, leaf: Leaf) -> Tracer:
    row = trace.builder.input(leaf.type)
    return Tracer(Storage(trace, row), (), leaf.kind != "array", leaf.kind == "number")


def with_examples(arguments: Arguments, leaves: Sequence[Leaf]) -> Arguments:
    """Arguments of the same form that hold on to nothing large or traced."""
    found = list(arguments.leaves)
    for k, leaf in zip(arguments.traced, leaves, strict=True):
        found[k] = leaf.example()
    return arguments._replace(leaves=found)
