"""From a Python function and its arguments to a Tape."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CoroutineType
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import AliasError, CkadError, TraceError, UnfinishedError, UnknownLengthError
from ckad.place import Source, at_place
from ckad.tape.tape import Tape
from ckad.tape.types import type_of
from ckad.trace import dispatch, modules
from ckad.trace.arguments import Arguments
from ckad.trace.arrays import Deferred, made_whole
from ckad.trace.course import Course, course_of, unless
from ckad.trace.memory.context import (
    ALL,
    Given,
    Laborious,
    Most,
    Trace,
    WrittenOut,
    current,
    open_trace,
)
from ckad.trace.memory.known import MOST_ELEMENTS, depends_on_arguments, held_against
from ckad.trace.memory.layout import layout, layout_of_part
from ckad.trace.memory.opened import stack
from ckad.trace.memory.storage import PROTECTED, Storage
from ckad.trace.numbers_outside import take_as_arguments
from ckad.trace.overlap import apart, meets, sharing, written_into
from ckad.trace.source import follow
from ckad.trace.source.control.recalled.guesses import attempted
from ckad.trace.source.names.bindings import clear
from ckad.trace.source.outside import free
from ckad.trace.source.outside.clock import computed
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.skipped import Skipped
from ckad.trace.values.tracer import Tracer, fresh, localise, value

#: The rows of these are in the table before anything is recorded.
MODULES = modules.MODULES


@dataclass(frozen=True)
class Recording:
    """A recorded function: its tape, the structure of its result, what it captured."""

    tape: Tape
    out_tree: trees.Treedef
    out_scalars: list[bool]  # which results are NumPy scalars rather than 0-d arrays
    captured: list[int]  # rows of the enclosing trace that follow the arguments as inputs
    held: dict[int, np.ndarray]  # the arrays among the arguments for whose numbers it was made
    decides: Given
    as_made: bool  # whether it holds only for arguments as the enclosing trace has made them
    handlers: tuple[Any, ...]  # of exceptions that the program has: what stops a run may be met
    written: list[int]  # the arrays among the arguments that it writes into,
    outside: list[np.ndarray]  # and those from outside in which these may not lie: it reads them
    course: Course | None  # whether it holds for other numbers than those of ``held``

    @cached_property
    def gives_leaf(self) -> bool:
        """Whether the result is one leaf, and nothing around it."""
        return bool(self.out_tree.num_nodes == self.out_tree.num_leaves == 1)

    @property
    def is_guarded(self) -> bool:
        """Whether a handler of the program may meet what stops a run."""
        return bool(self.handlers)

    def may_meet(self, stop: Exception) -> bool:
        """The same of one error; what asks whether a solution has ended is a handler of that."""
        kinds = self.handlers
        return any(isinstance(stop, x) or x is not UnfinishedError for x in kinds)

    def is_apart(self, arrays: Sequence[Any]) -> bool:
        """Whether what it writes into lies nowhere in what it reads from outside."""
        return not any(meets(arrays[k], self.outside) for k in self.written)

    def holds_for(self, arguments: Arguments) -> bool:
        """Whether the function would be recorded alike for these arguments."""
        if not self.held and not self.outside:
            return True
        arrays = arguments.arrays
        if self.outside and not self.is_apart(arrays):
            return False
        return all(np.asarray(arrays[k]).tobytes() == x.tobytes() for k, x in self.held.items())


def record(
    fun: Callable[..., Any],
    arguments: Arguments,
    kwargs: Mapping[str, Any] | None = None,
    *,
    decides: Given = Given.NOTHING,
    most: Most = ALL,
) -> Recording:
    """Run ``fun`` on tracers and return what it did; ``kwargs`` are passed as they are.

    What the numbers of the arguments decide is known as far as ``decides`` says; the tape stops
    where it is run on other ones. ``most`` says how much may be recorded.
    """
    written_out: dict[Any, CkadError] = {}

    def once() -> Recording:
        try:
            return _recorded(fun, arguments, kwargs or {}, decides, most, written_out)
        except BaseException as error:
            watched = watch()
            if watched is not None and not stack():
                watched.guard.uncount(error)
            raise

    while True:
        try:
            return once() if stack() else attempted(once, _about(arguments, kwargs, decides, most))
        except CkadError:
            if stack() or not free.give_up():
                raise
        except WrittenOut as found:
            if stack() or found.node in written_out:  # it is for who records around this
                raise
            written_out[found.node] = found.error
        except Laborious as found:
            if stack():
                raise
            raise found.error from None


def _about(arguments: Arguments, kwargs: Any, decides: Given, most: Most) -> Hashable:
    """What says, beside its source, how a function is recorded; None where that has no hash."""
    given, tree = trees.flatten(kwargs)
    kinds = tuple(map(_kind, [*arguments.leaves, *given]))
    about = arguments.treedef, tree, kinds, decides, most
    try:
        hash(about)
    except TypeError:
        return None
    return about


def _kind(leaf: Any) -> Hashable:
    if isinstance(leaf, np.ndarray):
        return leaf.dtype, leaf.shape
    kind: type = type(leaf)
    return (kind.__name__, leaf) if kind in (bool, int, str) else kind.__name__


def _recorded(
    fun: Callable[..., Any],
    arguments: Arguments,
    kwargs: Mapping[str, Any],
    decides: Given,
    most: Most,
    written_out: dict[Any, CkadError],
) -> Recording:
    shown = _shown(arguments)
    with open_trace() as trace:
        trace.written_out |= written_out
        tracers = [_argument(trace, x) for x in arguments.arrays]
        trace.shown |= {tracers[k].storage.row: row for k, row in shown.items()}
        given = {x.storage.row: a for x, a in zip(tracers, arguments.arrays, strict=True)}
        if trace.parent is None:
            free.begin()
            trace.spent.most = most.in_bodies
        if decides and trace.parent is None:
            trace.decides, trace.most_as_run = decides, most.rows
            trace.given |= {k: np.array(a) for k, a in given.items() if _is_plain(a)}
        for k in arguments.parts():
            _lie_as_part(tracers[k], arguments.arrays[k])
        if trace.parent is None:
            trace.exposed |= {k: x for k, x in enumerate(arguments.arrays) if type(x) is np.ndarray}
        for k in sharing(arguments.arrays):
            tracers[k].storage.shared = "another argument"
        for x, given_array in zip(tracers, arguments.arrays, strict=True):
            if type(given_array) is np.ndarray and not given_array.flags.writeable:
                x.storage.shared = PROTECTED
        args = arguments.rebuild(tracers)
        if places := arguments.places:
            args, numbers = args[: -len(places)], args[-len(places) :]
            take_as_arguments(trace, places, numbers)
        note_given(fun, args, kwargs)
        watched = watch()
        try:
            out = _run(fun, args, kwargs)
            leaves, out_tree = trees.flatten(_made_whole(out))
            leaves = [computed(clear(x)) for x in leaves]
            checked = _checked(trace)
            leaves = [_of_call(x, checked) for x in leaves]
            for leaf in leaves:
                _check_result(fun, leaf, arguments)
            rows = [value(x) for x in leaves]
        except AliasError as error:
            for node in filter(lambda x: x not in written_out, trace.filling):
                raise WrittenOut(node, error) from error
            raise
        scalars = [
            x.scalar if isinstance(x, Tracer) else not isinstance(x, np.ndarray) for x in leaves
        ]
        held = held_against(trace)
        needed = {k: held[row] for k, row in enumerate(given) if row in held}
        as_made = depends_on_arguments(trace)
        tape = free.settled(trace.tape(rows)) if trace.parent is None else trace.tape(rows)
        about = list(trace.captured), needed, decides, as_made, tuple(trace.handlers)
        written = written_into(trace, tracers)
        known = [x for x, _ in watched.guard.arrays] if written and watched is not None else []
        outside = apart(known, trace.exposed.values())
        course = course_of(trace, leaves)
        return Recording(tape, out_tree, scalars, *about, written, outside, course)


def _shown(arguments: Arguments) -> dict[int, int]:
    """The arguments that a recording around this one has made, and their rows there, where that
    is recorded for the numbers of a call."""
    if not stack() or current().decides < Given.DECISIONS:
        return {}
    return {k: value(x) for k, x in enumerate(arguments.arrays) if isinstance(x, Tracer)}


def _made_whole(out: Any) -> Any:
    leaves, tree = trees.flatten(out, lambda x: isinstance(x, Deferred))
    return trees.unflatten(tree, [made_whole(x) for x in leaves])


def _is_plain(x: Any) -> bool:
    return not isinstance(x, Tracer) and np.size(x) <= MOST_ELEMENTS


def _checked(trace: Trace) -> dict[int, np.ndarray]:
    """The rows, and their numbers, that are compared where the tape is run. Where a program is
    recorded as it runs, a course is compared before."""
    held = held_against(trace) if trace.asked else {}
    if trace.parent is None and trace.decides >= Given.DECISIONS:
        return {k: x for k, x in held.items() if k not in trace.given}
    return held


def _of_call(leaf: Any, numbers: Mapping[int, np.ndarray]) -> Any:
    """A result, which is that of a call for whose numbers the program was recorded."""
    if not isinstance(leaf, Tracer) or not numbers:
        return leaf
    differs: Any = False
    for row, number in numbers.items():
        found: Any = fresh(row)
        other = np.not_equal(found, number)
        if np.isnan(number).any():  # which equals nothing
            other = np.where(np.isnan(number), np.logical_not(np.isnan(found)), other)
        differs = np.logical_or(differs, np.any(other))
    return unless(differs, leaf)


def note_given(fun: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Structures of arguments are the recording's own; what is in them may be from outside, as
    options are."""
    if watched := watch():
        for x in args:
            watched.given(x)
        for x in kwargs.values():
            watched.enter(x)
        watched.enter(getattr(fun, "__self__", fun))


