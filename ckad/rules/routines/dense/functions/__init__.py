"""Functions of matrices, matrix equations, and factors as SciPy shows them."""

from ckad.rules.routines.dense.functions import (
    compact,
    elimination,
    exponential,
    indefinite,
    pade,
    polar,
    rooted,
    roots,
    substitution,
    sylvester,
)

__all__ = [
    "compact",
    "elimination",
    "exponential",
    "indefinite",
    "pade",
    "polar",
    "rooted",
    "roots",
    "substitution",
    "sylvester",
]
