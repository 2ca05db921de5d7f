"""``getattr`` with a default, where methods of the user say which attributes there are."""

from __future__ import annotations

from typing import Any


def attribute_or(owner: Any, name: str, default: Any) -> Any:
    """``getattr(owner, name, default)``."""
    try:
        return getattr(owner, name)
    except AttributeError:
        return default
