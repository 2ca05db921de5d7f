"""Whether eigenvalues are recorded as real numbers, and the program stops where they are not.

NumPy's ``eig`` gives real numbers where no imaginary part is left, which the numbers of a run alone
tell. Every thread has its own answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


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


@contextmanager
def assuming(real: bool) -> Iterator[None]:
    before = _assumed.real, _assumed.asked
    _assumed.real, _assumed.asked = real, False
    try:
        yield
    finally:
        _assumed.real, _assumed.asked = before
