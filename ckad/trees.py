"""Pytrees: nested tuples, lists, dicts, namedtuples and dataclasses of arrays."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import optree

_NAMESPACE = "ckad"
_known: set[type] = set()
_lock = threading.Lock()

Treedef = optree.PyTreeSpec


def flatten(tree: Any) -> tuple[list[Any], Treedef]:
    """Leaves in order, and the structure. ``None`` is an empty subtree."""
    leaves, treedef = optree.tree_flatten(tree, namespace=_NAMESPACE)
    new = {type(x) for x in leaves if _is_dataclass(x)}
    if not new:
        return leaves, treedef
    for cls in new:
        _register(cls)
    return flatten(tree)


def unflatten(treedef: Treedef, leaves: list[Any]) -> Any:
    return optree.tree_unflatten(treedef, leaves)


def describe(treedef: Treedef) -> str:
    """The structure for people: ``{'a': array, 'b': (array, array)}``."""
    text = str(treedef).removeprefix("PyTreeSpec(").removesuffix(")")
    text = text.removesuffix(f", namespace={_NAMESPACE!r}").replace("*", "array")
    return text.replace("CustomTreeNode(", "(") if "CustomTreeNode" in text else text


def map_leaves(function: Callable[..., Any], tree: Any) -> Any:
    leaves, treedef = flatten(tree)
    return unflatten(treedef, [function(x) for x in leaves])


def _is_dataclass(x: Any) -> bool:
    return dataclasses.is_dataclass(x) and not isinstance(x, type)


def _register(cls: type) -> None:
    names = tuple(f.name for f in dataclasses.fields(cls) if f.init)

    def children(x: Any) -> tuple[tuple[Any, ...], None, tuple[str, ...]]:
        return tuple(getattr(x, name) for name in names), None, names

    def rebuild(_: Any, values: Any) -> Any:
        return cls(**dict(zip(names, values, strict=True)))

    with _lock:
        if cls not in _known:
            optree.register_pytree_node(cls, children, rebuild, namespace=_NAMESPACE)
            _known.add(cls)
