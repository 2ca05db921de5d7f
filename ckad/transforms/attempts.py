"""What a recording may hold for: any numbers, or those of one call.

What cannot be recorded for all numbers is recorded as it runs for these, at last each step of its
loops, and a warning says why. Where that is an error, the program is refused. What is recorded for
all numbers, and stops for these where a handler of the program may go on, is recorded as it runs,
too.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from ckad.errors import (
    AliasError,
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
from ckad.trace.memory import solutions, spectra
from ckad.trace.memory.context import MOST_ROWS, TooLong
from ckad.trace.memory.opened import is_tracing
from ckad.trace.record import Arguments, Given
from ckad.trace.values.tracer import Tracer
from ckad.transforms.reuse import Alone, Recorded

#: What is asked of a recording: its arguments, its key, what the numbers decide, the most
#: operations then, and why they decide.
Once = Callable[[Arguments, "Hashable | Alone", Given, int, "Exception | None"], Recorded]
#: What another way of recording may help against.
_STAGED = (ConcreteValueError, UnrecordableError, CarryError, AliasError, UnknownLengthError)
_NO_NUMBER = (CarryError, AliasError, UnknownLengthError)
#: What a run is stopped by where Python raises an exception.
_STOPS = (
    *(DivisionError, NoneValueError, RaisedError, TracedIndexError, TracedShapeError),
    *(UnboundError, np.linalg.LinAlgError),
)
#: Ways to record, one after the other, and the most operations of what is recorded as it runs. It
#: takes many times as long where loops are tried, as those of long programs have to be.
_WAYS = (
    (Given.NOTHING, MOST_ROWS),
    (Given.SIZES, MOST_ROWS),
    (Given.STEPS, 20_000),
    (Given.DECISIONS, MOST_ROWS),
    (Given.STEPS, MOST_ROWS),
)
_told: dict[Any, Any] = {}  # which warnings were shown
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


#: Whether a call may begin anew, and what stopped its first run.
_IDLE: tuple[bool, Exception | None] = False, None
_FIRST: tuple[bool, Exception | None] = True, None


class _Call(threading.local):
    """The call of a transformed function that is under way: one value, which every call sets."""

    state = _IDLE


_call = _Call()


class _Complex(BaseException):
    """Eigenvalues are not real; or, with an error, what was assumed to be real is not recorded."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


class _Unsolved(BaseException):
    """An iteration for a linear system has not converged."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Anew(BaseException):
    """A run was stopped where a handler may go on."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def met_by_handlers(entry: F) -> F:
    """A transformed function: where a run is stopped by what one of the program's handlers may
    meet, it is called once more, and the program is recorded as it runs. Eigenvalues are real at
    first, and iterations for linear systems derived as solutions; where they are not, it is called
    once more, too."""

    @wraps(entry)
    def begun(*args: Any, **options: Any) -> Any:
        if _call.state is not _IDLE or is_tracing():
            return entry(*args, **options)
        before = spectra.assume((True, False))
        _call.state = _FIRST
        try:
            return entry(*args, **options)
        except (_Anew, _Complex, _Unsolved) as found:
            stop = found.with_traceback(None)
        finally:
            _call.state = _IDLE
            spectra.assume(before)
        return _begun_anew(partial(entry, *args, **options), stop)

    return begun  # type: ignore[return-value]


def _begun_anew(entry: Callable[[], T], stop: BaseException) -> T:
    """The call once more, in another way where its first run was stopped by ``stop``."""
    met = [stop]

    def by_solutions() -> T:
        try:
            return by_spectra()
        except _Unsolved as found:
            error = found.error
        try:
            with solutions.deriving_by_steps():
                return by_spectra()
        except CkadError:
            raise error from None

    def by_spectra() -> T:
        try:
            with spectra.assuming(real=True):
                return called()
        except _Complex as found:
            error = found.error
        try:
            with spectra.assuming(real=False):
                return called()
        except CkadError:
            if error is None:
                raise
        raise error

    def called() -> T:
        _call.state = _FIRST
        try:
            if met:
                raise met.pop()  # what the first run has met
            return entry()
        except _Anew as found:
            error = found.error
        finally:
            _call.state = _IDLE
        _call.state = False, error
        try:
            return entry()
        finally:
            _call.state = _IDLE

    return by_solutions()


