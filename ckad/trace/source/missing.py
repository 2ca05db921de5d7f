"""What stands for the value of a name that is not bound."""

from __future__ import annotations

from typing import Any


class _Missing:
    def __repr__(self) -> str:
        return "<not bound>"


MISSING: Any = _Missing()
