"""Orthogonal polynomials, harmonics on the sphere and spherical Bessel functions of known orders.

Polynomials go up their recurrences (DLMF 18.9.1), whose coefficients stand in a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.special

from ckad.trace.arrays import Array, complexed, known, own, retyped
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.scipy.special_ufuncs import floats

#: From k, x and the parameters to a and b of p(k + 1) = a p(k) - b p(k - 1).
Recurrence = Callable[..., tuple[Any, Any]]


def _jacobi(k: int, x: Any, p: Any, q: Any) -> tuple[Any, Any]:
    if k == 0:
        return 0.5 * (p + q + 2.0) * x + 0.5 * (p - q), 0.0
    n = 2.0 * k + p + q
    divisor = 2.0 * (k + 1) * (k + p + q + 1.0) * n
    a = (n + 1.0) * (n * (n + 2.0) * x + p * p - q * q) / divisor
    return a, 2.0 * (k + p) * (k + q) * (n + 2.0) / divisor


STEPS: dict[str, Recurrence] = {
    "legendre": lambda k, x: ((2 * k + 1) / (k + 1) * x, k / (k + 1)),
    "chebyt": lambda k, x: ((2.0 if k else 1.0) * x, 1.0),
    "chebyu": lambda k, x: (2.0 * x, 1.0),
    "hermite": lambda k, x: (2.0 * x, 2.0 * k),
    "hermitenorm": lambda k, x: (x, float(k)),
    "laguerre": lambda k, x: ((2 * k + 1 - x) / (k + 1), k / (k + 1)),
    "genlaguerre": lambda k, x, p: ((2 * k + 1 + p - x) / (k + 1), (k + p) / (k + 1)),
    "gegenbauer": lambda k, x, p: (2.0 * (k + p) * x / (k + 1), (k + 2.0 * p - 1.0) / (k + 1)),
    "jacobi": _jacobi,
}
#: Those of 2 x - 1.
SHIFTED = {"sh_legendre": "legendre", "sh_chebyt": "chebyt", "sh_chebyu": "chebyu"}


def _upwards(step: Recurrence, order: int, x: Any, *about: Any) -> list[Any]:
    """The polynomials of all orders up to this one."""
    found: list[Any] = [np.ones_like(x)]
    for k in range(order):
        a, b = step(k, x, *about)
        found.append(a * found[k] - b * found[k - 1] if k else a * found[k])
    return found


def orders_of(n: Any, name: str) -> np.ndarray:
    """Whole orders from 0 on, which have to be known."""
    given = known(n)
    whole = given is not None and np.all(given == np.round(given)) and np.all(given >= 0)
    reject(not whole, f"scipy.special.{name} of an order that is traced, below 0 or not whole")
    assert given is not None
    return np.asarray(np.round(given), np.int64)


def _at(orders: np.ndarray, function: Callable[[int], Any]) -> Any:
    """The function of each order where that is the one."""
    distinct = np.unique(orders)
    found = function(int(distinct[-1]))
    for k in distinct[-2::-1].tolist():
        found = np.where(orders == k, function(k), found)
    return found


def _polynomial(name: str, n: Any, *about: Any, step: Recurrence, shifted: bool) -> Array:
    orders = orders_of(n, f"eval_{name}")
    (*more, x), dtype = floats(*about)
    x = 2.0 * x - 1.0 if shifted else x
    more = [p + np.zeros_like(x) for p in more]
    x = x + np.zeros_like(more[0]) if more else x
    found = _upwards(step, int(orders.max()), x, *more)
    return own(retyped(_at(orders, found.__getitem__), dtype))


for _name in (*STEPS, *SHIFTED):
    _made = partial(_polynomial, _name, step=STEPS[SHIFTED.get(_name, _name)])
    implements(getattr(scipy.special, f"eval_{_name}"))(partial(_made, shifted=_name in SHIFTED))


# --- associated functions ----------------------------------------------------------------------


def _associated(m: int, n: int, x: Any, root: Any) -> Any:
    """P(n, m) with Condon and Shortley's phase, m from 0 to n; ``root`` is that of 1 - x**2
    (DLMF 14.7.15, 14.10.3)."""
    if m > n:
        return np.zeros_like(x)
    last, found = None, (-1.0) ** m * math.prod(range(1, 2 * m, 2)) * root**m + np.zeros_like(x)
    for k in range(m, n):
        lower = 0.0 if last is None else (k + m) * last
        last, found = found, ((2 * k + 1) * x * found - lower) / (k - m + 1)
    return found


def _of_any_sign(m: int, n: int, x: Any, root: Any) -> Any:
    if m >= 0:
        return _associated(m, n, x, root)
    if -m > n:
        return np.zeros_like(x)
    factor = (-1.0) ** m * math.factorial(n + m) / math.factorial(n - m)
    return factor * _associated(-m, n, x, root)


def _pair(m: Any, n: Any, name: str) -> tuple[int, int]:
    orders = orders_of(n, name)
    given = known(m)
    whole = given is not None and given.size == orders.size == 1 and given == np.round(given)
    reject(not whole, f"scipy.special.{name} of orders that are traced, several or not whole")
    assert given is not None
    return round(float(given.flat[0])), int(orders.flat[0])


@implements(scipy.special.lpmv)
def lpmv(m: Any, v: Any, x: Any) -> Array:
    order, degree = _pair(m, v, "lpmv")
    (x,), dtype = floats(x)
    return own(retyped(_of_any_sign(order, degree, x, np.sqrt(1.0 - x * x)), dtype))


@implements(scipy.special.sph_harm_y)
def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, *, diff_n: int = 0) -> Array:
    """DLMF 14.30.1, with m of either sign."""
    reject(diff_n != 0, "scipy.special.sph_harm_y with diff_n=")
    order, degree = _pair(m, n, "sph_harm_y")
    (theta, phi), _ = floats(theta, phi)
    factor = 0.0
    if abs(order) <= degree:
        size = math.factorial(degree - abs(order)) / math.factorial(degree + abs(order))
        factor = math.sqrt((2 * degree + 1) / (4.0 * math.pi) * size)
    sign = -1.0 if order < 0 and order % 2 else 1.0
    found = _associated(abs(order), degree, np.cos(theta), np.sin(theta))
    return complexed(sign * factor * found * np.exp(1j * order * phi))


# --- spherical Bessel functions ----------------------------------------------------------------


def _cylindrical(bessel: Any, n: int, z: Any) -> Any:
    """sqrt(pi / (2 z)) times the one of order n + 1/2, for z above 0   (DLMF 10.47)"""
    return np.sqrt(0.5 * math.pi / z) * bessel(n + 0.5, z)


def _regular(bessel: Any, sign: float, n: int, z: Any) -> Any:
    """j and i: by the first terms of their series where z is small   (DLMF 10.53)"""
    small = np.abs(z) < 0.02
    square = np.where(small, 0.5 * sign * z * z, 0.0)
    first = square / (2 * n + 3)
    second = first * square / (2 * (2 * n + 5))
    third = second * square / (3 * (2 * n + 7))
    power = np.where(small, z, 1.0) ** n / float(math.prod(range(1, 2 * n + 2, 2)))
    far = _cylindrical(bessel, n, np.where(small, 1.0, np.abs(z)))
    far = far * np.where(z < 0.0, -1.0, 1.0) if n % 2 else far
    return np.where(small, power * (1.0 + first + second + third), far)


def _second(n: int, z: Any) -> Any:
    """y: of z below 0 by its symmetry."""
    found = _cylindrical(scipy.special.yv, n, np.abs(z))
    return found if n % 2 else found * np.where(z < 0.0, -1.0, 1.0)


#: The function of n and z, and the signs of its neighbours in its derivative (DLMF 10.51.2).
SPHERICAL: dict[Any, tuple[Callable[[int, Any], Any], float, float]] = {
    scipy.special.spherical_jn: (partial(_regular, scipy.special.jv, -1.0), 1.0, -1.0),
    scipy.special.spherical_yn: (_second, 1.0, -1.0),
    scipy.special.spherical_in: (partial(_regular, scipy.special.iv, 1.0), 1.0, 1.0),
    scipy.special.spherical_kn: (partial(_cylindrical, scipy.special.kv), -1.0, -1.0),
}


def _derived(function: Any, lower: float, upper: float, n: int, z: Any) -> Any:
    above = upper * (n + 1) * function(n + 1, z)
    return (lower * n * function(n - 1, z) + above) / (2 * n + 1) if n else above


def _spherical(function: Any, signs: tuple[float, float]) -> Callable[..., Array]:
    def spherical(n: Any, z: Any, derivative: bool = False) -> Array:
        orders = orders_of(n, "spherical Bessel functions")
        (z,), _ = floats(z)
        wanted = partial(_derived, function, *signs) if derivative else function
        return own(_at(orders, lambda k: wanted(k, z)))

    return spherical


for _function, (_formula, *_signs) in SPHERICAL.items():
    implements(_function)(_spherical(_formula, (_signs[0], _signs[1])))
