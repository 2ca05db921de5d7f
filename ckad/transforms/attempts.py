"""What a recording may hold for: any numbers, or those of one call.

What cannot be recorded for all numbers is recorded as it runs for these, at last each step of its
loops, and a warning says why. Where that is an error, the program is refused. What is recorded for
all numbers, and stops for these where a handler may go on, is recorded as it runs, too.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from ckad.errors import (
    AliasError,
    ArgumentAliasError,
    AsRunWarning,
    CarryError,
    CkadError,
    ComplexSpectrumError,
    ConcreteValueError,
    DivisionError,
    NoneValueError,
    RaisedError,
    TracedIndexError,
    TracedShapeError,
    UnboundError,
    UnknownLengthError,
    UnrecordableError,
    UnsolvedError,
)
from ckad.place import user_place
from ckad.trace.arguments import Arguments
from ckad.trace.memory import assumed, changes
from ckad.trace.memory.assumed import Spectra
from ckad.trace.memory.context import ALL, Most, TooLong, TooMuch
from ckad.trace.memory.opened import is_tracing
from ckad.trace.record import Given
from ckad.trace.source.control.notes import is_noting
from ckad.trace.values.tracer import Tracer
from ckad.transforms.repeated import integers
from ckad.transforms.reuse import Alone, Recorded

#: What is asked of a recording: its arguments, its key, what the numbers decide, how much is
#: recorded at most, and why they decide.
Once = Callable[[Arguments, "Hashable | Alone", Given, Most, "Exception | None"], Recorded]
#: What another way of recording may help against.
_STAGED = (ConcreteValueError, UnrecordableError, CarryError, AliasError, UnknownLengthError)
_NO_NUMBER = (CarryError, AliasError, UnknownLengthError)
#: What a run is stopped by where Python raises an exception.
_STOPS = (
    *(DivisionError, NoneValueError, RaisedError, TracedIndexError, TracedShapeError),
    *(UnboundError, np.linalg.LinAlgError),
)
#: Bodies in bodies are recorded again and again: after so many operations another way is tried.
FOR_ALL, _OF_SIZES, _AS_RUN = 130_000, 100_000, 200_000
#: Operations one after the other, which take some seconds.
_IN_LINE = 60_000
#: Ways to record, one after the other. As it runs, a program takes many times as long where loops
#: are tried, as those of long programs have to be. What takes long in every way is given its time.
_WAYS = (
    (Given.NOTHING, Most(in_bodies=FOR_ALL)),
    (Given.SIZES, Most(in_bodies=_OF_SIZES)),
    (Given.STEPS, Most(_IN_LINE)),
    (Given.DECISIONS, Most(in_bodies=_AS_RUN)),
    (Given.STEPS, ALL),
    (Given.DECISIONS, ALL),
    (Given.NOTHING, ALL),
)
_told: dict[Any, Any] = {}  # which warnings were shown
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
C = TypeVar("C")

#: Whether a call may begin anew, and what stopped its first run.
_IDLE: tuple[bool, Exception | None] = False, None
_FIRST: tuple[bool, Exception | None] = True, None


class _Call(threading.local):
    state = _IDLE  # one value, which every call sets
    for_all = False


_call = _Call()


def begins_plainly() -> bool:
    """Whether a call is no part of another one, of what is recorded or of what is asked about."""
    return _call.state is _IDLE and not is_tracing() and not is_noting()


def is_first() -> bool:
    """Whether the call under way assumes what calls assume at first."""
    return _call.state is _FIRST and assumed.is_checked()


class _Again(BaseException):
    """The call is made once more, with other assumptions."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


class _Anew(_Again):
    """A run was stopped where a handler may go on."""


class _Complex(_Again):
    """Eigenvalues are not as was assumed; or, with an error, that is not recorded."""


class _Unsolved(_Again):
    """An iteration for a linear system has not converged."""


def met_by_handlers(entry: F) -> F:
    """A transformed function: where a run is stopped by what one of the program's handlers may
    meet, it is called once more, and the program is recorded as it runs. Eigenvalues are real at
    first, and iterations for linear systems derived as solutions; where they are not, it is called
    once more, too."""

    @wraps(entry)
    def begun(*args: Any, **options: Any) -> Any:
        if _call.state is not _IDLE or is_tracing():
            return entry(*args, **options)
        before = assumed.assume(assumed.FIRST)
        changed = changes.begin([])
        _call.state = _FIRST
        try:
            return entry(*args, **options)
        except _Again as found:
            stop = found.with_traceback(None)
            changes.take_back()
        finally:
            _call.state = _IDLE
            changes.begin(changed)
            assumed.assume(before)
        return _begun_anew(partial(entry, *args, **options), stop)

    return begun  # type: ignore[return-value]


