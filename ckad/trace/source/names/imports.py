"""``import`` inside of a function that is run from its source."""

from __future__ import annotations

import ast
import importlib.util
import sys
from types import ModuleType

from ckad.trace.source.names.frame import Frame
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
