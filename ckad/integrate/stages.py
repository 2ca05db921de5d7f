"""One step of an embedded pair: stages, the error's norm, the next step, the interpolant.

The formulas are SciPy's, operation for operation: E. Hairer, S. P. Nørsett, G. Wanner, "Solving
Ordinary Differential Equations I" (1993), sections II.4 to II.6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ckad.integrate.tableaux import Pair
from ckad.transforms import stop_gradient

Rhs = Callable[[Any, Any], Any]
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
EPS = float(np.finfo(float).eps)


class Trial(NamedTuple):
    """What a step comes to, be it accepted or not."""

    y: Any  # the state behind it
    f: Any  # the derivative there
    stages: Sequence[Any]  # what the interpolant needs
    norm: Any  # the estimated error in units of the tolerances
    nfev: Any = 0
    njev: Any = 0
    nlu: Any = 0


#: Of (t, y, f) where a step began, its interpolant, and a time within it: the state as a function
#: of times near that one.
Near = Callable[[tuple[Any, Any, Any], Callable[[Any], Any], Any], Callable[[Any], Any]]


class Stepper(Protocol):
    """A one-step method with an estimate of its error."""

    error_order: int
    n_stages: int
    n_extra: int  # evaluations that the interpolant makes

    @property
    def near(self) -> Near | None:
        """What is better than the interpolant, where its slope is not as good as the method."""

    def attempt(self, begin: tuple[Any, Any, Any], h: Any) -> Trial:
        """A step of length ``h`` from (t, y, f)."""

    def at(self, t: Any, begin: tuple[Any, Any], y_new: Any, h: Any, stages: Sequence[Any]) -> Any:
        """The state at ``t`` within a step."""


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
    return np.linalg.norm(x) / max(x.size, 1) ** 0.5


def error_norm(pair: Pair, stages: Sequence[Any], h: Any, scale: Any) -> Any:
    """The estimated error in units of the tolerances: a step below 1 is accepted."""
    if pair.errors.ndim == 1:
        return rms(weighted(pair.errors, stages) * h / scale)
    fifth, third = (np.linalg.norm(weighted(e, stages) / scale) ** 2 for e in pair.errors)
    both = fifth + 0.01 * third  # section II.10, eq. 10.17
    return np.abs(h) * fifth / np.sqrt(np.where(both == 0.0, 1.0, both) * max(scale.size, 1))


def factor(error_order: int, norm: Any, rejected: Any) -> tuple[Any, Any]:
    """Whether a step is accepted, and by what its length is to be multiplied.

    A norm that is not finite rejects, as in SciPy: there ``max(0.2, nan)`` is 0.2.
    """
    finite = np.isfinite(norm)
    accepted = finite & (norm < 1.0)
    positive = np.where(finite & (norm != 0.0), norm, 1.0)
    wanted = SAFETY * positive ** (-1.0 / (error_order + 1))
    grown = np.where(norm == 0.0, GROW, np.minimum(GROW, wanted))
    grown = np.where(rejected, np.minimum(1.0, grown), grown)
    shrunk = np.where(finite, np.maximum(SHRINK, wanted), SHRINK)
    return accepted, np.where(accepted, grown, shrunk)


def first_step(
    error_order: int, fun: Rhs, span: tuple[Any, Any, Any], y0: Any, f0: Any, control: Any
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
    by_slope = (0.01 / steepest) ** (1.0 / (error_order + 1))
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


def scale_of(control: Any, y: Any, y_new: Any) -> Any:
    """The error that is allowed in a step."""
    return control.atol + np.maximum(np.abs(y), np.abs(y_new)) * control.rtol


class Explicit:
    """An embedded explicit pair."""

    near = None

    def __init__(self, pair: Pair, fun: Rhs, control: Any) -> None:
        self._pair, self._fun, self._control = pair, fun, control
        self.error_order, self.n_stages = pair.error_order, len(pair.b) + 1
        self.n_extra = len(pair.c_extra)

    def attempt(self, begin: tuple[Any, Any, Any], h: Any) -> Trial:
        """A step, and its error in units of the tolerances.

        What a rejected step has overflowed to would make the derivative NaN, though nothing depends
        on it. So a step is tried without derivative, and of length 0 where that gave no number.
        """
        pair, fun = self._pair, self._fun
        t, y, f = begin
        if not self._control.differentiate_steps:
            tried = (stop_gradient(x) for x in (t, y, f, h))
            norm = stop_gradient(self._norm(*step(pair, fun, *tried), y, h))
            h = np.where(np.isfinite(norm), h, 0.0)
            y_new, stages = step(pair, fun, t, y, f, h)
        else:
            y_new, stages = step(pair, fun, t, y, f, h)
            norm = self._norm(y_new, stages, y, h)
        return Trial(y_new, stages[-1], stages, norm, len(stages) - 1)

    def _norm(self, y_new: Any, stages: Sequence[Any], y: Any, h: Any) -> Any:
        return error_norm(self._pair, stages, h, scale_of(self._control, y, y_new))

    def at(self, t: Any, begin: tuple[Any, Any], y_new: Any, h: Any, stages: Sequence[Any]) -> Any:
        return interpolated(self._pair, self._fun, t, begin, y_new, h, stages)
