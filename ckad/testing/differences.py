"""Derivatives by differences, with their errors (Ridders, Adv. Eng. Softw. 4, 1982)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

#: First and last step of the differences, relative to an argument's size; each half of the last.
FIRST_STEP, LAST_STEP = 2.0**-4, 2.0**-20

Leaves = list[np.ndarray]


class Differences(NamedTuple):
    """A directional derivative, its estimated error, and the smallest step that it is made of."""

    value: Leaves
    error: float
    step: float


def ridders(at: Callable[[float], Leaves]) -> Differences:
    """The derivative of ``at`` at 0 from central differences at h, h/2, h/4, ...

    Row j of the tableau removes the error's term in h**(2j); the entry that differs least from
    the two that it is made of is taken.
    """
    best: Differences | None = None
    above: list[Leaves] = []
    h = FIRST_STEP
    while h >= LAST_STEP:
        row = [_quotient(at(h), at(-h), h)]
        for j, old in enumerate(above):
            row.append(_extrapolate(row[j], old, 4.0 ** (j + 1)))
            error = max(_apart(row[-1], row[j]), _apart(row[-1], old))
            if np.isfinite(error) and (best is None or error < best.error):
                best = Differences(row[-1], error, h)
        if best is not None and best.step >= 8 * h:
            break
        above = row if np.isfinite(norm(row[0])) else []
        h /= 2
    return best or Differences(row[0], np.inf, 2 * h)


def _quotient(right: Leaves, left: Leaves, h: float) -> Leaves:
    with np.errstate(all="ignore"):
        return [
            (a.astype(float) - b.astype(float)) / (2 * h) if is_float(a) else np.zeros(a.shape)
            for a, b in zip(right, left, strict=True)
        ]


def _extrapolate(fine: Leaves, coarse: Leaves, factor: float) -> Leaves:
    return [(factor * f - c) / (factor - 1) for f, c in zip(fine, coarse, strict=True)]


def _apart(one: Leaves, other: Leaves) -> float:
    return max(largest(a - b) for a, b in zip(one, other, strict=True))


def is_float(x: np.ndarray) -> bool:
    return x.dtype.kind == "f"


def largest(x: np.ndarray) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def norm(xs: Leaves) -> float:
    return float(np.sqrt(sum(np.sum(np.square(x, dtype=float)) for x in xs)))
