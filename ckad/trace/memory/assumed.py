"""What a recording assumes, which the numbers of a run alone tell.

Eigenvalues are real, as NumPy's ``eig`` gives them where no imaginary part is left. What an
iteration gives is derived as the solution of its system: its steps are the program where it has not
converged, for its result or for the derivative, as with a singular matrix. Every thread has its own
answers.
"""

from __future__ import annotations

import threading

from ckad.errors import UnfinishedError

#: Of a call at first: eigenvalues are real, iterations have converged, no eigenvalues are met yet.
FIRST = True, False, False
Answers = tuple[bool, bool, bool]


class _Assumed(threading.local):
    #: Whether eigenvalues are real, whether iterations are derived by their steps, and whether a
    #: recording has met eigenvalues meanwhile. One value: every call of a gradient sets it and
    #: puts it back.
    answers: Answers = False, False, False

    #: What has stopped the first run of a call that is made once more.
    stop: Exception | None = None


_assumed = _Assumed()


def unfinished() -> bool:
    """Whether a solution has ended too early, which a program that asks is told."""
    return isinstance(_assumed.stop, UnfinishedError)


def stopped_by(stop: Exception | None) -> Exception | None:
    """Let this thread assume what such a stop says; the one so far."""
    before, _assumed.stop = _assumed.stop, stop
    return before


def by_steps() -> bool:
    return _assumed.answers[1]


def real_spectra() -> bool:
    return _assumed.answers[0]


def asked_real_spectra() -> bool:
    """The same for a recording that has met eigenvalues."""
    real, steps, _ = _assumed.answers
    _assumed.answers = real, steps, True
    return real


def made_a_difference() -> bool:
    """Whether what was recorded would be another program if eigenvalues were complex."""
    real, _, asked = _assumed.answers
    return real and asked


def assume(answers: Answers) -> Answers:
    """Let this thread assume something else; what it has assumed so far."""
    before = _assumed.answers
    _assumed.answers = answers
    return before
