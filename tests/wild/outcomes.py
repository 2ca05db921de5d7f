"""What ckad does not take today, and what it says. Who mends one takes it out of its table."""

from __future__ import annotations

from typing import NamedTuple

from ckad.errors import (
    ConcreteValueError,
    TraceError,
    UnrecordableError,
)


class Outcome(NamedTuple):
    """An error: a refusal, if it is one of ckad's, else a crash."""

    error: type[Exception]
    says: str  # how its first sentence begins, without the place


PLAIN = "a traced value is turned into a plain NumPy array"
CLOSURE = "'Closure' object has no attribute '__code__'"

#: At any size.
REFUSED = {
    "networks.leaky_spikes": Outcome(
        UnrecordableError, "which items a list has depends on a traced condition"
    ),
    "earth.climate_with_states": Outcome(
        TraceError, "which items a comprehension keeps depends on a traced value"
    ),
    "life.turing_frames": Outcome(ConcreteValueError, PLAIN),
    "life.doses": Outcome(
        TraceError, "which items a comprehension keeps depends on a traced value"
    ),
    "robots.pure_pursuit": Outcome(
        UnrecordableError, "which items a list has depends on a traced condition"
    ),
}

#: At their full size alone: short loops are written out, these are too long for it.
REFUSED_LONG = {
    "filters.extended_localization": Outcome(
        UnrecordableError,
        "the body of a loop or branch calls numpy.random.RandomState.randn",
    ),
}
