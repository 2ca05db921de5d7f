"""What ckad does not take today, and what it says. Who mends one takes it out of its table."""

from __future__ import annotations

from typing import NamedTuple

from ckad.errors import (
    CarryError,
    UnrecordableError,
)


class Outcome(NamedTuple):
    """An error: a refusal, if it is one of ckad's, else a crash."""

    error: type[Exception]
    says: str  # how its first sentence begins, without the place


CLOSURE = "'Closure' object has no attribute '__code__'"

#: At any size.
REFUSED = {
    "networks.leaky_spikes": Outcome(
        UnrecordableError, "which items a list has depends on a traced condition"
    ),
}

#: At their full size alone: short loops are written out, these are too long for it.
REFUSED_LONG = {
    "filters.extended_localization": Outcome(
        CarryError, "the loop carries 'hxEst' from step to step, and it changes from f64[4,2] to"
    ),
}
