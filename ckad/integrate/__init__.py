"""Initial value problems, as SciPy has them, with derivatives."""

from ckad.integrate.result import OdeResult
from ckad.integrate.solve import solve_ivp

__all__ = ["OdeResult", "solve_ivp"]
