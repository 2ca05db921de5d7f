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

from ckad.checkpoint.plan import Plan
from ckad.collection import rare_collection
from ckad.engines import arena
from ckad.errors import (
    BatchError,
    BudgetError,
    CheckpointError,
    NonFiniteError,
    ScheduleError,
    TraceError,
)
from ckad.loops.compiled import Compiled
from ckad.loops.driver import Options, compile_tape, fits_still, run_once, try_out
from ckad.loops.engines import chosen
from ckad.loops.progress import run
from ckad.passes import pipeline
from ckad.passes.pipeline import Pipeline, Positions, Stages
from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.tape.reasons import Reason, reason_of
from ckad.tape.routines import routine_of
from ckad.tape.tape import Tape
from ckad.trace.arguments import Arguments, take_apart
from ckad.trace.record import Recording, inline, named
from ckad.trace.source.control.checks import count_check
from ckad.trace.source.libraries import python_function
from ckad.trace.values.apply import astype
from ckad.trace.values.tracer import Tracer, value
from ckad.transforms import attempts, reuse
from ckad.transforms.arguments.sources import as_arrays
from ckad.transforms.arguments.unchanged import unchanged
from ckad.transforms.finite import explained
from ckad.transforms.repeated import changing, integers
from ckad.transforms.repeated.calls import forget
from ckad.transforms.repeated.recording import lock, recorded, remember, tapes, with_numbers
from ckad.transforms.reuse import Alone, Recorded

T = TypeVar("T")
DEFAULT = Options()
_ROUNDED = Options(engine="vm")  # each row by itself, as NumPy does
_cache: OrderedDict[Any, Compiled] = OrderedDict()
#: What other modules keep of tapes.
also_cleared: list[OrderedDict[Any, Any]] = []


