"""``np.linalg`` on complex matrices: ``A + iB`` acts as the real matrix ``[[A, -B], [B, A]]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.trace.dispatch import COMPLEX, implements
from ckad.trace.values.complex import ComplexTracer, as_complex


def _as_real(a: Any) -> Any:
    real, imag = as_complex(a).parts
    rows = [np.concatenate(row, -1) for row in ((real, -imag), (imag, real))]
    return np.concatenate(rows, -2)


def _halved(x: Any) -> ComplexTracer:
    """The complex matrix of which the real and the imaginary part stand above each other."""
    n = x.shape[-2] // 2
    return ComplexTracer(x[..., :n, :], x[..., n:, :])


@implements(np.linalg.solve, kind=COMPLEX)
def solve(a: Any, b: Any) -> ComplexTracer:
    right = as_complex(b)
    if right.ndim == 1:
        column: ComplexTracer = solve(a, right[:, None])[..., 0]
        return column
    return _halved(np.linalg.solve(_as_real(a), np.concatenate(right.parts, -2)))
