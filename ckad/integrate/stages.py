"""One step of an embedded pair: stages, the error's norm, the next step, the interpolant.

The formulas are SciPy's, operation for operation: E. Hairer, S. P. Nørsett, G. Wanner, "Solving
Ordinary Differential Equations I" (1993), sections II.4 to II.6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.integrate.tableaux import Pair

Rhs = Callable[[Any, Any], Any]
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
EPS = float(np.finfo(float).eps)


def weighted(weights: Sequence[float] | np.ndarray, stages: Sequence[Any]) -> Any:
    """The sum of stages with these weights; those of weight zero are left out."""
    terms = [w * k for w, k in zip(weights, stages, strict=False) if w != 0.0]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def step(pair: Pair, fun: Rhs, t: Any, y: Any, f: Any, h: Any) -> tuple[Any, list[Any]]:
    """The state at ``t + h``, and all stages, whose last is the derivative there."""
    stages = [f]
    for a, c in zip(pair.a[1:], pair.c[1:], strict=True):
        stages.append(fun(t + c * h, y + weighted(a, stages) * h))
    y_new = y + h * weighted(pair.b, stages)
    return y_new, [*stages, fun(t + h, y_new)]


def rms(x: Any) -> Any:
    return np.linalg.norm(x) / x.size**0.5


def error_norm(pair: Pair, stages: Sequence[Any], h: Any, scale: Any) -> Any:
    """The estimated error in units of the tolerances: a step below 1 is accepted."""
    if pair.errors.ndim == 1:
        return rms(weighted(pair.errors, stages) * h / scale)
    fifth, third = (np.linalg.norm(weighted(e, stages) / scale) ** 2 for e in pair.errors)
    both = fifth + 0.01 * third  # section II.10, eq. 10.17
    return np.abs(h) * fifth / np.sqrt(np.where(both == 0.0, 1.0, both) * scale.size)


def factor(pair: Pair, norm: Any, rejected: Any) -> tuple[Any, Any]:
    """Whether a step is accepted, and by what its length is to be multiplied.

    A norm that is not finite rejects, as in SciPy: there ``max(0.2, nan)`` is 0.2.
    """
    finite = np.isfinite(norm)
    accepted = finite & (norm < 1.0)
    positive = np.where(finite & (norm != 0.0), norm, 1.0)
    wanted = SAFETY * positive ** (-1.0 / (pair.error_order + 1))
    grown = np.where(norm == 0.0, GROW, np.minimum(GROW, wanted))
    grown = np.where(rejected, np.minimum(1.0, grown), grown)
    shrunk = np.where(finite, np.maximum(SHRINK, wanted), SHRINK)
    return accepted, np.where(accepted, grown, shrunk)


def first_step(
    pair: Pair, fun: Rhs, span: tuple[Any, Any, Any], y0: Any, f0: Any, control: Any
) -> Any:
    """The length of the first step, section II.4, from one more evaluation of ``fun``.

    ``span`` is where it begins, how long it is at most, and its direction; ``control`` holds rtol,
    atol and max_step.
    """
    t0, length, direction = span
    scale = control.atol + np.abs(y0) * control.rtol
    d0, d1 = rms(y0 / scale), rms(f0 / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.where(small, 1e-6, 0.01 * d0 / np.where(small, 1.0, d1))
    h0 = np.minimum(h0, length)
    h0 = np.where(length == 0.0, 1.0, h0)  # the result is the length, 0
    f1 = fun(t0 + h0 * direction, y0 + h0 * direction * f0)
    d2 = rms((f1 - f0) / scale) / h0
    flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    steepest = np.where(flat, 1.0, np.maximum(d1, d2))
    by_slope = (0.01 / steepest) ** (1.0 / (pair.error_order + 1))
    h1 = np.where(flat, np.maximum(1e-6, h0 * 1e-3), by_slope)
    return np.minimum(np.minimum(100.0 * h0, h1), np.minimum(length, control.max_step))


def smallest_step(t: Any) -> Any:
    """Ten times the distance from ``t`` to the next number."""
    size = np.maximum(np.abs(t), float(np.finfo(float).tiny))
    return 10.0 * EPS * np.exp2(np.floor(np.log2(size)))


def interpolated(
    pair: Pair, fun: Rhs, t: Any, begin: tuple[Any, Any], y_new: Any, h: Any, stages: Sequence[Any]
) -> Any:
    """The state at ``t``, within the step of length ``h`` that begins at ``begin``, (t, y)."""
    t_old, y_old = begin
    still = h == 0.0
    x = (t - t_old) / np.where(still, 1.0, h)
    if pair.a_extra.size:
        return y_old + _of_dop853(pair, fun, x, begin, y_new, h, stages)
    total, power = 0.0 * y_old, x
    for weights in pair.powers.T:
        total = total + power * weighted(weights, stages)
        power = power * x
    return y_old + np.where(still, (t - t_old) * stages[0], h * total)


def _of_dop853(
    pair: Pair, fun: Rhs, x: Any, begin: tuple[Any, Any], y_new: Any, h: Any, stages: Sequence[Any]
) -> Any:
    """Section II.6, the interpolant of order 7, from three more stages."""
    t_old, y_old = begin
    longer = list(stages)
    for a, c in zip(pair.a_extra, pair.c_extra, strict=True):
        longer.append(fun(t_old + c * h, y_old + weighted(a, longer) * h))
    change, first, last = y_new - y_old, stages[0], stages[len(pair.c)]
    terms = [change, h * first - change, 2.0 * change - h * (last + first)]
    terms += [h * weighted(d, longer) for d in pair.powers]
    total = 0.0 * y_old
    for i, term in enumerate(reversed(terms)):
        total = (total + term) * (x if i % 2 == 0 else 1.0 - x)
    return total
