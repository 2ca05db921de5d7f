"""Sums of products between known bounds.

bounds   The places between which a mask is true, where a program's text alone says them.
terms    A sum as terms: products of factors, each of two of three axes, under masks.
chosen   Masks that all readers of a sum choose under: elsewhere it is not computed.
sums     `contracted`: such sums as products of matrices, of which rows are read between bounds.
"""

from ckad.passes.contract.sums import contracted

__all__ = ["contracted"]
