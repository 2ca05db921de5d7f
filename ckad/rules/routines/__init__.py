"""The package's own routines; importing it defines them, in the order of their numbers."""

from ckad.rules.routines import dense, fourier

__all__ = ["dense", "fourier"]
