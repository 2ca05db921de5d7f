"""Whether eigenvalues are recorded as real numbers, and the program stops where they are not.

NumPy's ``eig`` gives real numbers where no imaginary part is left, which the numbers of a run alone
tell. Every thread has its own answer.
"""

from __future__ import annotations

import threading


class _Assumed(threading.local):
    real = False
    asked = False  # whether a recording has met eigenvalues meanwhile


_assumed = _Assumed()


def assumed_real() -> bool:
    """Asked by a recording that has met eigenvalues."""
    _assumed.asked = True
    return _assumed.real


def are_assumed_real() -> bool:
    return _assumed.real


def made_a_difference() -> bool:
    """Whether what was recorded would be another program if they were complex."""
    return _assumed.real and _assumed.asked


class assuming:
    """They are recorded so; a class, since every call of a gradient is in one."""

    def __init__(self, real: bool) -> None:
        self.real = real

    def __enter__(self) -> None:
        self.before = _assumed.real, _assumed.asked
        _assumed.real, _assumed.asked = self.real, False

    def __exit__(self, *error: object) -> None:
        _assumed.real, _assumed.asked = self.before
