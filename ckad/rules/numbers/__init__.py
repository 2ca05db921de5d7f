"""The rule blocks of elementwise ops; importing this package fills the registry with them."""

from ckad.rules.numbers import arithmetic, functions, logic, special

__all__ = ["arithmetic", "functions", "logic", "special"]
