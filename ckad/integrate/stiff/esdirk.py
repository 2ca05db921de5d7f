"""Diagonally implicit Runge-Kutta methods with an explicit first stage, alone and in IMEX pairs.

- Kvaerno3, Kvaerno5: A. Kværnø, BIT 44 (2004) 489-502
- KenCarp4: ARK4(3)6L[2]SA of Ch. A. Kennedy, M. H. Carpenter, Appl. Numer. Math. 44 (2003) 139-181

All are L-stable and stiffly accurate: the last stage is the state behind the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad.integrate.fixed import rk4
from ckad.integrate.stages import EPS, Rhs, Trial, rms, scale_of, weighted
from ckad.integrate.stiff.linear import Systems
from ckad.integrate.stiff.newton import implicit, newton, tolerance
from ckad.transforms import stop_gradient

MOST_ITERATIONS = 10


class Tableau(NamedTuple):
    """A method, an embedded one of lower order, and the explicit part of a pair."""

    error_order: int
    a: np.ndarray  # float64[s, s], lower triangular, gamma on the diagonal but for the first
    c: np.ndarray  # float64[s]
    errors: np.ndarray  # float64[s]
    guesses: np.ndarray  # float64[s, s], the derivative in a stage from those before
    explicit: np.ndarray | None = None  # float64[s, s]


def _lower(rows: Sequence[Sequence[float]], diagonal: float = 0.0) -> np.ndarray:
    """The rows below the first, which is empty."""
    a = np.zeros((len(rows) + 1,) * 2)
    for k, row in enumerate(rows, start=1):
        a[k, : len(row)] = row
        a[k, k] = diagonal
    return a


def _kvaerno3() -> Tableau:
    g = 0.43586652150845899942
    third = [(-4.0 * g * g + 6.0 * g - 1.0) / (4.0 * g), (1.0 - 2.0 * g) / (4.0 * g)]
    last = [(6.0 * g - 1.0) / (12.0 * g), -1.0 / ((24.0 * g - 12.0) * g)]
    last.append((-6.0 * g * g + 6.0 * g - 1.0) / (6.0 * g - 3.0))
    a = _lower([[g], third, last], g)
    theta = 1.0 / (2.0 * g)
    guesses = _lower([[1.0], [1.0 - theta, theta], [*third, g]])
    return Tableau(2, a, np.array([0.0, 2.0 * g, 1.0, 1.0]), a[3] - a[2], guesses)


def _kvaerno5() -> Tableau:
    a = _lower(
        [
            [0.26],
            [0.13, 0.84033320996790809],
            [0.22371961478320505, 0.47675532319799699, -0.06470895363112615],
            [0.16648564323248321, 0.10450018841591720, 0.03631482272098715, -0.13090704451073998],
            [
                *(0.13855640231268224, 0.0, -0.04245337201752043),
                *(0.02446657898003141, 0.61943039072480676),
            ],
            [
                *(0.13659751177640291, 0.0, -0.05496908796538376),
                *(-0.04118626728321046, 0.62993304899016403, 0.06962479448202728),
            ],
        ],
        0.26,
    )
    guesses = _lower(
        [
            [1.0],
            [-1.366025403784441, 2.3660254037844357],
            [-0.19650552613122207, 0.8113579546496623, 0.38514757148155954],
            [0.10375304369958693, 0.937994698066431, -0.04174774176601781],
            [-0.17281112873898072, 0.6235784481025847, 0.5492326806363959],
            [*a[5, :5], 0.26],
        ]
    )
    c = np.array([0.0, 0.52, 1.230333209967908, 0.8957659843500759, 0.43639360985864756, 1.0, 1.0])
    return Tableau(4, a, c, a[6] - a[5], guesses)


def _kencarp4() -> Tableau:
    b = [82889 / 524892, 0.0, 15625 / 83664, 69875 / 102672, -2260 / 8211, 0.25]
    embedded = [
        *(4586570599 / 29645900160, 0.0, 178811875 / 945068544),
        *(814220225 / 1159782912, -3700637 / 11593932, 61727 / 225920),
    ]
    a = _lower(
        [
            [0.25],
            [8611 / 62500, -1743 / 31250],
            [5012029 / 34652500, -654441 / 2922500, 174375 / 388108],
            [
                *(15267082809 / 155376265600, -71443401 / 120774400),
                *(730878875 / 902184768, 2285395 / 8070912),
            ],
            b[:5],
        ],
        0.25,
    )
    explicit = _lower(
        [
            [0.5],
            [13861 / 62500, 6889 / 62500],
            [
                *(-116923316275 / 2393684061468, -2731218467317 / 15368042101831),
                9408046702089 / 11113171139209,
            ],
            [
                *(-451086348788 / 2902428689909, -2682348792572 / 7519795681897),
                *(12662868775082 / 11960479115383, 3355817975965 / 11060851509271),
            ],
            [
                *(647845179188 / 3216320057751, 73281519250 / 8382639484533),
                *(552539513391 / 3454668386233, 3354512671639 / 8306763924573, 4040 / 17871),
            ],
        ]
    )
    c = np.array([0.0, 0.5, 83 / 250, 31 / 50, 17 / 20, 1.0])
    r = c[2] / c[1], c[3] / c[1], c[4] / c[3], c[5] / c[4]
    guesses = _lower(
        [
            [1.0],
            [1.0 - r[0], r[0]],
            [1.0 - r[1], r[1]],
            [1.0 - r[2], 0.0, 0.0, r[2]],
            [1.0 - r[3], 0.0, 0.0, 0.0, r[3]],
        ]
    )
    return Tableau(3, a, c, np.array(b) - embedded, guesses, explicit)


TABLEAUX = {"Kvaerno3": _kvaerno3(), "Kvaerno5": _kvaerno5(), "KenCarp4": _kencarp4()}


class Esdirk:
    """Stages by simplified Newton steps with the Jacobian at the step's beginning.

    What is solved for are the increments z = h fun(t, y) of the stages. ``slow`` is the explicit
    part of an IMEX pair, whose implicit one is ``fun``.
    """

    n_stages, n_extra = 2, 0

    def __init__(
        self, tableau: Tableau, fun: Rhs, systems: tuple[Systems, Systems], control: Any,
        slow: Rhs | None,
    ) -> None:  # fmt: skip
        self.error_order = tableau.error_order
        self._tableau, self._fun, self._slow, self._control = tableau, fun, slow, control
        self._systems, self._exact = systems  # of the iterations, of derivatives
        self._tolerance = tolerance(control.rtol)

    def attempt(self, begin: tuple[Any, Any, Any], h: Any) -> Trial:
        (t, y, f), given = begin, h
        found, norm, iterations = self._tried(begin, h)
        kept = np.isfinite(norm)
        if not self._control.differentiate_steps:
            kept = kept & (norm < 1.0)
        h, increments = self._kept(begin, h, found, kept)
        y_new, now = self._ended(y, increments)
        if self._control.differentiate_steps:
            norm = np.where(kept, now, norm)
        stages = len(self._tableau.c)
        f_new = increments[0][-1] / np.where(h == 0.0, 1.0, h)
        nfev = iterations
        if self._slow is not None:
            f_new = f_new + self._slow(t + h, y_new)
            nfev = nfev + stages + 1
        f_new = np.where(given == 0.0, f, f_new)
        return Trial(y_new, f_new, [f, f_new], norm, nfev, 1, 1)

    def near(
        self, begin: tuple[Any, Any, Any], within: Callable[[Any], Any], root: Any
    ) -> Callable[[Any], Any]:
        """By another step, which ends at ``root``: the slope of the cubic is right to order h³.

        From there a step of RK4 of hardly any length has the derivatives of the solution.
        """
        end = stop_gradient(root)
        found, norm, _ = self._tried(begin, end - begin[0])
        kept = np.isfinite(norm)
        _, increments = self._kept(begin, end - begin[0], found, kept)
        state = np.where(kept, self._ended(begin[1], increments)[0], within(end))
        return lambda t: rk4(self._whole, end, state, t - end)

    def _whole(self, t: Any, y: Any) -> Any:
        return self._fun(t, y) if self._slow is None else self._fun(t, y) + self._slow(t, y)

    def _tried(self, begin: tuple[Any, Any, Any], h: Any) -> tuple[Any, Any, Any]:
        """A step without derivative: increments, the error's norm, by how many evaluations."""
        t, y, f, h = stop_gradient((*begin, h))
        found, converged, iterations = self._solved(t, y, f, h)
        norm = self._ended(y, found)[1]
        return found, stop_gradient(np.where(converged, norm, np.inf)), iterations

    def _kept(
        self, begin: tuple[Any, Any, Any], h: Any, found: tuple[Any, Any], kept: Any
    ) -> tuple[Any, Any]:
        """Length and increments of a step, with derivatives; those of no length if it is not to be
        kept."""
        h = np.where(kept, h, 0.0)
        return h, self._differentiable(*begin, h, [np.where(kept, z, 0.0) for z in found[0]])

    def _solved(self, t: Any, y: Any, f: Any, h: Any) -> tuple[Any, Any, Any]:
        """All increments, whether they were found, and by how many evaluations."""
        tableau, systems, fun = self._tableau, self._systems, self._fun
        factors = systems.factors(systems.jacobian(t, y), h * tableau.a[1, 1])
        scale = scale_of(self._control, y, y)
        rounding = np.minimum(0.2 * self._tolerance, rms(10.0 * EPS * y / scale))
        converged: Any = np.bool_(True)
        iterations: Any = np.int64(0)

        def stage(i: int, base: Any, before: Sequence[Any]) -> Any:
            nonlocal converged, iterations
            time, gamma = t + tableau.c[i] * h, tableau.a[i, i]

            def change(z: Any) -> Any:
                return systems.solve(factors, h * fun(time, base + gamma * z) - z)

            start = weighted(tableau.guesses[i], before)
            tol = self._tolerance
            found = newton(start, change, scale, MOST_ITERATIONS, tol, rounding)
            converged = converged & found.converged
            iterations = iterations + found.iterations
            return found.x

        return self._stages(t, y, f, h, stage), converged, iterations

    def _differentiable(self, t: Any, y: Any, f: Any, h: Any, found: Sequence[Any]) -> Any:
        """The same increments with their derivatives."""
        tableau, systems, fun = self._tableau, self._exact, self._fun

        def stage(i: int, base: Any, before: Sequence[Any]) -> Any:
            time, gamma = t + tableau.c[i] * h, tableau.a[i, i]
            place = stop_gradient((time, base + gamma * found[i]))
            factors = systems.factors(systems.jacobian(*place), stop_gradient(h) * gamma)

            def residual(z: Any) -> Any:
                return z - h * fun(time, base + gamma * z)

            return implicit(found[i], residual, lambda r: systems.solve(factors, r))

        return self._stages(t, y, f, h, stage)

    def _stages(self, t: Any, y: Any, f: Any, h: Any, stage: Any) -> tuple[list[Any], list[Any]]:
        """Increments by ``fun``, and by the explicit part."""
        tableau, slow = self._tableau, self._slow
        first = h * (f if slow is None else self._fun(t, y))
        fast, slower, last = [first], [], y
        for i in range(1, len(tableau.c)):
            base = y + weighted(tableau.a[i, :i], fast)
            if slow is not None and tableau.explicit is not None:
                slower.append(h * slow(t + tableau.c[i - 1] * h, last))
                base = base + weighted(tableau.explicit[i, :i], slower)
            fast.append(stage(i, base, fast))
            last = base + tableau.a[i, i] * fast[i]
        if slow is not None:
            slower.append(h * slow(t + h, last))
        return fast, slower

    def _ended(self, y: Any, increments: tuple[list[Any], list[Any]]) -> tuple[Any, Any]:
        """The state behind the step, and its error in units of the tolerances."""
        fast, slower = increments
        both = [a + b for a, b in zip(fast, slower, strict=True)] if slower else fast
        y_new = y + weighted(self._tableau.a[-1], both)
        error = weighted(self._tableau.errors, both)
        return y_new, rms(error / scale_of(self._control, y, y_new))

    def at(self, t: Any, begin: tuple[Any, Any], y_new: Any, h: Any, stages: Sequence[Any]) -> Any:
        return hermite(t, begin, y_new, h, stages)


def hermite(t: Any, begin: tuple[Any, Any], y_new: Any, h: Any, stages: Sequence[Any]) -> Any:
    """The cubic through the states and derivatives at both ends of a step."""
    (t_old, y_old), (f, f_new) = begin, stages
    still = h == 0.0
    x = (t - t_old) / np.where(still, 1.0, h)
    x = np.where(still, 0.0, x)
    cubic = (x - 1.0) * ((1.0 - 2.0 * x) * (y_new - y_old) + h * ((x - 1.0) * f + x * f_new))
    inner = (1.0 - x) * y_old + x * y_new + x * cubic
    return inner + np.where(still, (t - t_old) * f, 0.0)
