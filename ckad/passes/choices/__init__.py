"""Passes on choices between two values, element by element, before a tape is differentiated."""

from ckad.passes.choices.infinite import infinite
from ckad.passes.choices.unseen import unseen

__all__ = ["infinite", "unseen"]
