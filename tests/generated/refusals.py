"""The refusals that a program may meet, by kind; any other error is a failure."""

from __future__ import annotations

import re
from typing import NamedTuple

from ckad import errors


class Refusal(NamedTuple):
    """An error class, a part of its messages, and what it refuses."""

    error: type[errors.CkadError]
    pattern: str
    kind: str


REFUSALS: tuple[Refusal, ...] = (
    Refusal(errors.ConcreteValueError, "a truth value is computed with", "class of a truth value"),
    Refusal(errors.RaisedError, "that the program may catch", "caught error of a number"),
    Refusal(errors.AliasError, "what this array holds is not known here", "memory not known"),
    Refusal(errors.AliasError, "binds .* to memory that has another name", "two names in a loop"),
    Refusal(errors.AliasError, "shows the memory that .* starts with", "two names before a loop"),
    Refusal(errors.AliasError, "that is recorded by itself", "write out of a function"),
    Refusal(errors.UnrecordableError, "changes a list that was made outside", "list changed"),
    Refusal(errors.UnrecordableError, "length or keys its steps change", "list of other length"),
    Refusal(errors.UnrecordableError, "which items a .* has depends", "list of unknown length"),
    Refusal(errors.AliasError, "may share memory in NumPy", "perhaps shared memory"),
    Refusal(errors.AliasError, "its body also reads by another name", "two names in a body"),
    Refusal(errors.CarryError, "on one side of a branch and", "other kinds on two sides"),
    Refusal(errors.CarryError, "from step to step, and it changes from", "other kinds of steps"),
    Refusal(errors.UnsupportedFunctionError, "whose length is only known", "run-time extents"),
    Refusal(errors.CarryError, "steps bind it to values of different kinds", "other kinds after"),
    Refusal(
        errors.UnsupportedFunctionError,
        "whose length is only known when the program runs",
        "function of a computed slice",
    ),
)


def refused(error: BaseException, file: str) -> str | None:
    """The kind of refusal that an error is; None if it is none of them or names no line."""
    message = str(error)
    if not re.search(rf"{re.escape(file)}:\d+", message):
        return None
    for refusal in REFUSALS:
        if type(error) is refusal.error and re.search(refusal.pattern, message):
            return refusal.kind
    return None
