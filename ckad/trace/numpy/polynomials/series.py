"""NumPy's series of polynomials (`numpy.polynomial`): of powers, Chebyshev's and the others.

What they are made of is a three-term recurrence; derivatives, integrals and changes of basis are
linear in the coefficients, by matrices that NumPy gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import (
    chebyshev,
    hermite,
    hermite_e,
    laguerre,
    legendre,
    polynomial,
)

from ckad import trees
from ckad.place import at_place
from ckad.trace.arrays import OfTraced, traced
from ckad.trace.dispatch import REAL, STATIC, Kinds, Traced, implements, reject
from ckad.trace.numpy.linalg import floats


class Family(NamedTuple):
    """Polynomials p_0 = 1, p_1 = ``first(x)``, p_k+1 = ``then(k, x, p_k, p_k-1)``."""

    name: str
    module: ModuleType
    kind: Any
    first: Callable[[Any], Any]
    then: Callable[[int, Any, Any, Any], Any]

    def named(self, end: str) -> Any:
        return getattr(self.module, self.name + end)

    def terms(self, x: Any, n: int) -> list[Any]:
        """The first ``n`` of them at ``x``."""
        found = [np.ones_like(x), self.first(x)]
        for k in range(1, n - 1):
            found.append(self.then(k, x, found[k], found[k - 1]))
        return found[:n]


FAMILIES = (
    Family("poly", polynomial, polynomial.Polynomial, lambda x: x, lambda k, x, p, q: x * p),
    Family("cheb", chebyshev, chebyshev.Chebyshev, lambda x: x, lambda k, x, p, q: 2 * x * p - q),
    Family(
        *("leg", legendre, legendre.Legendre, lambda x: x),
        lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1),
    ),
    Family(
        *("lag", laguerre, laguerre.Laguerre, lambda x: 1 - x),
        lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1),
    ),
    Family(
        *("herm", hermite, hermite.Hermite, lambda x: 2 * x),
        lambda k, x, p, q: 2 * (x * p - k * q),
    ),
    Family(
        *("herme", hermite_e, hermite_e.HermiteE, lambda x: x), lambda k, x, p, q: x * p - k * q
    ),
)


def values(family: Family, x: Any, c: Any, tensor: bool = True) -> Any:
    """``c`` has one series per column, which each take all of ``x`` with ``tensor``."""
    at = floats(x)
    each = np.atleast_1d(c if isinstance(c, np.ndarray) else traced(c))
    if tensor and each.ndim > 1:
        each = np.reshape(each, (*each.shape, *[1] * at.ndim))
    terms = family.terms(at, each.shape[0])
    return sum((each[k] * term for k, term in enumerate(terms[1:], 1)), each[0] * terms[0])


def basis(family: Family, x: Any, deg: Any) -> Any:
    n = _degree(deg) + 1
    return np.stack(family.terms(np.atleast_1d(floats(x)), n), -1)


def fitted(
    family: Family, x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None
) -> Any:
    at, sides = floats(x), floats(y)
    powers = basis(family, at, deg)
    if rcond is None:
        rcond = at.shape[0] * np.finfo(at.dtype).eps
    if w is not None:
        powers, sides = powers * traced(w)[:, None], np.transpose(np.transpose(sides) * traced(w))
    scale = np.sqrt(np.sum(powers * powers, 0))
    scale = np.where(scale == 0, 1.0, scale)
    solution, *rest = np.linalg.lstsq(powers / scale, sides, rcond)
    found = np.transpose(np.transpose(solution) / scale)
    return (found, [*rest, rcond]) if full else found


def derivative(family: Family, c: Any, m: int = 1, scl: Any = 1, axis: int = 0) -> Any:
    reject(axis != 0, f"numpy.polynomial's {family.name}der with axis=")
    c = floats(c)
    for _ in range(m):
        n = c.shape[0]
        c = scl * np.matmul(family.named("der")(np.eye(n)), c) if n > 1 else 0.0 * c
    return c


def integral(
    family: Family, c: Any, m: int = 1, k: Any = (), lbnd: Any = 0, scl: Any = 1, axis: int = 0
) -> Any:
    reject(axis != 0, f"numpy.polynomial's {family.name}int with axis=")
    c = floats(c)
    starts = list(k) if isinstance(k, (list, tuple, np.ndarray)) else [k]
    for step in range(m):
        c = scl * np.matmul(family.named("int")(np.eye(c.shape[0])), c)
        start = starts[step] if step < len(starts) else 0.0
        c = np.concatenate([c[:1] + start - values(family, lbnd, c), c[1:]])
    return c


def _degree(deg: Any) -> int:
    reject(np.ndim(deg) > 0, "numpy.polynomial's fit with a list of degrees")
    if deg < 0:
        raise ValueError(at_place("deg must be non-negative"))
    return int(deg)


# --- as objects ----------------------------------------------------------------------------------


class Series(OfTraced):
    """One of NumPy's series of traced coefficients, or on a traced domain."""

    def __init__(self, family: Family, coef: Any, domain: Any = None, window: Any = None) -> None:
        self.family, self.coef = family, np.atleast_1d(floats(coef))
        if self.coef.ndim != 1:
            raise ValueError(at_place("Coefficient array is not 1-d"))
        self.domain = family.kind.domain if domain is None else domain
        self.window = family.kind.window if window is None else window

    def _named(self) -> str:
        return f"a {self.family.kind.__name__} of traced values"

    def over(self, coef: Any) -> Series:
        return Series(self.family, coef, self.domain, self.window)

    def mapparms(self) -> tuple[Any, Any]:
        (low, high), (first, last) = self.domain, self.window
        return (high * first - low * last) / (high - low), (last - first) / (high - low)

    def __call__(self, arg: Any) -> Any:
        offset, scale = self.mapparms()
        return values(self.family, offset + scale * floats(arg), self.coef)

    def roots(self) -> Any:
        """Complex; one axis of coefficients of powers alone."""
        reject(self.family is not FAMILIES[0], "roots of series other than Polynomial")
        offset, scale = self.mapparms()
        found = np.roots(self.coef[::-1])
        for part in (np.imag, np.real):
            found = found[np.argsort(part(found), kind="stable")]
        return (found - offset) / scale

    def degree(self) -> int:
        return int(self.coef.shape[0]) - 1

    def copy(self) -> Series:
        return self.over(self.coef.copy())

    __len__: Any = lambda self: self.degree() + 1
    __iter__: Any = lambda self: iter(self.coef)

    def deriv(self, m: int = 1) -> Series:
        return self.over(derivative(self.family, self.coef, m, self.mapparms()[1]))

    def integ(self, m: int = 1, k: Any = (), lbnd: Any = None) -> Series:
        offset, scale = self.mapparms()
        start = 0 if lbnd is None else offset + scale * lbnd
        return self.over(integral(self.family, self.coef, m, k, start, 1 / scale))

    def convert(self, domain: Any = None, kind: Any = None, window: Any = None) -> Series:
        """As a polynomial in the variable itself."""
        wanted = FAMILIES[0]
        is_other = kind not in (None, wanted.kind) or (kind is None and self.family is not wanted)
        reject(
            is_other or domain is not None or window is not None,
            f"convert() of a {self.family.kind.__name__} of traced values but to a Polynomial",
        )
        offset, scale = self.mapparms()
        powers, result = np.matmul(_in_powers(self.family, len(self)), self.coef), None
        for k in range(len(self) - 1, -1, -1):
            c = powers[k : k + 1]
            result = c if result is None else _moved(result, offset, scale, c)
        return Series(wanted, result)

    def _with(self, other: Any, what: str) -> Any:
        """The coefficients of another one on the same domain, or of a number."""
        if not isinstance(other, (Series, self.family.kind)):
            return np.atleast_1d(floats(other))
        one = other if isinstance(other, Series) else of(other)
        alike = [np.array_equal(a, b) for a, b in zip(self._ends(), one._ends(), strict=True)]
        reject(one.family is not self.family or not all(alike), f"{what} on other domains")
        return one.coef

    def _ends(self) -> tuple[Any, Any]:
        ends = self.domain, self.window
        reject(any(isinstance(x, Traced) for x in ends), "arithmetic of series on traced domains")
        return ends

    def __add__(self, other: Any) -> Series:
        both = [self.coef, self._with(other, "sums of series")]
        n = max(x.shape[0] for x in both)
        one, two = (np.concatenate([x, np.zeros(n - x.shape[0])]) for x in both)
        return self.over(one + two)

    def __mul__(self, other: Any) -> Series:
        by = self._with(other, "products of series")
        if by.shape[0] == 1:
            return self.over(self.coef * by[0])
        reject(self.family is not FAMILIES[0], "products of series other than Polynomial")
        return self.over(np.convolve(self.coef, by))

    def __truediv__(self, other: Any) -> Series:
        reject(np.ndim(other) > 0 or isinstance(other, Series), "a quotient of series")
        return self.over(self.coef / other)

    def __pow__(self, power: int) -> Series:
        return math.prod([self] * power, start=self.over(np.ones(1)))

    __neg__: Any = lambda self: self.over(-self.coef)
    __sub__: Any = lambda self, other: self + -1.0 * other
    __rsub__: Any = lambda self, other: -self + other
    __radd__, __rmul__ = __add__, __mul__


