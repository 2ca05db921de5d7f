"""How a time grows with a size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float | None:
    """The slope of the least-squares line of log(seconds) over log(size); None for one size."""
    if len(set(sizes)) < 2:
        return None
    x, y = np.log(sizes), np.log(seconds)
    x = x - x.mean()
    return float(x @ (y - y.mean()) / (x @ x))
