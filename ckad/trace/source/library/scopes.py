"""``globals()``, ``locals()`` and ``eval``: they ask for the names where they stand."""

from __future__ import annotations

import builtins
from types import CodeType, MappingProxyType
from typing import Any

from ckad import trees
from ckad.errors import UnrecordableError
from ckad.place import running
from ckad.trace.dispatch import Traced
from ckad.trace.source.names.frame import Frame, Maybe, Unclear, region
from ckad.trace.source.outside.watch import watch


def _frame() -> Frame:
    frame = running()[-1]
    assert isinstance(frame, Frame)
    return frame


def _globals() -> MappingProxyType[str, Any]:
    """What a module's names are bound to now; nothing can be bound by it."""
    names = _frame().function.__globals__
    if watched := watch():
        watched.give_up("globals()")
    if region() is not None and any(isinstance(x, Traced) for x in trees.flatten(names)[0]):
        raise _refused("globals() in the body of a loop or branch")
    return MappingProxyType(names)


def _locals() -> MappingProxyType[str, Any]:
    names = _frame().names
    if region() is not None or any(type(x) in (Maybe, Unclear) for x in names.values()):
        raise _refused("locals() in the body of a loop or branch, or after it,")
    return MappingProxyType(dict(names))


def _eval(text: Any, *namespaces: Any) -> Any:
    code = text if isinstance(text, CodeType) else compile(str(text).strip(), "<eval>", "eval")
    if not namespaces and code.co_names:
        raise _refused(f"eval() of a text with names ({', '.join(code.co_names)})")
    return eval(code, *namespaces)


def _exec(text: Any, *namespaces: Any) -> None:
    if not namespaces:
        raise _refused("exec() in the names of the function")
    exec(text, *namespaces)


def _refused(what: str) -> UnrecordableError:
    return UnrecordableError.here(
        f"{what} is not followed. Write the names and the expression themselves."
    )


#: builtin -> what is called in its place
COUNTERPARTS: dict[Any, Any] = {
    **{builtins.globals: _globals, builtins.locals: _locals},
    **{builtins.eval: _eval, builtins.exec: _exec},
}
