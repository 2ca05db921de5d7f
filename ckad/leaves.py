"""Leaves of pytrees that are known at a look, as those of most calls are, which wait for it."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Classes of single numbers, and element types of arrays that are taken as they are.
_NUMBERS = frozenset((float, int, bool, str))
_ELEMENTS = frozenset(np.dtype(kind).char for kind in (np.float64, np.float32, np.int64, np.bool_))


def is_whole(x: Any) -> bool:
    """Whether a leaf certainly has no parts of its own, as complex numbers have."""
    kind = type(x)
    return kind in _NUMBERS or (kind is np.ndarray and x.dtype.char in _ELEMENTS)
