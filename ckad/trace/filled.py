"""Results of a user's function on parts of an array: loops, run from source as a user's code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def elements(
    function: Callable[..., Any], out: Any, columns: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """``out[i] = function(x[i], y[i], ...)``."""
    for i in range(len(out)):
        out[i] = function(*[x[i] for x in columns], **options)
    return out


def rows(
    function: Callable[..., Any], out: Any, lines: Any, rest: Sequence[Any], options: Any
) -> Any:
    """``out[i] = function(lines[i], ...)`` for all but the first."""
    for i in range(1, len(out)):
        out[i] = function(lines[i], *rest, **options)
    return out
