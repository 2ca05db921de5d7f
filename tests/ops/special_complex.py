"""Functions of a complex number x + iy as functions of (x, y), and points on axes and at 0."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np

from .special_arrays import AXES, ORIGIN, TIES, square
from .special_points import Special


def complex_of(function: Any) -> Any:
    """The real and the imaginary part of a function of x + iy."""

    def parts(v: Any) -> Any:
        w = function(v[0] + 1j * v[1])
        return np.stack([np.real(w), np.imag(w)])

    return parts


def smooth_of(function: Any) -> Any:
    return lambda x, y: sum_of_parts(function(mp.mpc(x, y)))


def sum_of_parts(w: Any) -> Any:
    return mp.re(w) + 2 * mp.im(w)


PLANE = (*AXES, (1.0, 1.0))
COMPLEX = (
    *(
        Special(f"complex {name}", complex_of(getattr(np, name)), smooth_of(function), points)
        for name, function, points in (
            ("sqrt", mp.sqrt, ((1.0, 0.0), (0.0, 2.0), (0.0, -2.0), (1.0, 1.0))),
            ("exp", mp.exp, (ORIGIN, *PLANE)),
            ("expm1", mp.expm1, (ORIGIN, *PLANE)),
            ("log", mp.log, ((1.0, 0.0), (0.0, 2.0), (0.0, -2.0))),
            ("log1p", lambda z: mp.log(1 + z), (ORIGIN, (0.0, 2.0))),
            ("sin", mp.sin, (ORIGIN, *PLANE)),
            ("cos", mp.cos, (ORIGIN, *PLANE)),
            ("tan", mp.tan, (ORIGIN, *PLANE)),
            ("sinh", mp.sinh, (ORIGIN, *PLANE)),
            ("cosh", mp.cosh, (ORIGIN, *PLANE)),
            ("tanh", mp.tanh, (ORIGIN, *PLANE)),
            ("arcsin", mp.asin, (ORIGIN, (0.5, 0.0), (0.0, 1.0), (0.0, -1.0))),
            ("arccos", mp.acos, (ORIGIN, (0.5, 0.0), (0.0, 1.0))),
            ("arctan", mp.atan, (ORIGIN, (1.0, 0.0), (-1.0, 0.0), (0.0, 0.5))),
            ("arcsinh", mp.asinh, (ORIGIN, (1.0, 0.0), (-1.0, 0.0), (0.0, 0.5))),
            ("arccosh", mp.acosh, ((2.0, 0.0), (0.0, 1.0))),
            ("arctanh", mp.atanh, (ORIGIN, (0.5, 0.0), (0.0, 1.0))),
            ("square", lambda z: z * z, (ORIGIN, *PLANE)),
            ("reciprocal", lambda z: 1 / z, PLANE),
        )
    ),
    Special("complex abs**2", lambda v: np.abs(v[0] + 1j * v[1]) ** 2, square, (ORIGIN, *PLANE)),
    Special(
        "complex norm**2",
        lambda v: np.linalg.norm(np.stack([v[0] + 1j * v[1], 1j * v[0]])) ** 2,
        lambda x, y: 2 * x * x + y * y,
        (ORIGIN, *PLANE),
    ),
    Special(
        "abs(fft)**2",
        lambda v: np.sum(np.abs(np.fft.fft(v)) ** 2),
        lambda x, y: 2 * square(x, y),
        (ORIGIN, TIES, *AXES),
    ),
    Special(
        "z**(0, 1, 2, 3)",
        complex_of(lambda z: np.sum(z ** np.arange(4.0))),
        smooth_of(lambda z: 1 + z + z**2 + z**3),
        (ORIGIN, (1.0, 0.0), (0.0, 1.0)),
    ),
    Special("z**2", complex_of(lambda z: z**2), smooth_of(lambda z: z**2), (ORIGIN, *PLANE)),
    Special("z**3.0", complex_of(lambda z: z**3.0), smooth_of(lambda z: z**3), (ORIGIN, *PLANE)),
    Special("z**-1", complex_of(lambda z: z**-1), smooth_of(lambda z: 1 / z), PLANE),
    Special(
        "z / (1 + z)",
        complex_of(lambda z: z / (1 + z)),
        smooth_of(lambda z: z / (1 + z)),
        (ORIGIN, (1.0, 0.0), (0.0, 1.0)),
    ),
)
