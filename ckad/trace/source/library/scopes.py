"""``globals()``, ``locals()``, ``eval`` and ``exec``: they ask for the names where they stand."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from types import CodeType, MappingProxyType
from typing import Any

from ckad.errors import UnrecordableError
from ckad.place import running
from ckad.trace.source.actions import evaluate, run_block
from ckad.trace.source.names.frame import MISSING, Frame, Maybe, Unclear, outside, region
from ckad.trace.source.outside.watch import watch


def _frame() -> Frame:
    frame = running()[-1]
    assert isinstance(frame, Frame)
    return frame


class _Globals(Mapping[str, Any]):
    """What a module's names are bound to now; nothing can be bound by it."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    def _binding(self, name: str) -> Any:
        found = outside(self.names)
        if watched := watch():
            found.names.watched(watched, name)
        value = found.binding(name)
        if type(value) is Maybe:
            raise _refused(f"globals() of {name!r}, which some steps or sides bind,")
        return found.names.given(name, MISSING) if value is MISSING else value

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._binding(name) is not MISSING

    def __getitem__(self, name: str) -> Any:
        value = self._binding(name)
        if value is MISSING:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        if region() is not None:
            raise _refused("all that globals() holds, in the body of a loop or branch,")
        if watched := watch():
            watched.give_up("globals()")
        return iter(list(self.names))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _globals() -> _Globals:
    return _Globals(_frame().function.__globals__)


def _locals() -> MappingProxyType[str, Any]:
    names = _frame().names
    if region() is not None or any(type(x) in (Maybe, Unclear) for x in names.values()):
        raise _refused("locals() in the body of a loop or branch, or after it,")
    return MappingProxyType(dict(names))


def _eval(text: Any, *namespaces: Any) -> Any:
    if namespaces or type(text) is not str:
        code = text if isinstance(text, CodeType) else compile(str(text).strip(), "<eval>", "eval")
        if not namespaces and code.co_names:
            raise _refused(f"eval() of a text with names ({', '.join(code.co_names)})")
        return eval(code, *namespaces)
    tree = ast.parse(text.strip(), "<eval>", "eval")
    return evaluate(_followed("eval()", tree), tree.body)


def _exec(text: Any, *namespaces: Any) -> None:
    if namespaces:
        exec(text, *namespaces)
        return
    if type(text) is not str:
        raise _refused("exec() in the names of the function")
    tree = ast.parse(text, "<exec>")
    frame = _followed("exec()", tree)
    statement, doing = frame.statement, frame.doing
    run_block(frame, tree.body)
    frame.statement, frame.doing = statement, doing


def _followed(what: str, tree: ast.AST) -> Frame:
    """The function in whose names a text is run, if these are all that it needs: it binds none, and
    has no scope of its own. Within a loop or branch it may read those of modules only."""
    frame = _frame()
    names = set()
    for node in ast.walk(tree):
        if not isinstance(node, _FOLLOWED):
            raise _refused(f"{what} of a text with {ast.unparse(node)!r}")
        if isinstance(node, ast.Name):
            names.add(node.id)
            if not isinstance(node.ctx, ast.Load):
                raise _refused(f"{what} of a text that binds {node.id}")
        if isinstance(node, (ast.expr, ast.stmt)):
            node.lineno = node.end_lineno = frame.line
    if region() is not None and (own := sorted(x for x in names if _is_local(frame, x))):
        raise _refused(f"{what} of a text with names ({', '.join(own)}) in a loop or branch")
    return frame


def _is_local(frame: Frame | None, name: str) -> bool:
    return frame is not None and (name in frame.definition.locals or _is_local(frame.outer, name))


def _refused(what: str) -> UnrecordableError:
    return UnrecordableError.here(
        f"{what} is not followed. Write the names and the expression themselves."
    )


#: What may be in a text that is run in the names of a function.
_FOLLOWED = (
    *(ast.Expression, ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.Pass, ast.Name),
    *(ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Dict, ast.Constant),
    *(ast.Call, ast.keyword, ast.Starred, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
    *(ast.IfExp, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
#: builtin -> what is called in its place
COUNTERPARTS: dict[Any, Any] = {
    **{builtins.globals: _globals, builtins.locals: _locals},
    **{builtins.eval: _eval, builtins.exec: _exec},
}
