"""The stack of traces that are being recorded, each in the one before; every thread has its own."""

from __future__ import annotations

import threading
from typing import Any


class _Opened(threading.local):
    def __init__(self) -> None:
        self.traces: list[Any] = []


_opened = _Opened()


def stack() -> list[Any]:
    return _opened.traces


def is_open(trace: Any) -> bool:
    """Whether ``trace`` is being recorded now, by this thread."""
    return trace in _opened.traces


def is_tracing() -> bool:
    return bool(_opened.traces)
