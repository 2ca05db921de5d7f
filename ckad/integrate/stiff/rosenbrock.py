"""Rodas5P: a Rosenbrock method of order 5, with linear systems in place of Newton iterations.

G. Steinebach, "Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the
Julia Differential Equations package", BIT 63 (2023) 27. In the form without products by J: E.
Hairer, G. Wanner, "Solving Ordinary Differential Equations II" (1996), section IV.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.integrate.stages import Rhs, Trial, rms, scale_of, weighted
from ckad.integrate.stiff.linear import Systems
from ckad.integrate.stiff.newton import implicit
from ckad.transforms import jvp, stop_gradient

GAMMA = 0.21193756319429014
_SIXTH = [
    *(-7.502846399306121, 2.561846144803919, -11.627539656261098),
    *(-0.18268767659942256, 0.030198172008377946),
]
#: Of the increments before, in the argument of a stage.
A: list[list[float]] = [
    [],
    [3.0],
    [2.849394379747939, 0.45842242204463923],
    [-6.954028509809101, 2.489845061869568, -10.358996098473584],
    [2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641],
    _SIXTH,
    [*_SIXTH, 1.0],
    [*_SIXTH, 1.0, 1.0],
]
#: And in its right side.
C: list[list[float]] = [
    [],
    [-14.155112264123755],
    [-17.97296035885952, -2.859693295451294],
    [147.12150275711716, -1.41221402718213, 71.68940251302358],
    [165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306],
    [
        *(24.854864614690072, -3.0009227002832186, 47.4931110020768),
        *(5.5814197821558125, -0.6610691825249471),
    ],
    [
        *(30.91273214028599, -3.1208243349937974, 77.79954646070892),
        *(34.28646028294783, -19.097331116725623, -28.087943162872662),
    ],
    [
        *(37.80277123390563, -3.2571969029072276, 112.26918849496327),
        *(66.9347231244047, -40.06618937091002, -54.66780262877968, -9.48861652309627),
    ],
]
TIMES = [0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664]
TIMES += [1.0, 1.0, 1.0]
#: Of the derivative of fun by time.
D = [GAMMA, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069]
D += [0.0, 0.0, 0.0]
#: Of all increments, in the interpolant.
H = np.array(
    [
        [
            *(25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204),
            *(0.524948541321073, 1.1241088310450404, 0.4272876194431874, -0.17202221070155493),
        ],
        [
            *(-9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796),
            *(20.176138334709044, 15.98066361424651, -6.789040303419874, -6.710236069923372),
        ],
        [
            *(11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643),
            *(-52.072871366152654, -59.78993625266729, -0.15582684282751913, 4.883087185713722),
        ],
    ]
)


class Rodas5P:
    """All stages by one LU decomposition; derivatives take no other.

    An increment u solves a linear system (I - h gamma J) u = r. Its derivative is that of the
    residual u - h gamma J u - r, in which J u is a derivative of ``fun`` in one direction: J itself
    is not differentiated.
    """

    error_order, n_stages, n_extra = 4, 4, 0
    near = None

    def __init__(self, fun: Rhs, systems: Systems, control: Any) -> None:
        self._fun, self._systems, self._control = fun, systems, control

    def attempt(self, begin: tuple[Any, Any, Any], h: Any) -> Trial:
        t, y, f = begin
        fixed_t, fixed_y, fixed_f, fixed_h = stop_gradient((t, y, f, h))
        systems = self._systems
        jacobian = systems.jacobian(fixed_t, fixed_y)
        factors = systems.factors(jacobian, fixed_h * GAMMA)
        found = self._stages(
            *(fixed_t, fixed_y, fixed_f, fixed_h), lambda k, right: systems.solve(factors, right)
        )
        norm = stop_gradient(self._norm(fixed_y, found))
        kept = np.isfinite(norm)
        if not self._control.differentiate_steps:
            kept = kept & (norm < 1.0)
        # what was not accepted has a derivative as well, that of a step of no length
        h = np.where(kept, h, 0.0)
        fixed = [np.where(kept, u, 0.0) for u in found]
        made = self._differentiable((t, y, f), h, fixed, factors, kept)
        y_new = y + weighted([*A[7], 1.0], made)
        if self._control.differentiate_steps:
            norm = np.where(kept, self._norm(y, made), norm)
        f_new = self._fun(t + h, y_new)
        stages = [f, *(weighted(row, made) for row in H)]
        return Trial(y_new, f_new, stages, norm, len(A), 1, 1)

    def _differentiable(
        self, begin: tuple[Any, Any, Any], h: Any, found: Sequence[Any], factors: Any, kept: Any
    ) -> list[Any]:
        """The same increments with their derivatives."""
        fun, systems = self._fun, self._systems
        t, y, f = begin
        safe = systems.unless(kept, factors)

        def solve(right: Any) -> Any:
            return systems.solve(safe, right)

        def stage(k: int, right: Any) -> Any:
            def residual(u: Any) -> Any:
                turned = jvp(lambda y: fun(t, y), (y,), (u,))[1]
                return u - h * GAMMA * turned - right

            return implicit(found[k], residual, solve)

        return self._stages(t, y, f, h, stage)

    def _stages(self, t: Any, y: Any, f: Any, h: Any, solved: Any) -> list[Any]:
        fun = self._fun
        by_time = jvp(lambda t: fun(t, y), (t,), (1.0,))[1]
        found: list[Any] = []
        for k, (a, c) in enumerate(zip(A, C, strict=True)):
            slope = fun(t + TIMES[k] * h, y + weighted(a, found)) if k else f
            right = h * slope + h * h * D[k] * by_time
            if k:
                right = right + weighted(c, found)
            found.append(solved(k, GAMMA * right))
        return found

    def _norm(self, y: Any, increments: Sequence[Any]) -> Any:
        y_new = y + weighted([*A[7], 1.0], increments)
        return rms(increments[-1] / scale_of(self._control, y, y_new))

    def at(self, t: Any, begin: tuple[Any, Any], y_new: Any, h: Any, stages: Sequence[Any]) -> Any:
        """Of order 4."""
        t_old, y_old = begin
        f, k1, k2, k3 = stages
        still = h == 0.0
        x = np.where(still, 0.0, (t - t_old) / np.where(still, 1.0, h))
        inner = (1.0 - x) * y_old + x * (y_new + (1.0 - x) * (k1 + x * (k2 + x * k3)))
        return inner + np.where(still, (t - t_old) * f, 0.0)
