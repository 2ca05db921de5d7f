"""What a recording assumes, which the numbers of a run alone tell.

Eigenvalues are real, as NumPy's ``eig`` gives them where no imaginary part is left. What an
iteration gives is derived as the solution of its system: its steps are the program where it has not
converged, for its result or for the derivative, as with a singular matrix. Every thread has its own
answers.
"""

from __future__ import annotations

import threading


class _Assumed(threading.local):
    real_spectra = False
    by_steps = False  # iterations are derived by their steps
    asked = False  # whether a recording has met eigenvalues meanwhile


_assumed = _Assumed()


def by_steps() -> bool:
    return _assumed.by_steps


def real_spectra() -> bool:
    return _assumed.real_spectra


def asked_real_spectra() -> bool:
    """The same for a recording that has met eigenvalues."""
    _assumed.asked = True
    return _assumed.real_spectra


def made_a_difference() -> bool:
    """Whether what was recorded would be another program if eigenvalues were complex."""
    return _assumed.real_spectra and _assumed.asked


class assuming:
    """What is recorded in here assumes that; a class, since every call of a gradient is in one."""

    def __init__(self, real_spectra: bool, by_steps: bool) -> None:
        self.wanted = real_spectra, by_steps, False

    def __enter__(self) -> None:
        self.before = _assumed.real_spectra, _assumed.by_steps, _assumed.asked
        _assumed.real_spectra, _assumed.by_steps, _assumed.asked = self.wanted

    def __exit__(self, *error: object) -> None:
        _assumed.real_spectra, _assumed.by_steps, _assumed.asked = self.before