def _moved(c: Any, offset: Any, scale: Any, start: Any) -> Any:
    """The coefficients of ``(offset + scale * x) * c(x) + start``."""
    zero = np.zeros(1)
    low, high = np.concatenate([offset * c, zero]), np.concatenate([zero, scale * c])
    return low + high + np.concatenate([start, np.zeros(c.shape[0])])


def _in_powers(family: Family, n: int) -> np.ndarray:
    """The coefficients of the first ``n`` polynomials, as columns."""
    made = np.zeros((n, n))
    for k in range(n):
        c = np.zeros(k + 1)
        c[k] = 1.0
        powers = c if family is FAMILIES[0] else family.named("2poly")(c)
        made[: len(powers), k] = powers
    return made


def of(known: Any) -> Series:
    """One of NumPy's own objects."""
    family = next(f for f in FAMILIES if isinstance(known, f.kind))
    return Series(family, known.coef, known.domain, known.window)


def _series(family: Family) -> None:
    kind = family.kind

    @implements(kind)
    def made(coef: Any, domain: Any = None, window: Any = None, symbol: str = "x") -> Series:
        return Series(family, coef, domain, window)

    @implements(kind.fit, kind=REAL)
    def fit(x: Any, y: Any, deg: Any, domain: Any = None, rcond: Any = None, full: bool = False,
            w: Any = None, window: Any = None, symbol: str = "x") -> Any:  # fmt: skip
        at = floats(x)
        if domain is None:
            low, high = np.min(at), np.max(at)
            apart = np.where(np.equal(low, high), 1.0, 0.0)
            domain = np.stack([low - apart, high + apart])
        elif type(domain) is list and not domain:
            domain = kind.domain
        empty = Series(family, 0.0, domain, window)
        offset, scale = empty.mapparms()
        found = fitted(family, offset + scale * at, y, deg, rcond, full, w)
        return (empty.over(found[0]), found[1]) if full else empty.over(found)


_FUNCTIONS: dict[str, tuple[Callable[..., Any], Kinds]] = {
    "val": (values, REAL),
    "vander": (basis, REAL),
    "fit": (fitted, REAL),
    "der": (derivative, STATIC),
    "int": (integral, STATIC),
}


@implements(polynomial.Polynomial.__call__, kind=REAL)
def called(known: Any, arg: Any) -> Any:
    return of(known)(arg)


for _family in FAMILIES:
    _series(_family)
    for _end, (_function, _kind) in _FUNCTIONS.items():
        implements(_family.named(_end), kind=_kind)(partial(_function, _family))

trees.register(
    Series,
    lambda s: ((s.coef, s.domain, s.window), s.family, ("coef", "domain", "window")),
    lambda family, children: Series(family, *children),
)
