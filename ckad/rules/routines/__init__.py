"""The package's own routines; importing it defines them, in the order of their numbers."""

from ckad.rules.routines import (
    banded,
    functions,
    orthogonal,
    spectral,
    systems,
    triangles,
)

__all__ = ["banded", "functions", "orthogonal", "spectral", "systems", "triangles"]