def _begun_anew(entry: Callable[[], T], stop: _Again) -> T:
    """The call once more, in another way: ``stop`` is what its first run has met."""
    met = [stop]

    def called() -> T:
        try:
            if met:
                raise met.pop()
            return once(_FIRST)
        except _Anew as found:
            return once((False, found.error))

    def once(state: tuple[bool, Exception | None]) -> T:
        changed = changes.begin([])
        _call.state = state
        before = assumed.stopped_by(state[1])
        try:
            return entry()
        except _Again:
            changes.take_back()
            raise
        finally:
            assumed.stopped_by(before)
            _call.state = _IDLE
            changes.begin(changed)

    spectra, by_steps, error = Spectra.REAL, False, None
    while True:
        before = assumed.assume((spectra, by_steps, False))
        try:
            return called()
        except _Unsolved as found:
            spectra, by_steps, error = Spectra.REAL, True, found.error
        except _Complex as found:
            spectra, error = Spectra(spectra + 1), error or found.error
        except CkadError:
            if error is None:
                raise
            raise error from None
        finally:
            assumed.assume(before)


def run(recorded: Recorded, once: Callable[[], T]) -> T:
    """Run what was recorded; a handler that may meet what stops it begins the call anew."""
    before, again = _call.state, may_be_unsolved()
    _call.state = _IDLE  # functions that it calls may call others
    try:
        return once()
    except ComplexSpectrumError:
        if before[0] or before[1] is not None:
            raise _Complex from None
        raise
    except UnsolvedError as error:
        if again:
            raise _Unsolved(error) from None
        raise
    except _STOPS as error:
        if before[0] and recorded.recording.may_meet(error) and recorded.refusal is None:
            raise _Anew(error) from None
        raise
    finally:
        _call.state = before


def may_be_unsolved() -> bool:
    """Whether the call is made once more where an iteration has not converged."""
    state = _call.state
    return (state[0] or state[1] is not None) and not assumed.by_steps()


def later(call: C, anew: Callable[[], C]) -> Callable[[Callable[[C], T]], T]:
    """What is asked of a call after it has ended: where an iteration has not converged for it, the
    call is made ``anew``, and derives its steps."""
    spectra = assumed.spectra()

    def asked(question: Callable[[C], T]) -> T:
        try:
            return question(call)
        except UnsolvedError as error:
            if assumed.by_steps():
                raise
            stop = error
        before = assumed.assume((spectra, True, False))
        try:
            return question(anew())
        except CkadError:
            raise stop from None
        finally:
            assumed.assume(before)

    return asked


def key_of(key: Hashable) -> Hashable:
    """A key of a call's recording; where the one for all numbers was stopped, of another beside it,
    so that a result does not depend on the calls before."""
    if assumed.spectra() is not Spectra.REAL:
        key = assumed.spectra(), key
    if assumed.by_steps():
        key = "by steps", key
    return key if _stopped() is None else ("as it runs", assumed.unfinished(), key)


@contextmanager
def for_all_numbers() -> Iterator[None]:
    """What is recorded holds for all numbers, however long that takes, where it can."""
    before, _call.for_all = _call.for_all, True
    try:
        yield
    finally:
        _call.for_all = before


def usable(
    known: Recorded, arguments: Arguments, leads_along: Callable[[Recorded], bool]
) -> Recorded | None:
    """A recording that holds for these numbers, and for others where these have to be all.

    One of other numbers does where these lead along the same course.
    """
    recording = known.recording
    if _call.for_all and isinstance(known.refusal, TooMuch):
        return None
    if recording.course is None or not _is_plain(arguments):
        return known if recording.holds_for(arguments) else None
    return next((x for x in known.courses() if _is_same(x, arguments, leads_along)), None)


def _is_same(
    known: Recorded, arguments: Arguments, leads_along: Callable[[Recorded], bool]
) -> bool:
    found = known.recording
    try:
        follows = found.course is not None and found.is_apart(arguments.arrays)
        return found.holds_for(arguments) or (follows and leads_along(known))
    except CkadError:  # what stops it is on another course, or will be met again
        return False


def _stopped() -> Exception | None:
    stopped = _call.state[1]
    return None if stopped is None or is_tracing() else stopped


