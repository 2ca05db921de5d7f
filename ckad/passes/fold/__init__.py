"""Constants: rows that depend on nothing but constants are computed now; trivial rows vanish."""

from ckad.passes.fold.rows import fold, folding

__all__ = ["fold", "folding"]
