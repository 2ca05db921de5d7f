"""Whether eigenvalues are recorded as real numbers, and the program stops where they are not.

NumPy's ``eig`` gives real numbers where no imaginary part is left, which the numbers of a run alone
tell. Every thread has its own answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Assumed(threading.local):
    #: That they are real; that a recording has met eigenvalues meanwhile. One value, since every
    #: call of a gradient sets it and puts it back.
    answer = False, False


_assumed = _Assumed()


def assumed_real() -> bool:
    """Asked by a recording that has met eigenvalues."""
    real = _assumed.answer[0]
    _assumed.answer = real, True
    return real


def are_assumed_real() -> bool:
    return _assumed.answer[0]


def made_a_difference() -> bool:
    """Whether what was recorded would be another program if they were complex."""
    return all(_assumed.answer)


def assume(answer: tuple[bool, bool]) -> tuple[bool, bool]:
    """Let this thread assume something else: whether they are real, and whether a recording has
    met any. What it has assumed so far."""
    before = _assumed.answer
    _assumed.answer = answer
    return before


@contextmanager
def assuming(real: bool) -> Iterator[None]:
    """They are recorded so."""
    before = assume((real, False))
    try:
        yield
    finally:
        assume(before)
