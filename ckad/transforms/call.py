"""One call of a transformed function: arguments apart, function recorded, tape compiled and run.

A value that the function reads from outside (a closure, a global) is always the present one: a
recording is used again only while everything it depends on is as it was (see ``reuse``), else the
function is recorded anew. Compiled tapes are kept and found again by the tape's contents.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ckad import locks, trees
from ckad.checkpoint.plan import Plan
from ckad.collection import rare_collection
from ckad.engines import arena
from ckad.errors import (
    BatchError,
    BudgetError,
    CheckpointError,
    NonFiniteError,
    ScheduleError,
)
from ckad.loops.compiled import Compiled
from ckad.loops.driver import Options, compile_tape, fits_still
from ckad.loops.engines import chosen
from ckad.loops.progress import run
from ckad.passes import pipeline
from ckad.passes.pipeline import Pipeline, Positions, Stages
from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.tape.reasons import Reason, reason_of
from ckad.tape.routines import routine_of
from ckad.tape.tape import Tape
from ckad.trace.memory.context import Most
from ckad.trace.record import Arguments, Given, Recording, inline, named, record, take_apart
from ckad.trace.source.control.checks import count_check
from ckad.trace.source.libraries import python_function
from ckad.trace.source.outside.assigned import depend_on_left
from ckad.trace.source.outside.watch import watching
from ckad.trace.values.apply import astype
from ckad.trace.values.tracer import Tracer, value
from ckad.transforms import attempts, reuse
from ckad.transforms.arguments.sources import as_arrays
from ckad.transforms.arguments.unchanged import unchanged
from ckad.transforms.finite import explained
from ckad.transforms.reuse import Alone, Recorded

T = TypeVar("T")
DEFAULT = Options()
_ROUNDED = Options(engine="vm")  # each row by itself, as NumPy does
#: Compiled programs that are remembered.
KEPT = 32
#: Older programs go when all together hold more than this, in bytes.
KEPT_BYTES = 2**26
_cache: OrderedDict[Any, Compiled] = OrderedDict()
_tapes: OrderedDict[Any, Tape] = OrderedDict()
_lock = locks.lock()
#: What other modules keep of tapes.
also_cleared: list[OrderedDict[Any, Any]] = []


class Call:
    """A function with the arguments of one call."""

    _check: Callable[[], None] | None = None
    _options: Options | None = None

    def __init__(
        self,
        fun: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options = DEFAULT,
    ) -> None:
        self.fun = fun = python_function(fun) or fun
        args, options = as_arrays(args, options)
        key: Hashable | Alone
        known = found = None
        try:
            key = attempts.key_of(reuse.key_of(fun, args, kwargs))
            known = reuse.find(key)
        except Alone as why:
            key = why
        if known is not None:
            self.arguments: Arguments = known.form.like(args)
            found = attempts.usable(known, self.arguments, self._leads_along)
        if found is not None:
            found.repeat()
        else:
            self.arguments = take_apart(args)
            found = self._recorded(kwargs, key, known)
        self._known = known = found
        self.recording: Recording = known.recording
        self.anew = known.anew or attempts.reason(known.refusal)
        self.tape = known.tape
        self._derived = known.derived
        self._has_key = not isinstance(key, Alone)
        self._asked = options

    def _recorded(
        self, kwargs: dict[str, Any], key: Hashable | Alone, before: Recorded | None
    ) -> Recorded:
        def once(arguments: Arguments, key: Hashable | Alone, *about: Any) -> Recorded:
            return recorded(self.fun, arguments, kwargs, key, *about)

        self.arguments, made = attempts.recorded(once, self.arguments, key, before)
        return made

    def _leads_along(self, known: Recorded) -> bool:
        """Whether the arguments lead along the course for which a program was recorded."""
        course = known.recording.course
        assert course is not None
        tape = course.test
        inputs = _as_inputs(tape, self.arguments.arrays)
        return bool(compiled(tape, _ROUNDED)(inputs)[0])

    def check_for_all(self) -> None:
        """Refuse what was recorded for the numbers of this call alone."""
        if self._known.refusal is not None:
            raise self._known.refusal
        if self.recording.as_made:
            raise BatchError("what is recorded as it runs is so for one member")

    @property
    def options(self) -> Options:
        """The options with the engine that runs the tape."""
        asked = self._asked
        if self._options is None and isinstance(asked.progress, bool):
            self._options = self._derived.get(("options", asked))
        if self._options is None:
            members = 1 if self._known.refusal is None else 0
            self._options = resolved(self.tape, asked, members)
            if isinstance(asked.progress, bool):  # a function may be another one each time
                self._derived["options", asked] = self._options
        return self._options

    @options.setter
    def options(self, options: Options) -> None:
        self._options = options

    @property
    def name(self) -> str:
        return named(self.fun)

    def kept(self) -> None:
        """It is run again later: its arrays have to hold then what they hold now."""
        self._check = unchanged(self.name, self.arguments.arrays)

    @property
    def is_nested(self) -> bool:
        """Whether this call is itself being recorded by an enclosing transformation."""
        if self._has_key:
            return False
        traced = any(isinstance(x, Tracer) for x in self.arguments.arrays)
        return traced or bool(self.recording.captured)

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """``make()``, which depends on the recording alone, remembered as long as that is."""
        try:
            made: T = self._derived[key]
        except KeyError:
            made = self._derived[key] = make()
        return made

    @property
    def has_given_rules(self) -> bool:
        """Whether somebody says how values are derived: perhaps as no function is, so that second
        derivatives need not be symmetric."""
        return _is_marked(self.tape)

    @property
    def contracts(self) -> bool:
        """Whether products and sums become one op: the native engine has an instruction for it.

        Inside another recording that is for the enclosing transformation to decide.
        """
        return self.options.engine == "native" and not self.is_nested

    @property
    def primal(self) -> Tape:
        """The tape to run."""
        return self.made(pipeline.primal)

    def made(self, product: Callable[..., Pipeline], *about: Positions | int | Tape) -> Tape:
        """What a pipeline makes of the tape, remembered by the tape's contents."""
        key = product.__name__, about, self.contracts

        def found() -> Tape:
            passes = product(*about, contract=self.contracts)
            with rare_collection():
                made = remember(_tapes, (self.tape.identity, key), lambda: passes.run(self.tape))
                return made if self.is_nested else pipeline.unmarked(made)

        return self.once(("tape", key), found)

    @property
    def shown(self) -> Tape:
        """The tape for who runs it on other numbers: it stops where they lead elsewhere."""
        course = self.recording.course
        return self.tape if course is None else pipeline.recorded().run(course.stopping)

    def watched(self, product: Callable[..., Pipeline], *about: Positions) -> Stages:
        """What every pass does on the way from what was recorded to the product."""
        passes = pipeline.recorded().then(product(*about, contract=self.contracts))
        return passes.watch(self.recording.tape)

    def run(self, tape: Tape, extra: Sequence[Any] = (), pullback: bool = False) -> list[Any]:
        """Run a tape derived from this call's, on its arguments and ``extra``: of a pullback,
        cotangents of the results.

        Inside another recording the tape's rows are appended to that instead.
        """
        arrays = self.arguments.arrays
        if self._check is not None:
            self._check()
        if self.is_nested or (extra and any(isinstance(x, Tracer) for x in extra)):
            operands = [*(value(x) for x in arrays), *self.recording.captured]
            if self._values_tell:
                self._stopped_around(operands)
            operands += [value(x) for x in extra]
            return list(inline(pipeline.inlined().run(tape), operands))
        inputs = _as_inputs(tape, [*arrays, *extra] if extra else arrays)
        try:
            program = compiled(tape, self.options)
            return attempts.run(self._known, partial(run, program, inputs, self.options.progress))
        except NonFiniteError as error:
            given = self.fun, self.tape, tape, pullback, self.arguments, inputs
            raise explained(error, *given) from None
        except CheckpointError as error:
            raise located(error) from error

    def assured(self) -> None:
        """Run the values where they alone tell whether the call is to be made anew: a derivative
        that comes without them stops only where it depends on what is checked."""
        if self._values_tell and not self.is_nested:
            self.run(self.primal)

    @property
    def _values_tell(self) -> bool:
        def found() -> bool:
            return self.recording.is_guarded or _stops(self.tape, Reason.SPECTRUM)

        return self._known.refusal is None and self.once("values tell", found)

    def _stopped_around(self, operands: Sequence[int]) -> None:
        """Let what is being recorded stop where the values do, of which it may use none."""
        for found in inline(pipeline.inlined().run(self.tape), operands):
            count_check(astype(np.any(np.not_equal(found, 0)), np.int64))

    def planned(self, tape: Tape) -> Plan | None:
        """The plan that a tape derived from this call's begins with; None inside a recording."""
        return None if self.is_nested else compiled(tape, self.options).planned

    def timed(self, tape: Tape) -> Plan:
        """The plan of a tape derived from this call's, from a few steps on its arguments."""
        program, arrays = compiled(tape, self.options), self.arguments.arrays
        if any(isinstance(x, Tracer) for x in arrays):
            return program.plan
        try:
            return program.timed_on(_as_inputs(tape, arrays))
        except CheckpointError as error:
            raise located(error) from error

    def results(self, leaves: Sequence[Any]) -> Any:
        """The function's result from the tape's outputs: its structure, scalars as scalars."""
        recording = self.recording
        shown = finished(leaves, recording.out_scalars)
        return shown[0] if recording.gives_leaf else trees.unflatten(recording.out_tree, shown)


