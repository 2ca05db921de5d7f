"""Builtins that look up or bind names: ``getattr``, ``setattr``, ``vars``, ``globals`` and others.

Called as they are, they would see the names of ckad, or change objects without that being noted.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from ckad.errors import UnrecordableError
from ckad.trace.source import classes, objects
from ckad.trace.source.frame import Frame, ledger, made
from ckad.trace.tracer import Tracer
from ckad.trace.where import at_place, running


def _getattr(owner: Any, name: str, *default: Any) -> Any:
    if default and isinstance(objects.is_bound(owner, name), Tracer):
        raise UnrecordableError(
            at_place(
                f"whether there is an attribute {name!r} depends on a traced value. Bind it on "
                "each path."
            )
        )
    try:
        return classes.attribute(owner, name)
    except AttributeError:
        if not default:
            raise
        return default[0]


def _hasattr(owner: Any, name: str) -> Any:
    bound = objects.is_bound(owner, name)
    if isinstance(bound, Tracer):
        return bound
    try:
        classes.attribute(owner, name)
    except AttributeError:
        return False
    return True


def _vars(*owner: Any) -> Any:
    return classes.attribute(owner[0], "__dict__") if owner else _locals()


def _dir(*owner: Any) -> list[str]:
    if not owner:
        return sorted(_locals())
    frame = objects.attributes(owner[0])
    if frame is not None:
        frame.note_listed()
    return made(dir(*owner))  # type: ignore[no-any-return]


def _locals() -> Any:
    frame = _caller()
    names = frame.definition.locals & frame.names.keys()
    return made({name: frame.local(name) for name in names})


def _globals() -> Any:
    names = _caller().function.__globals__
    ledger().outside.whole(names)
    return names


def _caller() -> Frame:
    frame = running()[-1]
    assert isinstance(frame, Frame)
    return frame


def _run(run: Callable[..., Any]) -> Callable[..., Any]:
    def run_text(code: Any, *names: Any, **options: Any) -> Any:
        if names or options.get("globals") is not None:
            from ckad.trace.source.repeatable import check_callable

            check_callable(run, ())
            return run(code, *names, **options)
        raise UnrecordableError(
            at_place(
                f"{run.__name__}() runs code that stands in no file, over names that are not "
                "Python's own while the program is recorded. Write the code out, or pass a dict "
                "of the names."
            )
        )

    return run_text


BUILTINS: dict[Any, Callable[..., Any]] = {
    builtins.getattr: _getattr,
    builtins.hasattr: _hasattr,
    builtins.setattr: classes.set_attribute,
    builtins.delattr: classes.delete_attribute,
    builtins.vars: _vars,
    builtins.dir: _dir,
    builtins.locals: _locals,
    builtins.globals: _globals,
    builtins.eval: _run(eval),
    builtins.exec: _run(exec),
}
