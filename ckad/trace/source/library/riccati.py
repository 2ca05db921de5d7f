"""SciPy's solutions of Riccati's equations, by doubling.

Chu, Fan, Lin and Wang (2004), equation 9, for discrete time; continuous time is made that by Chu,
Fan and Lin (2005), equation 3.3. Each step doubles the time that the solution looks ahead, so that
some ten of them are enough, and the derivative is that of these steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ckad.trace.arrays import traced
from ckad.trace.dispatch import implements, reject
from ckad.trace.source.names.closures import call_from_source

#: Doubled steps, of which each looks twice as far ahead as the one before.
_STEPS = 60


def _doubled(a: Any, g: Any, h: Any, steps: int) -> Any:
    """X = h + aᵀ X (1 + g X)⁻¹ a; run from source."""
    one = np.eye(len(a))
    for _ in range(steps):
        w = np.linalg.inv(one + g @ h)
        more = a.T @ h @ w @ a
        g = g + a @ w @ g @ a.T
        a = a @ w @ a
        h = h + more
        h = 0.5 * (h + h.T)
        if np.max(np.abs(more)) <= 1e-18 * np.max(np.abs(h)):
            return h
    raise np.linalg.LinAlgError("Failed to find a finite solution.")


def _solved(a: Any, g: Any, h: Any) -> Any:
    return call_from_source(_doubled, (a, g, h, _STEPS), {})


def _given(name: str, *given: Any, **rest: Any) -> list[Any]:
    for option, x in rest.items():
        reject(x is not None, f"scipy.linalg.{name} with {option}=")
    found = [np.atleast_2d(traced(x)) for x in given]
    reject(any(x.dtype.kind == "c" for x in found), f"scipy.linalg.{name} of complex matrices")
    return [x.astype(np.float64) for x in found]


@implements(scipy.linalg.solve_continuous_are)
def solve_continuous_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    a, b, q, r = _given("solve_continuous_are", a, b, q, r, e=e, s=s)
    g = b @ np.linalg.solve(r, b.T)
    # Beyond all eigenvalues, so that no matrix here is singular where there is a solution.
    shift = 2.0 * (np.linalg.norm(a) + np.sqrt(np.linalg.norm(g) * np.linalg.norm(q)))
    moved = a - shift * np.eye(len(a))
    inverse = np.linalg.inv(moved)
    w = np.linalg.inv(moved + g @ inverse.T @ q)
    start = np.eye(len(a)) + 2.0 * shift * w
    return _solved(start, 2.0 * shift * inverse @ g @ w.T, 2.0 * shift * w.T @ q @ inverse)


@implements(scipy.linalg.solve_discrete_are)
def solve_discrete_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    a, b, q, r = _given("solve_discrete_are", a, b, q, r, e=e, s=s)
    return _solved(a, b @ np.linalg.solve(r, b.T), q)
