"""The stack of traces that are being recorded, each in the one before; every thread has its own.

Beside it, whether Python makes a text of traced values at the moment, and of which.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Opened(threading.local):
    def __init__(self) -> None:
        self.traces: list[Any] = []
        self.texts: list[list[Any]] = []


#: Those of this thread.
opened = _Opened()


def stack() -> list[Any]:
    return opened.traces


def is_open(trace: Any) -> bool:
    """Whether ``trace`` is being recorded now, by this thread."""
    return trace in opened.traces


def is_tracing() -> bool:
    return bool(opened.traces)


@contextmanager
def making_text() -> Iterator[list[Any]]:
    """Methods of the user may make texts of traced values, which are noted in what this gives."""
    values: list[Any] = []
    opened.texts.append(values)
    try:
        yield values
    finally:
        opened.texts.pop()
        if opened.texts:
            opened.texts[-1].extend(values)


def is_text(value: Any) -> bool:
    """Whether a traced value is asked for its number only to be shown."""
    if opened.texts:
        opened.texts[-1].append(value)
    return bool(opened.texts)
