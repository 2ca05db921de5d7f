"""Objects of libraries that are called: what is called in their place on traced values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ckad.trace import dispatch


def called(callee: Any) -> Callable[..., Any] | None:
    """The counterpart of calling an object; None if there is none."""
    if isinstance(callee, np.vectorize):
        return partial(dispatch.plain(np.vectorize), callee)
    if not type(callee).__module__.startswith("scipy.interpolate"):
        return None
    counterpart = dispatch.cell(type(callee).__call__)
    return None if counterpart is None else partial(counterpart, callee)
