"""Functions of matrices, matrix equations, and factors as SciPy shows them."""

from ckad.rules.routines.dense.functions import compact, exponential, pade, roots, sylvester

__all__ = ["compact", "exponential", "pade", "roots", "sylvester"]
