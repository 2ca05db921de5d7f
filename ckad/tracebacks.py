"""Tracebacks of the user's frames alone: what ckad did in between tells nobody anything."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar

from ckad.errors import CkadError
from ckad.place import is_users

F = TypeVar("F", bound=Callable[..., Any])


def trimmed(function: F) -> F:
    """A public function whose errors leave it with the user's frames alone.

    With ``CKAD_DEBUG=1`` in the environment all frames stay. Errors that are not ckad's do in any
    case: where they come from is the question then.
    """

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except CkadError as error:
            if os.environ.get("CKAD_DEBUG"):
                raise
            raise _trim(error) from error.__cause__

    return called  # type: ignore[return-value]


def _trim(error: BaseException) -> BaseException:
    """The error and what caused it, each with the user's frames."""
    seen = {id(error)}
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = _users(cause.__traceback__)
        cause.__suppress_context__ = True
        cause = cause.__cause__
        if id(cause) in seen:
            break
        seen.add(id(cause))
    return error


def _users(traceback: TracebackType | None) -> TracebackType | None:
    frames = []
    while traceback is not None:
        if is_users(traceback.tb_frame):
            frames.append(traceback)
        traceback = traceback.tb_next
    kept: TracebackType | None = None
    for found in reversed(frames):
        kept = TracebackType(kept, found.tb_frame, found.tb_lasti, found.tb_lineno)
    return kept
