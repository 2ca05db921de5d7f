"""``getattr`` with a default, where methods of the user say which attributes there are; what looks
into an object by names or numbers."""

from __future__ import annotations

import operator
from typing import Any


def attribute_or(owner: Any, name: str, default: Any) -> Any:
    """``getattr(owner, name, default)``."""
    try:
        return getattr(owner, name)
    except AttributeError:
        return default


def _attribute(owner: Any, path: str) -> Any:
    name, dot, rest = path.partition(".")
    found = getattr(owner, name)
    return _attribute(found, rest) if dot else found


def attributes(owner: Any, paths: Any, _: Any) -> Any:
    """``operator.attrgetter(*paths)(owner)``"""
    if len(paths) == 1:
        return _attribute(owner, paths[0])
    return tuple([_attribute(owner, path) for path in paths])


def items(owner: Any, keys: Any, _: Any) -> Any:
    """``operator.itemgetter(*keys)(owner)``"""
    return owner[keys[0]] if len(keys) == 1 else tuple([owner[key] for key in keys])


def method(owner: Any, given: Any, options: Any) -> Any:
    """``operator.methodcaller(name, *args, **options)(owner)``"""
    return getattr(owner, given[0])(*given[1:], **options)


GETTERS: dict[Any, Any] = {
    operator.attrgetter: attributes,
    operator.itemgetter: items,
    operator.methodcaller: method,
}
