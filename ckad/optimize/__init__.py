"""Roots, fixed points and minima, with the derivative of the implicit function."""

from ckad.optimize.descent import minimize
from ckad.optimize.points import fixed_point
from ckad.optimize.result import OptimizeResult
from ckad.optimize.roots import root

__all__ = ["OptimizeResult", "fixed_point", "minimize", "root"]