def _argument(trace: Trace, x: Any) -> Tracer:
    row = trace.builder.input(x.type if isinstance(x, Tracer) else type_of(np.asarray(x)))
    own = Storage(trace, row)
    own.plain, own.dense = layout(x)
    if isinstance(x, Tracer):
        return Tracer(own, (), x.scalar)
    return Tracer(own, (), not isinstance(x, np.ndarray), type(x) is float)


def _lie_as_part(tracer: Tracer, array: Any) -> None:
    """Real and imaginary part are written as one array, and lie as that does."""
    if isinstance(array, np.ndarray):
        tracer.storage.plain, tracer.storage.dense = layout_of_part(array)


def _run(fun: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    try:
        return follow(fun)(*args, **kwargs)
    except ValueError as error:
        # NumPy answers ``plain[0] = tracer`` with a ValueError of its own, caused by ours.
        if isinstance(error.__cause__, CkadError):
            raise error.__cause__ from None
        raise


def _check_result(fun: Callable[..., Any], leaf: Any, given: Arguments) -> None:
    if not isinstance(leaf, (Tracer, np.ndarray, np.generic, float, int)):
        is_part = isinstance(leaf, dispatch.Traced) and leaf.kind == dispatch.PART
        what = "an array whose length is computed" if is_part else _kind_of(leaf)
        if any(leaf is x for x in given.leaves):
            what = f"its argument as it is, {what}"
        raise (UnknownLengthError if is_part else TraceError)(
            at_place(
                f"{named(fun)} returns {what}; ckad can return arrays, numbers, "
                "and tuples, lists, dicts, namedtuples and dataclasses of them. Return one of "
                "these."
            )
        )


def _kind_of(leaf: Any) -> str:
    if isinstance(leaf, Skipped):
        return f"what {leaf.name} gives, a call that is left out"
    if isinstance(leaf, CoroutineType):
        leaf.close()  # nobody will await it, which Python warns of
    elif isinstance(leaf, Iterator):
        return "a generator"
    return f"a {type(leaf).__name__}"


def named(fun: Callable[..., Any]) -> str:
    """A function's name and where it is written."""
    name = getattr(fun, "__name__", type(fun).__name__)
    code = getattr(inspect.unwrap(fun), "__code__", None)
    return f"{name} ({Source(code.co_filename, code.co_firstlineno)})" if code else name


def inline(tape: Tape, operands: Sequence[int]) -> list[Tracer]:
    """Append the rows of ``tape`` to the current trace; one tracer per output."""
    b = current().builder
    env: dict[int, int] = dict(zip(tape.inputs.tolist(), operands, strict=True))
    for k in range(len(tape)):
        if k not in env:
            env[k] = b.copy_row(tape, k, env)
    return [fresh(env[k]) for k in tape.outputs.tolist()]


__all__ = [
    "Given",
    "Recording",
    "inline",
    "localise",
    "named",
    "record",
    "sharing",
]
