"""Polynomials."""

from __future__ import annotations

from collections.abc import Sequence

from ckad.rules.vector_math.real import Real, fma


def polynomial(x: Real, coefficients: Sequence[float]) -> Real:
    """c[0] + c[1] x + c[2] x**2 ..., by Estrin's scheme, whose chain of operations is short.

    J.-M. Muller, Elementary Functions, 3rd ed., section 5.6.
    """
    terms: list[Real | float] = list(coefficients)
    power = x
    while len(terms) > 1:
        pairs: list[Real | float] = [
            fma(power, high, low) for low, high in zip(terms[::2], terms[1::2], strict=False)
        ]
        terms = pairs + terms[len(terms) // 2 * 2 :]
        power = power * power if len(terms) > 1 else power
    assert isinstance(terms[0], Real)
    return terms[0]
