"""``isinstance``, ``type`` and ``np.isscalar`` of traced values: what they say of NumPy's.

A function that asks must go the way that it goes without ckad.
"""

from __future__ import annotations

from types import UnionType
from typing import Any

import numpy as np

from ckad.trace.dispatch import EVERY, put

_PYTHON = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def _class_of(x: Any) -> type:
    """The class of the value that ``x`` stands for; that of ``x`` if it is not traced."""
    if not type(x).__module__.startswith("ckad.trace."):
        return type(x)
    if getattr(x, "weak", False):
        return _PYTHON[x.dtype.kind]
    return x.dtype.type if getattr(x, "scalar", False) else np.ndarray


def _isinstance(x: Any, classes: type | UnionType | tuple[Any, ...]) -> bool:
    return isinstance(x, classes) or issubclass(_class_of(x), classes)


def _type(x: Any, *definition: Any) -> type:
    return type(x, *definition) if definition else _class_of(x)


def _isscalar(x: Any) -> bool:
    return np.isscalar(x) or issubclass(_class_of(x), (np.generic, int, float, complex))


put(isinstance, _isinstance, EVERY)
put(type, _type, EVERY)
put(np.isscalar, _isscalar, EVERY)
