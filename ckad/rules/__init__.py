"""The rule blocks of all ops; importing this package fills the registry."""

from ckad.rules import control, elementwise, index, linalg, reduce, shape
from ckad.rules.registry import RULES, Contribution, Rule

__all__ = [
    "RULES",
    "Contribution",
    "Rule",
    "control",
    "elementwise",
    "index",
    "linalg",
    "reduce",
    "shape",
]
