"""Every exception ckad raises.

Each message states the fact, the numbers, the place in the user's program and the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from ckad.place import Source, at_place


class CkadError(Exception):
    """Base class of all errors raised by ckad.

    >>> import numpy as np, ckad
    >>> try:
    ...     ckad.grad(lambda x: np.sum(x), memory="1 kilo")(np.ones(3))
    ... except ckad.CkadError as error:
    ...     print(type(error).__name__, isinstance(error, ValueError))
    BudgetError True
    """

    @classmethod
    def here(cls, message: str, place: Source | None = None) -> Self:
        """The error with the user's file, line and source line in front of the message."""
        return cls(at_place(message, place))


class ScheduleError(CkadError, ValueError):
    """A checkpointing schedule that cannot be built, or that is not valid."""


class BudgetError(CkadError, ValueError):
    """A memory budget that cannot be read, or that is below what the program needs."""


class CheckpointError(CkadError, OSError):
    """A checkpoint on disk that cannot be written, or that is not what was written.

    ``path`` is the file or directory, ``needed`` and ``free`` are bytes where they are known, and
    ``slot`` is the slot whose contents are lost, if one's are: what it held can be computed again.
    Where a run differs from the one on the disk, ``was`` says what that was begun with, by name.
    """

    def __init__(
        self,
        message: str,
        path: str = "",
        needed: int | None = None,
        free: int | None = None,
        slot: int | None = None,
        was: Mapping[str, str | None] | None = None,
    ) -> None:
        super().__init__(message)
        self.path, self.needed, self.free, self.slot = path, needed, free, slot
        self.was = dict(was or {})


class EngineError(CkadError, ValueError):
    """An engine that does not exist."""


class TapeError(CkadError, ValueError):
    """A tape that breaks its own rules, or a file that does not hold a tape."""


class TraceError(CkadError, TypeError):
    """The user's function does something that ckad cannot record."""


class UnsupportedFunctionError(TraceError):
    """A NumPy function, or an argument of one, that ckad has no rule for."""


class UnknownLengthError(UnsupportedFunctionError):
    """A function that needs the length of an array which is only known when the program runs."""


class UnrecordableError(TraceError):
    """A loop or branch whose body cannot be recorded once for all its steps, or written into."""


class ConcreteValueError(TraceError):
    """Python asked a traced value for a number: ``if``, ``float()``, a write into a plain array.

    ``told`` holds what the last ones said: a library's C code turns them into errors of its own.
    """

    told: ClassVar[list[str]] = []

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.told[:] = [message]

    @classmethod
    def here(cls, message: str, place: Source | None = None) -> Self:
        said = at_place(message, place)
        return cls(said if "\n" in said else f"{said} {_WITHOUT_SOURCE}")


#: Where there is no line to quote.
_WITHOUT_SOURCE = (
    "The source of this line is not known (it was typed at Python's prompt, or made by exec), so "
    "that its function is run and not read: in a file it may be recorded as it stands."
)


class CarryError(TraceError):
    """A loop's carry changes its structure, shape or dtype from one step to the next."""


class LengthError(TraceError, ValueError):
    """A loop whose number of steps is negative, missing, not an integer, or contradicted."""


class AliasError(TraceError):
    """A write whose effect on other names cannot be known, or that reaches out of a loop body."""


class ArgumentAliasError(AliasError):
    """A write into an argument whose memory the function also reads from outside."""


class DtypeError(TraceError):
    """An element type that ckad does not compute with."""


class DifferentiationError(CkadError, TypeError):
    """What is asked for has no derivative: a non-scalar output, an integer input."""


class BatchError(CkadError, ValueError):
    """Arguments of `ckad.vmap` without a common axis, or a program that has none to run along."""


class TracedIndexError(CkadError, IndexError):
    """An index computed by the program is out of range."""


class TracedShapeError(CkadError, ValueError):
    """Arrays whose lengths the program computes do not fit together."""


class UnboundError(CkadError, UnboundLocalError):
    """A variable is read that no step of a loop, or no branch taken, has bound."""


class NoneValueError(CkadError, TypeError):
    """None is used where Python needs a value."""


class DivisionError(CkadError, ZeroDivisionError):
    """A Python integer is divided by zero, which Python refuses."""


class RaisedError(CkadError, RuntimeError):
    """The program came to a ``raise`` or a failing ``assert`` in a loop or branch."""


class ComplexSpectrumError(RaisedError):
    """Eigenvalues are complex, and the program was recorded for real ones, as NumPy gives them."""


class UnsolvedError(RaisedError):
    """An iteration for a linear system has not converged, forwards or for the derivative."""


class UnfinishedError(RaisedError):
    """A solution of a differential equation ends before its last time: a step is too small."""


class NonFiniteError(CkadError, FloatingPointError):
    """A NaN or an infinity was produced while ``check_finite=True``.

    ``row`` is the row of the tape that produced it or holds the loop around it, ``reverse`` whether
    that was in the reverse body of a loop.
    """

    def __init__(self, message: str, row: int = -1, reverse: bool = False) -> None:
        super().__init__(message)
        self.row, self.reverse = row, reverse


class PlaceError(CkadError, LookupError):
    """A place of the user's program that no op comes from, or that was not run."""


class GradientCheckError(CkadError, AssertionError):
    """A derivative disagrees with what `ckad.testing.check_grads` compares it with."""


class RecomputeWarning(UserWarning):
    """A memory budget so small that steps are computed again and again."""


class UnrolledLoopWarning(UserWarning):
    """A long loop is recorded step by step, since its body cannot be recorded once for all."""


class AsRunWarning(UserWarning):
    """A program is recorded as it runs for the numbers of one call, since it cannot be for all."""


class SkippedCallWarning(UserWarning):
    """Calls that plot, print, log, time or write files are left out of a recording."""


class SolverWarning(UserWarning):
    """A solver of SciPy is recorded with the steps of another method, to the same tolerances."""
