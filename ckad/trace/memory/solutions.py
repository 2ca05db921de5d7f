"""Whether what an iteration gives is derived as the solution of its system, or by its steps.

The steps are the program where the iteration has not converged, for its result or for the
derivative, as with a singular matrix; the numbers of a run alone tell. Every thread has its own
answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Derived(threading.local):
    by_steps = False


_derived = _Derived()


def by_steps() -> bool:
    return _derived.by_steps


@contextmanager
def deriving_by_steps() -> Iterator[None]:
    before = _derived.by_steps
    _derived.by_steps = True
    try:
        yield
    finally:
        _derived.by_steps = before