def run(recorded: Recorded, once: Callable[[], T]) -> T:
    """Run what was recorded; a handler that may meet what stops it begins the call anew."""
    before = _call.state
    _call.state = _IDLE  # functions that it calls may call others
    try:
        return once()
    except ComplexSpectrumError:
        if before[0] or before[1] is not None:
            raise _Complex from None
        raise
    except UnsolvedError as error:
        if (before[0] or before[1] is not None) and not solutions.by_steps():
            raise _Unsolved(error) from None
        raise
    except _STOPS as error:
        if before[0] and recorded.recording.is_guarded and recorded.refusal is None:
            raise _Anew(error) from None
        raise
    finally:
        _call.state = before


def key_of(key: Hashable) -> Hashable:
    """A key of a call's recording; where the one for all numbers was stopped, of another beside it,
    so that a result does not depend on the calls before."""
    if not spectra.are_assumed_real():
        key = "complex spectra", key
    if solutions.by_steps():
        key = "by steps", key
    return key if _stopped() is None else ("as it runs", key)


def _stopped() -> Exception | None:
    stopped = _call.state[1]
    return None if stopped is None or is_tracing() else stopped


def recorded(
    once: Once, given: Arguments, key: Hashable | Alone, before: Recorded | None
) -> tuple[Arguments, Recorded]:
    """A recording, and its arguments. Where it asks for numbers that these decide, arrays of
    integers and bools among them are constants.

    ``before`` is a recording of the same that holds for other numbers.
    """
    arguments = given
    refusal = None if before is None else before.refusal
    error = refusal or _stopped()
    first = Given.NOTHING if error is None else Given.DECISIONS
    for decides, most in _WAYS:
        if decides < (first if before is None else before.recording.decides):
            continue
        if decides is Given.SIZES and isinstance(error, _NO_NUMBER):
            continue  # no integer is asked for
        if decides > Given.SIZES and refusal is None:
            assert error is not None
            _try_complex(error)
            refusal = error
            if not _is_plain(given) or not _warned(refusal):
                break
        if decides and arguments is given:
            arguments = given.pinned()
            if len(arguments.traced) < len(given.traced):
                key = Alone("it asks for an argument's numbers")
        try:
            return arguments, once(arguments, key, decides, most, refusal)
        except _STAGED as found:
            error = found
        except TooLong as found:
            error = found
            if decides is Given.DECISIONS:
                break
        except CkadError as found:
            if refusal is None:
                _try_complex(found)
                raise
            error = found
    assert refusal is not None
    if error is not refusal:
        why = "" if str(error) == str(refusal) else f" {error}"
        refusal.add_note(f"Nor can it be recorded as it runs for these numbers.{why}")
    raise refusal from None


def _try_complex(error: Exception) -> None:
    if _call.state[0] and spectra.made_a_difference():
        raise _Complex(error) from None


def reason(refusal: Exception | None) -> str:
    """Why a recording holds for the numbers of one call alone; empty if it does not."""
    if refusal is None:
        return ""
    return f"it is recorded as it runs for other numbers ({str(refusal).partition(chr(10))[0]})"


def _is_plain(given: Arguments) -> bool:
    """Whether the numbers of the arguments are there."""
    return not is_tracing() and not any(isinstance(x, Tracer) for x in given.arrays)


def _warned(refusal: Exception) -> bool:
    """Say that a program is recorded as it runs; whether it may be."""
    place, why, remedy = user_place(), "So the program", "do what is said above"
    if isinstance(refusal, _STOPS):
        why = "A handler of the program may meet that, so it"
        remedy = "test before what raises it, by 'if', in place of 'try'"
    try:
        warnings.warn_explicit(
            f"{refusal}\n{why} is recorded as it runs for the numbers of this call, and anew for "
            f"others. Where that takes too long, {remedy}.",
            AsRunWarning,
            place.file,
            place.line,
            registry=_told,
        )
    except AsRunWarning:
        return False
    return True
