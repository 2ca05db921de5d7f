"""What a recording may hold for: any numbers, or those of one call.

What cannot be recorded for all numbers is recorded as it runs for these, at last each step of its
loops, and a warning says why. Where that is an error, the program is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from typing import Any

from ckad.errors import (
    AliasError,
    AsRunWarning,
    CarryError,
    CkadError,
    ConcreteValueError,
    UnknownLengthError,
    UnrecordableError,
)
from ckad.place import user_place
from ckad.trace.memory.context import MOST_AS_RUN, TooLong
from ckad.trace.memory.opened import is_tracing
from ckad.trace.record import Arguments, Given
from ckad.trace.values.tracer import Tracer
from ckad.transforms.reuse import Alone, Recorded

#: What is asked of a recording: its arguments, its key, what the numbers decide, the most
#: operations then, and why they decide.
Once = Callable[[Arguments, "Hashable | Alone", Given, int, "CkadError | None"], Recorded]
#: What another way of recording may help against.
_STAGED = (ConcreteValueError, UnrecordableError, CarryError, AliasError, UnknownLengthError)
_NO_NUMBER = (CarryError, AliasError, UnknownLengthError)
#: Ways to record, one after the other, and the most operations of what is recorded as it runs. It
#: takes many times as long where loops are tried, as those of long programs have to be.
_WAYS = (
    (Given.NOTHING, MOST_AS_RUN),
    (Given.SIZES, MOST_AS_RUN),
    (Given.STEPS, 20_000),
    (Given.DECISIONS, MOST_AS_RUN),
    (Given.STEPS, MOST_AS_RUN),
)
_told: dict[Any, Any] = {}  # which warnings were shown


def recorded(
    once: Once, given: Arguments, key: Hashable | Alone, before: Recorded | None
) -> tuple[Arguments, Recorded]:
    """A recording, and its arguments. Where it asks for numbers that these decide, arrays of
    integers and bools among them are constants.

    ``before`` is a recording of the same that holds for other numbers.
    """
    arguments = given
    refusal = None if before is None else before.refusal
    error: CkadError | None = refusal
    for decides, most in _WAYS:
        if before is not None and decides < before.recording.decides:
            continue
        if decides is Given.SIZES and isinstance(error, _NO_NUMBER):
            continue  # no integer is asked for
        if decides > Given.SIZES and refusal is None:
            assert error is not None
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
                raise
            error = found
    assert refusal is not None
    if error is not refusal:
        refusal.add_note(f"Nor can it be recorded as it runs for these numbers. {error}")
    raise refusal from None


def reason(refusal: CkadError | None) -> str:
    """Why a recording holds for the numbers of one call alone; empty if it does not."""
    if refusal is None:
        return ""
    return f"it is recorded as it runs for other numbers ({str(refusal).partition(chr(10))[0]})"


def _is_plain(given: Arguments) -> bool:
    """Whether the numbers of the arguments are there."""
    return not is_tracing() and not any(isinstance(x, Tracer) for x in given.arrays)


def _warned(refusal: CkadError) -> bool:
    """Say that a program is recorded as it runs; whether it may be."""
    place = user_place()
    try:
        warnings.warn_explicit(
            f"{refusal}\nSo the program is recorded as it runs for the numbers of this call, and "
            "anew for others. Where that takes too long, do what is said above.",
            AsRunWarning,
            place.file,
            place.line,
            registry=_told,
        )
    except AsRunWarning:
        return False
    return True
