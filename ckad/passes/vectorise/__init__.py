"""Loops over elements whose iterations can run side by side become array ops."""

from ckad.passes.vectorise.rows import vectorise

__all__ = ["vectorise"]