class Call:
    """A function with the arguments of one call; what it reads from outside may be numbers that
    ``may_vary`` from call to call."""

    _check: Callable[[], None] | None = None
    _options: Options | None = None
    #: Which inputs have an axis of members, and how many there are, where it is one of a batch.
    members: tuple[tuple[bool, ...], int] | None = None

    def __init__(
        self,
        fun: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options = DEFAULT,
        may_vary: bool = False,
    ) -> None:
        self.fun = fun = python_function(fun) or fun
        args, options = as_arrays(args, options)
        key: Hashable | Alone
        known = found = None
        try:
            key = attempts.key_of(reuse.key_of(fun, args, kwargs))
            varies = may_vary and key in changing.known
            given = with_numbers(fun, key, args, kwargs) if varies else None
            known, args = given or (reuse.find(key), args)
        except Alone as why:
            key = why
        if known is not None:
            self.arguments: Arguments = known.form.like(args)
        elif not isinstance(key, Alone) and integers.are_asked(key):
            given_now = take_apart(args)
            known, self.arguments = integers.kept_for(key, given_now), given_now.pinned()
        if known is not None:
            found = attempts.usable(known, self.arguments, self._leads_along)
        is_repeated = found is not None
        if found is not None:
            found.repeat()
        else:
            if may_vary and not isinstance(key, Alone):
                changing.note(key, reuse.kept(key))
            self.arguments = take_apart(args)
            found = self._recorded(kwargs, key, known)
        self.known = known = found
        self.recording: Recording = known.recording
        self.anew = known.anew or attempts.reason(known.refusal)
        self.tape = known.tape
        self._derived = known.derived
        self.is_repeated = is_repeated
        if not self.recording.out_tree.num_leaves and self.recording.written:
            self._refuse_writing()
        self._has_key = not isinstance(key, Alone)
        self._asked = options

    def _recorded(
        self, kwargs: dict[str, Any], key: Hashable | Alone, before: Recorded | None
    ) -> Recorded:
        if not callable(self.fun):
            raise TraceError.here(
                f"{self.fun!r:.40} is no function. Pass the function itself, and its "
                "arguments to what comes back: ckad.grad(f)(x)."
            )

        def once(arguments: Arguments, key: Hashable | Alone, *about: Any) -> Recorded:
            return recorded(self.fun, arguments, kwargs, key, *about)

        self.arguments, made = attempts.recorded(once, self.arguments, key, before)
        return made

    def _refuse_writing(self) -> None:
        """Nothing would be left of what is written into an argument."""
        written = self.recording.written[0]
        spans, inputs_of = self.arguments.spans, self.arguments.inputs_of
        n = next(n for n in range(len(spans)) if written in inputs_of(n))
        raise TraceError.here(
            f"{self.name} writes into argument {n} and returns nothing; the caller's own arrays "
            f"stay as they are. Return it, or pass returns={n}."
        )

    def _leads_along(self, known: Recorded) -> bool:
        """Whether the arguments lead along the course for which a program was recorded."""
        course = known.recording.course
        assert course is not None
        tape = course.test
        inputs = _as_inputs(tape, self.arguments.arrays)
        return bool(compiled(tape, _ROUNDED).run(inputs)[0])

    def check_for_all(self) -> None:
        """Refuse what was recorded for the numbers of this call alone."""
        if self.known.refusal is not None:
            raise self.known.refusal
        if self.recording.as_made:
            raise BatchError("what is recorded as it runs is so for one member")

    @property
    def options(self) -> Options:
        """The options with the engine that runs the tape."""
        asked = self._asked
        if self._options is None and isinstance(asked.progress, bool):
            self._options = self._derived.get(("options", asked))
        if self._options is None:
            members = 1 if self.known.refusal is None else 0
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
                made = remember(tapes, (self.tape.identity, key), lambda: passes.run(self.tape))
                return made if self.is_nested else pipeline.unmarked(made)

        return self.once(("tape", key), found)

    @property
    def shown(self) -> Tape:
        """The tape for who runs it on other numbers: it stops where they lead elsewhere."""
        course = self.recording.course
        return self.tape if course is None else pipeline.recorded().run(course.stopping)

    def watched(self, product: Callable[..., Pipeline], *about: Positions) -> Stages:
        """What every pass does on the way from what was recorded to the product."""
        passes = pipeline.recorded(run_once).then(product(*about, contract=self.contracts))
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
            if attempts.may_be_unsolved() and (tape.identity, self.options.key) not in _cache:
                self._tried(tape, inputs)
            program = compiled(tape, self.options)
            return attempts.run(self.known, partial(run, program, inputs, self.options.progress))
        except NonFiniteError as error:
            given = self.fun, self.tape, tape, pullback, self.arguments, inputs
            raise explained(error, *given) from None
        except CheckpointError as error:
            raise located(error) from error

    def _tried(self, tape: Tape, inputs: Sequence[np.ndarray]) -> None:
        """Find out, before machine code is made of it, whether it is another program by steps."""
        if self.once(("may be unsolved", tape.identity), lambda: stops(tape, Reason.UNSOLVED)):
            attempts.run(self.known, partial(try_out, tape, self.options, inputs))

    def assured(self) -> None:
        """Run the values where they alone tell whether the call is to be made anew: a derivative
        that comes without them stops only where it depends on what is checked."""
        if self._values_tell and not self.is_nested:
            self.run(self.primal)

    @property
    def _values_tell(self) -> bool:
        def found() -> bool:
            return self.recording.is_guarded or stops(self.tape, Reason.SPECTRUM)

        return self.known.refusal is None and self.once("values tell", found)

    def _stopped_around(self, operands: Sequence[int]) -> None:
        """Let what is being recorded stop where the values do, of which it may use none."""
        tape = self.made(pipeline.members, *self.members) if self.members else self.tape
        for found in inline(pipeline.inlined().run(tape), operands):
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
        return self.known.results(leaves)


def stops(tape: Tape, reason: Reason) -> bool:
    """Whether a run of ``tape`` may be stopped for this reason."""
    found = (row.op is Op.WRAP and reason_of(row) is reason for row in tape.rows)
    return any(found) or any(stops(body, reason) for body in tape.bodies)


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


def compiled(tape: Tape, options: Options) -> Compiled:
    """``compile_tape``, remembered by the contents of the tape and the options."""
    key = tape.identity, options.key
    program = remember(_cache, key, lambda: _compile(tape, options))
    if not fits_still(program.planned):
        with lock:
            _cache.pop(key, None)
        forget()
        program = remember(_cache, key, lambda: _compile(tape, options))
    return program


def _compile(tape: Tape, options: Options) -> Compiled:
    """``compile_tape``, with the user's place in its errors."""
    try:
        with rare_collection():
            return compile_tape(tape, options)
    except (BudgetError, ScheduleError) as error:
        raise type(error)(at_place(str(error))) from None


def clear_caches() -> None:
    """Forget recordings, compiled programs and the work memory that is kept between calls.

    What was computed stays right without it; it is for long processes that want their memory back
    (at most 256 MiB of work memory and 64 MiB of constants). Files on disk stay.

    >>> import ckad
    >>> ckad.clear_caches()
    """
    with lock:
        _cache.clear()
        tapes.clear()
    reuse.clear()
    changing.clear()
    integers.clear()
    for more in also_cleared:
        more.clear()
    arena.clear()