def _stops(tape: Tape, reason: Reason) -> bool:
    stops = (row.op is Op.WRAP and reason_of(row) is reason for row in tape.rows)
    return any(stops) or any(_stops(body, reason) for body in tape.bodies)


def _is_marked(tape: Tape) -> bool:
    marks = (row.op is Op.CALL and routine_of(row).marks for row in tape.rows)
    return any(marks) or any(map(_is_marked, tape.bodies))


def _as_inputs(tape: Tape, arrays: Sequence[Any]) -> list[np.ndarray]:
    return [np.asarray(x, kind) for x, kind in zip(arrays, tape.input_dtypes, strict=True)]


def located(error: CheckpointError) -> CheckpointError:
    """The same, with the user's place."""
    about = error.path, error.needed, error.free, error.slot
    return CheckpointError(at_place(str(error)), *about)


def resolved(tape: Tape, options: Options, members: int = 1) -> Options:
    """The options with the engine that runs ``tape`` and what is derived from it; of no members,
    that of a program which is hardly run again."""
    name = chosen(tape, options.engine, members)
    return replace(options, engine=name) if name != options.engine else options


def recorded(
    fun: Callable[..., Any],
    arguments: Arguments,
    kwargs: dict[str, Any],
    key: Hashable | Alone,
    decides: Given,
    most: Most,
    refusal: Exception | None = None,
) -> Recorded:
    """Record ``fun``; what was made of its tape is kept under ``key`` where that is safe."""
    with rare_collection():
        if isinstance(key, Alone):
            watched, anew = None, str(key)
            recording = record(fun, arguments, kwargs, decides=decides, most=most)
        else:
            with watching() as watched:
                recording = record(fun, arguments, kwargs, decides=decides, most=most)
            if recording.held or recording.decides or recording.is_guarded or refusal is not None:
                depend_on_left(watched)  # it may be found not to hold after they are bound
            anew = reuse.anew(recording, watched)
        raw = recording.tape
        tape = remember(_tapes, (raw.identity, "recorded"), lambda: pipeline.recorded().run(raw))
    guard = watched.guard if watched is not None and not anew else None
    if refusal is not None:
        refusal.__traceback__ = None  # it is kept, and the frames hold what was recorded
    form = arguments._replace(leaves=[])
    made = Recorded(form, recording, tape, guard, anew, refusal, most)
    if not anew:
        reuse.keep(key, made)
    return made


