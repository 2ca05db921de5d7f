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
    UnrecordableError,
)
from ckad.place import user_place
from ckad.trace.memory.context import TooLong
from ckad.trace.memory.opened import is_tracing
from ckad.trace.record import Arguments, Given
from ckad.trace.values.part import UnknownLengthError
from ckad.trace.values.tracer import Tracer
from ckad.transforms.reuse import Alone, Recorded

#: What is asked of a recording: its arguments, its key, what the numbers decide, and why they do.
Once = Callable[[Arguments, "Hashable | Alone", Given, "CkadError | None"], Recorded]
#: What another way of recording may help against.
_STAGED = (ConcreteValueError, UnrecordableError, CarryError, AliasError, UnknownLengthError)
_told: dict[Any, Any] = {}  # which warnings were shown


def recorded(
    once: Once, given: Arguments, key: Hashable | Alone, before: Recorded | None
) -> tuple[Arguments, Recorded]:
    """A recording, and its arguments. Where it asks for numbers that these decide, arrays of
    integers and bools among them are constants.

    ``before`` is a recording of the same that holds for other numbers.
    """
    pinned = given.pinned()
    alone = Alone("it asks for an argument's numbers")
    key_of_numbers = key if len(pinned.traced) == len(given.traced) else alone
    refusal = None if before is None else before.refusal
    error: CkadError | None = refusal
    for decides in Given:
        if before is not None and decides < before.recording.decides:
            continue
        if decides is Given.SIZES and isinstance(error, (CarryError, AliasError)):
            continue  # no integer would help
        if decides is Given.DECISIONS and refusal is None:
            assert error is not None
            refusal = error
            if not _is_plain(given) or not _warned(refusal):
                break
        about = (pinned, key_of_numbers) if decides else (given, key)
        try:
            return about[0], once(*about, decides, refusal)
        except _STAGED as found:
            error = found
        except TooLong:
            break
        except CkadError as found:
            if refusal is None:
                raise
            error = found
    assert refusal is not None
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