def recorded(
    once: Once, given: Arguments, key: Hashable | Alone, before: Recorded | None
) -> tuple[Arguments, Recorded]:
    """A recording, and its arguments. Where it asks for numbers that these decide, arrays of
    integers and bools among them are constants. ``before`` is one that holds for other numbers."""
    if _call.for_all and before is not None and isinstance(before.refusal, TooMuch):
        before = None  # which has saved time
    arguments = given
    refusal = None if before is None else before.refusal
    error = refusal or _stopped()
    first = Given.NOTHING if error is None else Given.DECISIONS
    as_run, may_run, is_long = key, refusal is not None, False
    ways = _ways(given, before)
    for at, (decides, most) in enumerate(ways, 1):
        is_last = not decides and at == len(ways) and isinstance(refusal, TooMuch)
        if not is_last and decides < (first if before is None else before.recording.decides):
            continue
        if decides is Given.SIZES and isinstance(error, (*_NO_NUMBER, TooMuch)):
            continue  # no integer is asked for
        if decides is Given.SIZES and isinstance(error, UnrecordableError):
            most = most._replace(in_bodies=most.in_bodies / 4)  # nor is one here: a short try
        if decides > Given.SIZES and refusal is None:
            assert error is not None
            if not isinstance(error, TooMuch):
                _try_complex(error)
            refusal = error
            may_run = _is_plain(given) and _warned(refusal)
        is_tried = not decides and refusal is not None and not is_last
        if is_tried or (decides > Given.SIZES and (is_long or not may_run)):
            continue
        if decides and arguments is given:
            arguments, as_run = given.pinned(), integers.key_for(key, given)
        try:
            if not decides:
                return given, once(given, key, decides, most, None)
            return arguments, once(arguments, as_run, decides, most, refusal)
        except ArgumentAliasError:
            raise  # whatever the numbers are
        except _STAGED as found:
            error = found
        except TooLong as found:
            says_more = refusal is None and isinstance(error, UnrecordableError)
            error = TooMuch(str(error)) if says_more else found
            is_long = decides is Given.DECISIONS and not isinstance(found, TooMuch)
        except CkadError as found:
            if refusal is None:
                _try_complex(found)
                raise
            error = found
    assert refusal is not None
    assert error is not None
    if isinstance(refusal, TooMuch):
        raise error from None  # of the last way, which is for all numbers
    if error is not refusal:
        why = "" if str(error) == str(refusal) else f" {error}"
        refusal.add_note(f"Nor can it be recorded as it runs for these numbers.{why}")
    raise refusal from None


def _ways(given: Arguments, before: Recorded | None) -> Sequence[tuple[Given, Most]]:
    """The ways that are left: of a program that has taken long before, those that take longest.
    Where one cannot or must not be recorded as it runs, there is nothing to save time for."""
    if before is not None and before.most == ALL:
        return _WAYS[_WAYS.index((before.recording.decides, ALL)) :]
    if _call.for_all or not _is_plain(given):
        return [(decides, most._replace(in_bodies=math.inf)) for decides, most in _WAYS]
    return _WAYS


def _try_complex(error: Exception) -> None:
    if _call.state[0] and assumed.made_a_difference():
        raise _Complex(error) from None


def reason(refusal: Exception | None) -> str:
    """Why a recording holds for the numbers of one call alone; empty if it does not."""
    why = str(refusal).partition("\n")[0]
    return f"it is recorded as it runs for numbers that decide otherwise ({why})" if refusal else ""


def _is_plain(given: Arguments) -> bool:
    """Whether the numbers of the arguments are there."""
    return not is_tracing() and not any(isinstance(x, Tracer) for x in given.arrays)


def _warned(refusal: Exception) -> bool:
    """Say that a program is recorded as it runs; whether it may be."""
    place, why, remedy = user_place(), "So the program", "do what is said above"
    if isinstance(refusal, _STOPS):
        why = "A handler of the program may meet that, so it"
        remedy = "test before what raises it, by 'if', in place of 'try'"
    if assumed.unfinished():
        why, remedy = "The program asks for its success, so it", "end t_span before"
    try:
        warnings.warn_explicit(
            f"{refusal}\n{why} is recorded as it runs for the numbers of this call, and anew for "
            f"others that decide otherwise. Where that takes too long, {remedy}.",
            AsRunWarning,
            place.file,
            place.line,
            registry=_told,
        )
    except AsRunWarning:
        return False
    return True
