"""Tracebacks of the user's frames alone: what ckad did in between tells nobody anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import Any, TypeVar

from ckad.errors import CkadError
from ckad.place import is_users, is_users_file
from ckad.trace.source.control import guarded
from ckad.trace.source.names.closures import run
from ckad.trace.source.names.frame import Frame
from ckad.trace.source.names.generated import driven

F = TypeVar("F", bound=Callable[..., Any])
_PACKAGE = str(Path(__file__).parent) + os.sep
#: Where ckad stands while it reads a program: an error that is not its own is the program's there.
_READING = (_PACKAGE + "trace" + os.sep, __file__)
_FOR_ALL = "CKAD_DEBUG=1 in the environment shows what ckad did there."


def trimmed(function: F) -> F:
    """A public function whose errors leave it with the user's frames alone.

    With ``CKAD_DEBUG=1`` in the environment all frames stay. So they do where neither ckad says
    what is wrong nor the program was being read: where such an error comes from is the question.
    """

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except Exception as error:
            if os.environ.get("CKAD_DEBUG") or not (isinstance(error, CkadError) or _read(error)):
                raise
            raise _trim(error) from error.__cause__

    return called  # type: ignore[return-value]


def _read(error: Exception) -> bool:
    """Whether an error was met in the program as it was read; what else may be asked is noted."""
    files = [each.tb_frame.f_code.co_filename for each in _frames(error.__traceback__)]
    ours = [file for file in files if file.startswith(_PACKAGE)]
    if not ours[-1].startswith(_READING):
        return False
    is_placed = str(error).partition(": ")[0].rpartition(":")[2].isdigit()
    if files[-1] == ours[-1] not in (__file__, guarded.__file__) and not is_placed:
        error.add_note(_FOR_ALL)
    return True


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


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _users(traceback: TracebackType | None) -> TracebackType | None:
    kept: TracebackType | None = None
    for each in reversed([*_frames(traceback)]):
        frame = each.tb_frame
        if is_users(frame):
            kept = TracebackType(kept, frame, each.tb_lasti, each.tb_lineno)
        elif frame.f_code in _RUNNING and is_users_file(frame.f_locals["frame"].place.file):
            kept = _as_python_shows(frame.f_locals["frame"], kept)
    return kept


#: What runs the body of a user's function from its source.
_RUNNING: tuple[CodeType, ...] = (run.__code__, driven.__code__)


def _as_python_shows(read: Frame, inner: TracebackType | None) -> TracebackType:
    """A call that was read, as Python shows one that it has made."""
    place, name = read.place, read.definition.name
    code = _stand_in.__code__.replace(co_filename=place.file, co_name=name, co_qualname=name)
    stand_in = FunctionType(code, read.function.__globals__)
    return TracebackType(inner, stand_in().gi_frame, -1, place.line)


def _stand_in() -> Iterator[None]:
    """A generator has a frame before it runs."""
    yield
