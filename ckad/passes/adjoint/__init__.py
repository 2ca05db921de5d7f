"""The adjoint of a tape: reverse accumulation, as a tape."""

from ckad.passes.adjoint.accumulate import adjoint
from ckad.passes.adjoint.thread import threaded

__all__ = ["adjoint", "threaded"]