def finished(xs: Sequence[Any], scalars: Sequence[bool]) -> list[Any]:
    """Results as NumPy would give them: scalars, or arrays."""
    return [x[()] if s and type(x) is not Tracer else x for x, s in zip(xs, scalars, strict=True)]


def compiled(tape: Tape, options: Options) -> Compiled:
    """``compile_tape``, remembered by the contents of the tape and the options."""
    key = tape.identity, options.key
    program = remember(_cache, key, lambda: _compile(tape, options))
    if not fits_still(program.planned):
        with _lock:
            _cache.pop(key, None)
        program = remember(_cache, key, lambda: _compile(tape, options))
    return program


def _compile(tape: Tape, options: Options) -> Compiled:
    """``compile_tape``, with the user's place in its errors."""
    try:
        with rare_collection():
            return compile_tape(tape, options)
    except (BudgetError, ScheduleError) as error:
        raise type(error)(at_place(str(error))) from None


def remember(cache: OrderedDict[Any, T], key: Any, make: Callable[[], T]) -> T:
    """``cache[key]``, made if it is not there; the least recently used entries go."""
    with _lock:
        found = cache.get(key)
        if found is not None:
            cache.move_to_end(key)
            return found
    made = make()
    with _lock:
        cache[key] = made
        while len(cache) > 1 and (len(cache) > KEPT or _bytes_of(cache) > KEPT_BYTES):
            cache.popitem(last=False)
    return made


def _bytes_of(cache: OrderedDict[Any, Any]) -> int:
    """Constants are most of what a tape or a program holds."""
    return sum(entry.nbytes for entry in cache.values())


def clear_caches() -> None:
    """Forget recordings, compiled programs and the work memory that is kept between calls.

    What was computed stays right without it; it is for long processes that want their memory back
    (at most 256 MiB of work memory and 64 MiB of constants). Files on disk stay.

    >>> import ckad
    >>> ckad.clear_caches()
    """
    with _lock:
        _cache.clear()
        _tapes.clear()
    reuse.clear()
    for more in also_cleared:
        more.clear()
    arena.clear()
