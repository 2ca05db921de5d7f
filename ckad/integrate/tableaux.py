"""Embedded explicit Runge-Kutta pairs: coefficients, errors' weights, interpolants.

SciPy's are read off its classes, so that both compute with the very same numbers:

- RK23: P. Bogacki, L. F. Shampine, Appl. Math. Lett. 2 (1989) 321-325
- RK45: J. R. Dormand, P. J. Prince, J. Comput. Appl. Math. 6 (1980) 19-26; the interpolant:
  L. F. Shampine, Math. Comp. 46 (1986) 135-150
- DOP853: E. Hairer, S. P. Nørsett, G. Wanner, "Solving Ordinary Differential Equations I" (1993),
  section II.5
- Tsit5: Ch. Tsitouras, Comput. Math. Appl. 62 (2011) 770-775
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import DOP853, RK23, RK45


class Pair(NamedTuple):
    """A method and an embedded one of lower order, whose difference estimates the error.

    Stages are K[0], ..., K[s - 1], and K[s], the derivative at the end of the step.
    """

    solver: Any  # the class that SciPy's solve_ivp takes
    a: np.ndarray  # float64[s, s], strictly lower triangular
    b: np.ndarray  # float64[s]
    c: np.ndarray  # float64[s]
    error_order: int  # the order of the error's estimate
    errors: np.ndarray  # float64[s + 1], or float64[2, s + 1] of order 5 and 3
    powers: np.ndarray  # float64[s + 1, p]: K^T powers are the coefficients of theta, theta^2, ...
    a_extra: np.ndarray  # float64[3 or 0, s + 4], further stages for the interpolant
    c_extra: np.ndarray  # float64[3 or 0]


_TSIT5_A = np.zeros((6, 6))
for _row, _weights in enumerate(
    [
        [0.161],
        [-0.008480655492356989, 0.335480655492357],
        [2.8971530571054935, -6.359448489975075, 4.3622954328695815],
        [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525],
        [
            *(5.86145544294642, -12.92096931784711, 8.159367898576159),
            *(-0.071584973281401, -0.028269050394068383),
        ],
    ],
    start=1,
):
    _TSIT5_A[_row, :_row] = _weights
_TSIT5_POWERS = np.array(
    [
        [1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216],
        [0.0, 0.13169999999999998, -0.2234, 0.1017],
        [0.0, 3.9302962368947516, -5.941033872131505, 2.490627285651253],
        [0.0, -12.411077166933676, 30.33818863028232, -16.548102889244902],
        [0.0, 37.50931341651104, -88.1789048947664, 47.37952196281928],
        [0.0, -27.896526289197286, 65.09189467479366, -34.87065786149661],
        [0.0, 1.5, -4.0, 2.5],
    ]
)
_TSIT5 = {
    "A": _TSIT5_A,
    "B": np.array(
        [
            *(0.09646076681806523, 0.01, 0.4798896504144996),
            *(1.379008574103742, -3.290069515436081, 2.324710524099774),
        ]
    ),
    "C": np.array([0.0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0]),
    "E": np.array(
        [
            *(-0.001780011052225772, -0.0008164344596567469, 0.007880878010261995),
            *(-0.1447110071732629, 0.5823571654525552, -0.45808210592918697, 1 / 66),
        ]
    ),
    "P": _TSIT5_POWERS,
}
#: SciPy's driver takes any class of this kind: a tableau makes a method.
Tsit5 = type("Tsit5", (RK45,), _TSIT5)


def _pair(solver: Any) -> Pair:
    return Pair(
        solver,
        *(solver.A[:, : solver.n_stages], solver.B, solver.C, solver.error_estimator_order),
        *(solver.E, solver.P, np.zeros((0, 0)), np.zeros(0)),
    )


_DOP853 = Pair(
    DOP853,
    *(DOP853.A, DOP853.B, DOP853.C, DOP853.error_estimator_order),
    *(np.stack([DOP853.E5, DOP853.E3]), DOP853.D, DOP853.A_EXTRA, DOP853.C_EXTRA),
)
PAIRS = {"RK23": _pair(RK23), "RK45": _pair(RK45), "DOP853": _DOP853, "Tsit5": _pair(Tsit5)}
