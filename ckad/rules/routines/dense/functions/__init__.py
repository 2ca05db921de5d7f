"""Functions of matrices, matrix equations, and factors as SciPy shows them."""

from ckad.rules.routines.dense.functions import (
    compact,
    exponential,
    indefinite,
    pade,
    polar,
    roots,
    sylvester,
)

__all__ = ["compact", "exponential", "indefinite", "pade", "polar", "roots", "sylvester"]
