"""Traced counterparts of callables that NumPy does not hand over: SciPy's, and ``np.vectorize``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.trace.functions.windows import vectorized
from ckad.trace.tracer import FUNCTIONS


def external(callee: Any) -> Callable[..., Any] | None:
    """What is called in place of ``callee`` if an argument is traced; None if nothing is."""
    if isinstance(callee, np.vectorize):
        return functools.partial(vectorized, callee)
    module = getattr(callee, "__module__", None) or ""
    if not module.startswith(("scipy.ndimage", "scipy.signal", "scipy.integrate", "scipy.linalg")):
        return None
    import ckad.trace.functions.filters  # noqa: F401  (SciPy takes long to load)

    return FUNCTIONS.get(callee)
