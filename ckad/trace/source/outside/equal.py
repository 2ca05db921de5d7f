"""Whether two values that are not traced are one: nobody can tell them apart."""

from __future__ import annotations

from collections import deque
from types import FunctionType
from typing import Any

import numpy as np

from ckad.trace.source.libraries import is_library
from ckad.trace.source.skipped import Skipped
from ckad.trace.values.array import Array


def same(x: Any, y: Any) -> bool:
    """Whether two leaves that are not traced are one value."""
    if x is y or (type(x) is Skipped and type(y) is Skipped):
        return True
    if isinstance(x, Array) or isinstance(y, Array) or type(x) is not type(y):
        return False
    if isinstance(x, (np.ndarray, set)) or _is_compared_by_users(x):
        return False
    if isinstance(x, (tuple, list, deque)):
        return len(x) == len(y) and all(map(same, x, y))
    if isinstance(x, dict):
        return list(x) == list(y) and all(same(x[key], y[key]) for key in x)
    try:
        return bool(x == y) and _are_of_one_sign(x, y)
    except Exception:
        return False


def _is_compared_by_users(x: Any) -> bool:
    """Whether a user's class says what is equal: that may differ from ``x`` in all but a name."""
    kind: Any = type(x)
    return type(kind.__eq__) is FunctionType and not is_library(kind.__module__)


def _are_of_one_sign(x: Any, y: Any) -> bool:
    """Whether equal numbers are not 0.0 and -0.0."""
    return not isinstance(x, (float, complex, np.inexact)) or repr(x) == repr(y)
