"""The rule blocks of all ops; importing this package fills the registry."""

from ckad.rules import (
    arithmetic,
    call,
    control,
    functions,
    index,
    linalg,
    logic,
    reduce,
    routines,
    shape,
    special,
)
from ckad.rules.registry import RULES, Contribution, Rule

__all__ = [
    "RULES",
    "Contribution",
    "Rule",
    "arithmetic",
    "call",
    "control",
    "functions",
    "index",
    "linalg",
    "logic",
    "reduce",
    "routines",
    "shape",
    "special",
]
