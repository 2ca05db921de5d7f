"""The adjoint of a tape: reverse accumulation, as a tape."""

from ckad.passes.adjoint.accumulate import adjoint

__all__ = ["adjoint"]
