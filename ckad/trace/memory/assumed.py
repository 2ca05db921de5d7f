"""What a recording assumes, which the numbers of a run alone tell.

Eigenvalues are real, as NumPy's ``eig`` gives them where no imaginary part is left; else they are
real nowhere; else complex, whatever they are. What an iteration gives is derived as the solution of
its system: its steps are the program where it has not converged, for its result or for the
derivative, as with a singular matrix. Every thread has its own answers.
"""

from __future__ import annotations

import threading
from enum import IntEnum

from ckad.errors import UnfinishedError


class Spectra(IntEnum):
    """What is assumed of eigenvalues, one after the other; of what may be both nothing is."""

    REAL = 0
    NOT_REAL = 1
    ANY = 2


#: Of a call at first: eigenvalues are real, iterations have converged, no eigenvalues are met yet.
FIRST = Spectra.REAL, False, False
Answers = tuple[Spectra, bool, bool]


class _Assumed(threading.local):
    #: What is assumed of eigenvalues, whether iterations are derived by their steps, and whether a
    #: recording has met eigenvalues meanwhile. One value: every call of a gradient sets it and
    #: puts it back.
    answers: Answers = Spectra.ANY, False, False

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


def spectra() -> Spectra:
    return _assumed.answers[0]


def asked_spectra() -> Spectra:
    """The same for a recording that has met eigenvalues."""
    found, steps, _ = _assumed.answers
    _assumed.answers = found, steps, True
    return found


def is_checked() -> bool:
    """Whether a run stops where what is assumed of eigenvalues does not hold, and no iteration is
    derived by its steps."""
    found, by_steps, _ = _assumed.answers
    return found is not Spectra.ANY and not by_steps


def made_a_difference() -> bool:
    """Whether what was recorded would be another program if eigenvalues were complex."""
    found, _, asked = _assumed.answers
    return asked and found is Spectra.REAL


def assume(answers: Answers) -> Answers:
    """Let this thread assume something else; what it has assumed so far."""
    before = _assumed.answers
    _assumed.answers = answers
    return before
