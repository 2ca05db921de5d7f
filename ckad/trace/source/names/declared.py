"""``import`` and ``class`` inside of a function that is run from its source."""

from __future__ import annotations

import ast
import importlib.util
import sys
import types
from collections.abc import MutableMapping
from types import ModuleType
from typing import Any

from ckad.trace.source.actions import evaluate, run_block
from ckad.trace.source.names.closures import OWN_CLASS, ClassFrame, Closure
from ckad.trace.source.names.frame import Frame, ledger, made
from ckad.trace.source.outside.watch import watch


def _module(name: str, package: str | None = None) -> ModuleType:
    """The module that an import inside of a function gives."""
    module = importlib.import_module(name, package)
    if watched := watch():
        watched.name(sys.modules, importlib.util.resolve_name(name, package))
    return module


def import_module(frame: Frame, node: ast.Import) -> None:
    for alias in node.names:
        module = _module(alias.name)
        if alias.asname is None:
            name = alias.name.partition(".")[0]
            frame.bind(name, _module(name))
        else:
            frame.bind(alias.asname, module)


def import_from(frame: Frame, node: ast.ImportFrom) -> None:
    package = frame.function.__globals__.get("__package__")
    module = _module("." * node.level + (node.module or ""), package)
    for alias in node.names:
        if watched := watch():
            watched.attribute(module, alias.name)
        try:
            found = getattr(module, alias.name)
        except AttributeError:
            found = _module(f"{module.__name__}.{alias.name}")
        frame.bind(alias.asname or alias.name, found)


# --- classes -------------------------------------------------------------------------------------

_STATIC, _OF_CLASS = ("__new__",), ("__init_subclass__", "__class_getitem__")


def define_class(frame: Frame, node: ast.ClassDef) -> type:
    """The class that a ``class`` statement makes; its methods are run from their source."""
    body = ClassFrame(frame, node)

    def fill(names: MutableMapping[str, Any]) -> None:
        run_block(body, node.body)
        names["__module__"] = frame.function.__module__
        if noted := _annotations(body, node):
            names["__annotations__"] = noted
        for name, value in body.names.items():
            names[name] = _as_method(name, value)

    bases = tuple(evaluate(frame, base) for base in node.bases)
    options = {x.arg: evaluate(frame, x.value) for x in node.keywords if x.arg is not None}
    kind: type = made(types.new_class(node.name, bases, options, fill))
    ledger().made[id(kind)] = kind
    if watched := watch():
        watched.adopt(kind)
    body.around.names[OWN_CLASS] = kind
    return kind


def _as_method(name: str, value: Any) -> Any:
    """What Python makes by itself of a few functions in a class."""
    if type(value) is not Closure:
        return value
    wrapper = staticmethod if name in _STATIC else classmethod if name in _OF_CLASS else None
    return value if wrapper is None else wrapper(value)


def _annotations(body: ClassFrame, node: ast.ClassDef) -> dict[str, Any]:
    """What is said of the kinds of names, as text where it cannot be evaluated."""
    found: dict[str, Any] = {}
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            try:
                kind = evaluate(body, statement.annotation)
            except (NameError, TypeError, AttributeError):
                kind = ast.unparse(statement.annotation)
            found[statement.target.id] = kind
    return found
