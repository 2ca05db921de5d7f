"""Least squares among the elements of parts: rows outside of them are zeros, which fit anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.trace.dispatch import PART, cell, implements
from ckad.trace.primitives.part.alignment import Operand, align_axis
from ckad.trace.primitives.part.elements import as_array
from ckad.trace.primitives.part.extents import only
from ckad.trace.primitives.part.reductions import not_empty
from ckad.trace.values.part import Extents, Part, unsupported


@implements(np.linalg.lstsq, kind=PART)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The residuals are those of full rank, and of more rows than columns."""
    x, y = _side_by_side(a, b)
    if x.ndim != 2 or not all(isinstance(n, int) for n in (*x.shape[1:], *y.shape[1:])):
        unsupported("np.linalg.lstsq with so many columns")
    if rcond is None:
        rcond = np.finfo(x.dtype).eps * np.maximum(x.shape[0], x.shape[1])
    return np.linalg.lstsq(only(x, 0), only(y, 0), rcond)


@implements(np.polyfit, kind=PART)
def polyfit(x: Any, y: Any, deg: int, *args: Any, **options: Any) -> Any:
    at, values = _side_by_side(x, y)
    at, fit = not_empty(at, [0]), cell(np.polyfit)
    assert fit is not None
    return fit(at, values, deg, *args, **options)


@implements(np.vander, kind=PART)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    if x.ndim != 1 or N is None:
        unsupported("np.vander without N=")
    powers = [np.ones_like(x)]
    for _ in range(1, int(N)):
        powers.append(powers[-1] * x)
    return np.stack(powers if increasing else powers[::-1], 1)


def _side_by_side(x: Any, y: Any) -> tuple[Part, Part]:
    """Both with their rows at the same places of their bases; as many, or the program stops."""
    one, other = Operand(as_array(x)), Operand(as_array(y))
    rows = align_axis([one, other], 0, repeats=False)
    first, second = (Part(o.data, Extents([rows, *o.extents[1:]])) for o in (one, other))
    return first, second
