"""Constants: rows that depend on nothing but constants are computed now; trivial rows vanish."""

from ckad.passes.fold.rows import fold, fold_row, folding, is_final

__all__ = ["fold", "fold_row", "folding", "is_final"]
