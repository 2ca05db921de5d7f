"""Calls that go straight from arguments to a program, once calls of their form have been made.

What a call looks up, and whether that still holds, is found out anew each time: whether anything
is being recorded, what the function reads from outside, the form of the arguments. What follows
from it is at hand. Where more is to be done than to run a program, nothing is: the recording shows
something or counts, it holds for some numbers alone, a run may begin the call anew for an iteration
that has not converged, is planned by what is free, or is watched.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from ckad.errors import CkadError, ComplexSpectrumError, UnfinishedError
from ckad.loops.compiled import Compiled
from ckad.loops.driver import depends_on_free
from ckad.tape.reasons import Reason
from ckad.tape.tape import Tape
from ckad.trace.guard_code import unmoved
from ckad.trace.handling import handling
from ckad.trace.record import Recording
from ckad.trace.source.outside.guard import Guard
from ckad.transforms import attempts
from ckad.transforms.call import Call, compiled, stops
from ckad.transforms.repeated.calls import OTHER, Calls
from ckad.transforms.repeated.form import Take, taking
from ckad.transforms.repeated.results import Show, giving
from ckad.transforms.reuse import Recorded
from ckad.trees import Treedef

#: Calls that are looked up before code is made for their form.
USES = 10


class Ready:
    """What calls of one form need."""

    __slots__ = ("apart", "handled", "holds", "program", "show", "take")

    def __init__(
        self,
        recording: Recording,
        take: Take,
        holds: Callable[[], bool],
        program: Compiled,
        show: Show,
    ) -> None:
        self.take, self.holds, self.program, self.show = take, holds, program, show
        self.apart = recording.is_apart if recording.outside else None
        self.handled = handling()

    def __call__(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        if not attempts.begins_plainly() or handling() != self.handled:
            return OTHER
        inputs = self.take(args, options)
        if inputs is None or not self.holds():
            return OTHER
        if self.apart is not None and not self.apart(inputs):
            return OTHER
        try:
            return self.show(self.program.run(inputs))
        except (ComplexSpectrumError, UnfinishedError):  # which begin the call in another way
            return OTHER


class Outcome(NamedTuple):
    """What a call makes of the numbers that a tape gives."""

    kind: Hashable  # tells apart what one recording is asked for
    show: Show
    structures: Sequence[Treedef]  # of the pytrees in it


def note(
    calls: Calls,
    call: Call,
    tape: Tape,
    arguments: tuple[Sequence[Any], Mapping[str, Any]],
    outcome: Outcome,
) -> None:
    """A call has run ``tape``, and this was its ``outcome``: have calls of its form at hand, if
    there are several."""
    known, guard = call.known, call.known.guard
    if not call.is_repeated or guard is None or not attempts.is_first():
        return
    known.derived["uses"] = uses = known.derived.get("uses", 0) + 1
    if uses < USES or not call.once("plain", lambda: _is_plain(known, guard)):
        return
    numbers = call.arguments.arrays
    take = call.once("take", lambda: taking(*arguments, numbers, tape.input_dtypes))
    if take is None or call.once(("anew", tape.identity), lambda: _begins_anew(call, tape)):
        return
    program = compiled(tape, call.options)
    if not _runs_plainly(call, program):
        return
    kind, show, structures = outcome
    give = call.once(("give", kind), lambda: giving(show, len(tape.outputs), structures))
    holds = call.once("unmoved", lambda: unmoved(guard))
    if not holds():  # it reads other objects of the same values now, perhaps others each time
        holds = known.derived["unmoved"] = guard.holds
    calls.keep(Ready(known.recording, take, holds, program, give))


def _is_plain(known: Recorded, guard: Guard) -> bool:
    """Whether a recording is used again by nothing but running it."""
    recording = known.recording
    if known.refusal is not None or recording.held or recording.may_meet(CkadError()):
        return False
    return not (guard.shown or guard.once or guard.counters or guard.leaves)


def _runs_plainly(call: Call, program: Compiled) -> bool:
    options, plan = call.options, program.planned
    if options.progress or options.check_finite or options.resume is not None:
        return False
    return plan.disk is None and not depends_on_free(plan)


def _begins_anew(call: Call, tape: Tape) -> bool:
    """Whether the numbers of a run may tell that the call is to be made in another way, for its
    result or later on."""
    return any(stops(each, Reason.UNSOLVED) for each in (call.tape, tape))
