"""NumPy's `poly1d` of traced coefficients, and what takes leading zeros off like it.

Which coefficients are 0 is known of constants alone; where it is not, whatever depends on the
degree stops the program at a first coefficient that is 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ckad import trees
from ckad.place import at_place
from ckad.trace.arrays import Array, OfTraced, known, stopping, traced
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.calculus import convolve, polyadd, polyder, polyint, polysub


def _trimmed(p: Any) -> Any:
    """Without the first coefficients that are known to be 0."""
    while len(p) > 1 and (first := known(p[0])) is not None and np.all(first == 0):
        p = p[1:]
    return p


def _of_its_degree(x: Any, c: Array) -> Array:
    """``x``, which depends on the number of the coefficients ``c``."""
    is_so = c.size == 1 or known(c[0]) is not None
    return x if is_so else stopping(x, np.equal(c[0], 0), "DEGREE")


def _coefficients(p: Any) -> Array:
    p = _trimmed(p) if isinstance(p, (list, tuple)) else getattr(p, "coeffs", p)
    c = np.atleast_1d(traced(p))
    if c.ndim != 1:
        raise ValueError(at_place("Polynomial must be 1d only."))
    return _trimmed(c)


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Array:
    return convolve(*(_of_its_degree(c, c) for c in map(_coefficients, (a1, a2))))


class Poly(OfTraced):
    """NumPy's ``poly1d``; of the coefficients that were ``given``, first ones may be 0."""

    given: Array

    def __init__(self, c: Any) -> None:
        self.given: Any = c.given if isinstance(c, Poly) else _coefficients(c)

    def _named(self) -> str:
        return "a np.poly1d of traced values"

    def __getattr__(self, name: str) -> Any:
        if name in ("coeffs", "coef", "coefficients", "c"):
            return _of_its_degree(self.given, self.given)
        if name == "__array__":
            reject(True, "a np.poly1d of known numbers to the left of one of traced values")
        return super().__getattr__(name)

    order = property(lambda self: _of_its_degree(self.given.size - 1, self.given))
    roots = property(lambda self: np.roots(self.given))
    o, r = order, roots
    __iter__: Any = lambda self: iter(self.c)

    def __len__(self) -> int:
        self.given = self.c
        return int(self.given.size - 1)

    def __call__(self, x: Any) -> Any:
        if not isinstance(x, (Poly, np.poly1d)):
            return np.polyval(self.given, x)
        inner, result = Poly(x), Poly(self.given[:1])
        for c in self.given[1:]:
            result = result * inner + c
        return result

    def __getitem__(self, power: int) -> Any:
        top = self.given.size - 1
        return self.given[top - power] if 0 <= power <= top else 0.0

    def deriv(self, m: int = 1) -> Poly:
        return Poly(polyder(self.given, m) if m < self.given.size else 0.0 * self.given[:1])

    def integ(self, m: int = 1, k: Any = 0) -> Poly:
        return Poly(polyint(self.given, m, k))

    def __add__(self, other: Any) -> Poly:
        return Poly(polyadd(self.given, Poly(other).given))

    def __sub__(self, other: Any) -> Poly:
        return Poly(polysub(self.given, Poly(other).given))

    def __mul__(self, other: Any) -> Poly:
        return Poly(convolve(self.given, Poly(other).given))

    def __truediv__(self, other: Any) -> Poly:
        reject(isinstance(other, (Poly, np.poly1d)), "a quotient of np.poly1d of traced values")
        return Poly(self.given / other)

    def __pow__(self, power: int) -> Poly:
        return math.prod([self] * power, start=Poly(1.0))

    __neg__: Any = lambda self: Poly(-self.given)
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        reject(isinstance(other, (Poly, np.poly1d)), "== of np.poly1d of traced values")
        return False

    __radd__, __rmul__ = __add__, __mul__
    __rsub__: Any = lambda self, other: Poly(other) - self


@implements(np.poly1d)
def poly1d(c_or_r: Any, r: bool = False, variable: Any = None) -> Poly:
    if not r:
        return Poly(c_or_r)
    result = Poly(1.0)
    for root in traced(c_or_r):
        result = result * Poly(np.stack([np.ones_like(root), -root]))
    return result


def _rebuilt(_: Any, children: Any) -> Poly:
    made = Poly.__new__(Poly)
    made.given = children[0]
    return made


trees.register(Poly, lambda p: ((p.given,), None, ("given",)), _rebuilt)
