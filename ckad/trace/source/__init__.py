"""Functions run from their source over tracers, so that loops and branches are recorded.

``follow`` is the way in: it calls a function so that Python's own ``for``, ``while`` and ``if``
become loops and branches of the tape where they depend on traced values.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ckad.trace import dispatch
from ckad.trace.arrays import called
from ckad.trace.memory.opened import is_tracing
from ckad.trace.source.actions import Actions, hand_over
from ckad.trace.source.calls import call
from ckad.trace.source.control.checks import by_builtin, certain, checked, none_used, note_raise
from ckad.trace.source.control.chosen import truth_of
from ckad.trace.source.control.filled import told_apart
from ckad.trace.source.control.sequences.filtered import reduced
from ckad.trace.source.control.sequences.generators import ended, listed
from ckad.trace.source.control.sequences.ordering import extreme, ordered
from ckad.trace.source.expressions import element, evaluate, tested, unread
from ckad.trace.source.library.often import called_again
from ckad.trace.source.library.scopes import COUNTERPARTS
from ckad.trace.source.names.absence import given_deep
from ckad.trace.source.names.depth import deeper
from ckad.trace.source.statements import assign, returned_by, run_block


def follow(function: Callable[..., Any], often: bool = False) -> Callable[..., Any]:
    """``function``, run from its source where that can be read; as it is outside of a recording.

    ``often`` says that a solver calls it, who knows how often.
    """

    def followed(*args: Any, **options: Any) -> Any:
        if not is_tracing():
            return function(*args, **options)
        with deeper(), checked() as after, called_again() if often else nullcontext():
            return after(given_deep(call(function, args, options)))

    return followed


def _called(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return call(function, args, options)


dispatch.put(called, _called, dispatch.EVERY)
for _builtin, _function in COUNTERPARTS.items():
    dispatch.put(_builtin, _function, dispatch.ANY)
    dispatch.always(_builtin)
_INTERPRETING = (evaluate, unread, tested, assign, run_block, returned_by, certain, none_used)
_ASKED = (note_raise, ended, listed, reduced, ordered, extreme, by_builtin, told_apart, truth_of)
hand_over(Actions(*_INTERPRETING, *_ASKED, element))
