"""Stiff problems of the Test Set for IVP Solvers, with its reference solutions.

F. Mazzia, C. Magherini, "Test Set for Initial Value Problem Solvers", release 2.4, University of
Bari (2008), https://archimede.uniba.it/~testset. The references were computed there by RADAU5 in
quadruple precision, Robertson's and van der Pol's in double.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class StiffProblem(NamedTuple):
    fun: Callable[..., Any]
    end: float
    y0: np.ndarray
    expected: np.ndarray
    atol: float  # at rtol=1e-8
    agrees: float  # to how much the solution then does, relative


def robertson(t, y, k1=0.04, k2=3e7, k3=1e4):
    a, b, c = y
    return [-k1 * a + k3 * b * c, k1 * a - k3 * b * c - k2 * b * b, k2 * b * b]


def van_der_pol(t, y, mu=1e3):
    return [y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]]


def oregonator(t, y):
    a, b, c = y
    return [
        77.27 * (b + a * (1.0 - 8.375e-6 * a - b)),
        (c - (1.0 + a) * b) / 77.27,
        0.161 * (a - c),
    ]


def hires(t, y):
    joined = 280.0 * y[5] * y[7]
    return [
        -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
        1.71 * y[0] - 8.75 * y[1],
        -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
        8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
        -1.745 * y[4] + 0.43 * (y[5] + y[6]),
        -joined + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
        joined - 1.81 * y[6],
        -joined + 1.81 * y[6],
    ]


#: Reactions: their rate, what reacts, what comes of it. J. G. Verwer, SIAM J. Sci. Comput. 15
#: (1994) 1243-1250.
_REACTIONS: list[tuple[float, list[int], list[int]]] = [
    (0.35, [1], [2, 3]),
    (26.6, [2, 4], [1]),
    (1.23e4, [5, 2], [1, 6]),
    (8.6e-4, [7], [5, 5, 8]),
    (8.2e-4, [7], [8]),
    (1.5e4, [7, 6], [5, 8]),
    (1.3e-4, [9], [5, 8, 10]),
    (2.4e4, [9, 6], [11]),
    (1.65e4, [11, 2], [1, 10, 12]),
    (9e3, [11, 1], [13]),
    (0.022, [13], [11, 1]),
    (1.2e4, [10, 2], [14, 1]),
    (1.88, [14], [5, 7]),
    (1.63e4, [1, 6], [15]),
    (4.8e6, [3], [4]),
    (3.5e-4, [4], [16]),
    (0.0175, [4], [3]),
    (1e8, [16], [6, 6]),
    (4.44e11, [16], [3]),
    (1.24e3, [17, 6], [5, 18]),
    (2.1, [19], [2]),
    (5.78, [19], [1, 3]),
    (0.0474, [1, 4], [19]),
    (1.78e3, [19, 1], [20]),
    (3.12, [20], [1, 19]),
]
RATES = np.array([rate for rate, _, _ in _REACTIONS])
_FIRST = np.array([x[0] - 1 for _, x, _ in _REACTIONS])
_SECOND = np.array([x[1] - 1 if len(x) == 2 else 20 for _, x, _ in _REACTIONS])  # 20: nothing
_CHANGES = np.zeros((20, 25))
for _k, (_, _used, _made) in enumerate(_REACTIONS):
    for _i in _used:
        _CHANGES[_i - 1, _k] -= 1.0
    for _i in _made:
        _CHANGES[_i - 1, _k] += 1.0


def pollution(t, y, rates=RATES):
    one = np.concatenate([y, np.ones(1)])
    return _CHANGES @ (rates * one[_FIRST] * one[_SECOND])


_POLLUTION_Y0 = np.zeros(20)
_POLLUTION_Y0[[1, 3, 6, 7, 8, 16]] = 0.2, 0.04, 0.1, 0.3, 0.01, 0.007

PROBLEMS = {
    "Robertson": StiffProblem(
        robertson,
        1e11,
        np.array([1.0, 0.0, 0.0]),
        np.array([0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050]),
        1e-18,
        1e-4,
    ),
    "van der Pol": StiffProblem(
        van_der_pol,
        2000.0,
        np.array([2.0, 0.0]),
        np.array([0.1706167732170469e1, -0.8928097010248125e-3]),
        1e-10,
        1e-5,
    ),
    "OREGO": StiffProblem(
        oregonator,
        360.0,
        np.array([1.0, 2.0, 3.0]),
        np.array([0.1000814870318523e1, 0.1228178521549917e4, 0.1320554942846706e3]),
        1e-9,
        1e-4,
    ),
    "HIRES": StiffProblem(
        hires,
        321.8122,
        np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057]),
        np.array(
            [
                *(0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4),
                *(0.1175651343283149e-2, 0.2386356198831331e-2, 0.6238968252742796e-2),
                *(0.2849998395185769e-2, 0.2850001604814231e-2),
            ]
        ),
        1e-12,
        1e-5,
    ),
    "POLLU": StiffProblem(
        pollution,
        60.0,
        _POLLUTION_Y0,
        np.array(
            [
                *(0.5646255480022769e-1, 0.1342484130422339, 0.4139734331099427e-8),
                *(0.5523140207484359e-2, 0.2018977262302196e-6, 0.1464541863493966e-6),
                *(0.7784249118997964e-1, 0.3245075353396018, 0.7494013383880406e-2),
                *(0.1622293157301561e-7, 0.1135863833257075e-7, 0.2230505975721359e-2),
                *(0.2087162882798630e-3, 0.1396921016840158e-4, 0.8964884856898295e-2),
                *(0.4352846369330103e-17, 0.6899219696263405e-2, 0.1007803037365946e-3),
                *(0.1772146513969984e-5, 0.5682943292316392e-4),
            ]
        ),
        1e-20,
        1e-5,
    ),
}
