"""What a transformed function has at hand of calls before, until anything that is kept changes.

Recordings and programs are kept by when they were last looked up. A call that finds what it needs
at hand looks nothing up: so all that is at hand is dropped when something comes or goes, and the
next call looks everything up once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakSet

from ckad import locks

#: What a call of another form gives.
OTHER: Any = object()


class AtHand(Protocol):
    """What calls of one form need."""

    take: Any  # what knows the form

    def __call__(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """The result; OTHER where anything is not as it was."""


#: Forms of which calls are at hand for one function.
MOST = 4
_all: WeakSet[Calls] = WeakSet()
_lock = locks.lock()


class Calls:
    """The calls of one function that are at hand, the last one made first."""

    def __init__(self) -> None:
        self.ready: tuple[AtHand, ...] = ()

    def again(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """The result of a call like one before; OTHER if it has to be looked up."""
        for ready in self.ready:
            found = ready(args, options)
            if found is not OTHER:
                return found
        return OTHER

    def keep(self, ready: AtHand) -> None:
        with _lock:
            _all.add(self)
            others = [other for other in self.ready if other.take is not ready.take]
            self.ready = ready, *others[: MOST - 1]

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, or another process, looks everything up."""
        return Calls, ()


def forget() -> None:
    """What is kept has changed: nothing is at hand any more."""
    global _all
    with _lock:
        before, _all = _all, WeakSet()  # a finalizer may have calls at hand meanwhile
        for calls in before:
            calls.ready = ()
