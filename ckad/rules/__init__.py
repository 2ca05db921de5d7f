"""The rule blocks of all ops; importing this package fills the registry."""

from ckad.rules import call, control, index, linalg, numbers, reduce, routines, shape
from ckad.rules.registry import RULES, Contribution, Rule

__all__ = [
    "RULES",
    "Contribution",
    "Rule",
    "call",
    "control",
    "index",
    "linalg",
    "numbers",
    "reduce",
    "routines",
    "shape",
]
