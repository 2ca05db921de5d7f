"""What ckad does not take today, and what it says. Who mends one takes it out of its table."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """An error: a refusal, if it is one of ckad's, else a crash."""

    error: type[Exception]
    says: str  # how its first sentence begins, without the place


#: At any size.
REFUSED: dict[str, Outcome] = {}

#: At their full size alone: short loops are written out, these are too long for it.
REFUSED_LONG: dict[str, Outcome] = {}
