"""Solvers, which call the user's function an unknown number of times.

It is recorded for some of these calls. What it changes around it, a count of its calls, is not
known afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from ckad.errors import ConcreteValueError
from ckad.trace.dispatch import is_always_called
from ckad.trace.memory.context import current, not_carried
from ckad.trace.memory.opened import is_tracing
from ckad.trace.source.memory.contents import ITEMS, Contents, contents
from ckad.trace.source.memory.objects import Attributes, attributes_of
from ckad.trace.source.memory.rows.numbered import Entries, entries_of
from ckad.trace.source.names.frame import MISSING, Frame, Outside, Unclear, open_region, outside
from ckad.trace.source.skipped import Skipped
from ckad.trace.source.values import holds_tracer

_SOLVERS = ("scipy.integrate", "scipy.optimize", "ckad.integrate", "ckad.optimize")


class _Changed(NamedTuple):
    frame: Frame
    name: str
    unknown: Any  # what stands for it


class _Solving(threading.local):
    """What the functions change that the present solver calls; None where no solver is."""

    changed: dict[tuple[int, str], _Changed] | None = None
    solver = ""


_now = _Solving()


def is_solver(callee: Any) -> bool:
    """Whether functions may be handed over that are called often; within one, nothing else is."""
    return _now.changed is None and is_tracing() and calls_functions(callee)


def calls_functions(callee: Any) -> bool:
    """Whether ``callee`` is a function of a package that calls the functions it is given."""
    if isinstance(callee, type):
        return False
    return _is_of_solvers(callee)


def is_noted_later(callee: Any) -> bool:
    """Whether it is a solver, which is recorded unless `by_library` gives what it finds."""
    return _is_of_solvers(callee) and is_always_called(callee)


def _is_of_solvers(callee: Any) -> bool:
    return (getattr(callee, "__module__", None) or "").startswith(_SOLVERS)


@contextmanager
def solving(callee: Callable[..., Any]) -> Iterator[None]:
    """Let nobody read what functions change that ``callee`` calls; what reads it is an error.

    Where nothing is recorded a library has made all calls.
    """
    rows = current().builder.rows
    n_rows, _now.changed = len(rows), {}
    _now.solver = getattr(callee, "__name__", type(callee).__name__)
    try:
        yield
        found = _now.changed if len(rows) > n_rows else {}
    finally:
        _now.changed = None
    _put(found)


@contextmanager
def called_again() -> Iterator[None]:
    """Within, one call of a user's function: what other calls change is not known."""
    if _now.changed is None:
        with not_carried():
            yield
        return
    with not_carried(), open_region() as inner:
        inner.solver = _now.solver
        _put(_now.changed)
        yield
        for (frame, name), before in inner.changed.items():
            place = id(_owner(frame)), name
            if _is_users(frame) and place not in _now.changed:
                end = frame.names.get(name, MISSING)
                _now.changed[place] = _Changed(frame, name, _unknown(frame, name, before, end))


def _put(changed: Mapping[Any, _Changed]) -> None:
    for frame, name, unknown in changed.values():
        here = _in_sight(frame, name)
        here.note_change(name)
        here.restore(name, unknown)


def _is_users(frame: Frame) -> bool:
    return type(frame) is Frame or isinstance(frame, (Contents, Attributes, Outside))


def _owner(frame: Frame) -> Any:
    """What stays while recordings within each other have frames of their own for it."""
    if isinstance(frame, (Contents, Attributes)):
        return frame.owner
    if isinstance(frame, Outside):
        return frame.names.owner if frame.names.cell is None else frame.names.cell
    return frame


def _in_sight(frame: Frame, name: str) -> Frame:
    """The frame of the present recording."""
    if isinstance(frame, Contents):
        return contents(frame.owner)
    if isinstance(frame, Attributes):
        return attributes_of(frame.owner, name) or frame
    return outside(frame.names.owner, frame.names.cell) if isinstance(frame, Outside) else frame


def _unknown(frame: Frame, name: str, before: Any, end: Any) -> Any:
    """What is bound in place of the value, or the items, that a call leaves: ``end``."""
    if (before is MISSING or before is None) and not holds_tracer(end):
        return end  # made by the first call for those after it
    what = f"a {type(_owner(frame)).__name__}" if name == ITEMS else repr(name)
    why = (
        f"{what} is changed by a function that {_now.solver} calls. That is recorded for some of "
        "its calls, so that what is there in others and after them is not known. Leave it out, or "
        "take what the result tells (nfev)."
    )
    if name != ITEMS:
        return Skipped(what, why)
    unknown = Skipped(what, why)
    if type(end) is frozenset and before <= end:
        return end  # the same is put into it by each call
    if type(end) is type(before) is Entries and set(before.keys) <= set(end.keys):
        old = dict(zip(before.keys, before, strict=True))
        values = [
            y if old.get(k, unknown) is y else unknown for k, y in zip(end.keys, end, strict=True)
        ]
        return entries_of(end.keys, values)
    if type(end) is type(before) is tuple and len(before) == len(end):
        return tuple(y if x is y else unknown for x, y in zip(before, end, strict=True))
    return Unclear(ConcreteValueError.here(why))
