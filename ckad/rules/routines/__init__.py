"""The package's own routines; importing it defines them, in the order of their numbers."""

from ckad.rules.routines import (
    banded,
    determinants,
    error_functions,
    functions,
    orthogonal,
    singular,
    spectral,
    systems,
    triangles,
)

__all__ = [
    "banded",
    "determinants",
    "error_functions",
    "functions",
    "orthogonal",
    "singular",
    "spectral",
    "systems",
    "triangles",
]
