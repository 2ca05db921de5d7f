"""Fourier transforms along axes, and what they are computed by; importing it defines them."""

from ckad.rules.routines.fourier import transforms

__all__ = ["transforms"]
