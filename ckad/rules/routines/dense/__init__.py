"""Dense linear algebra by LAPACK, on stacks of real and complex matrices."""

from ckad.rules.routines.dense import (
    banded,
    definite,
    determinants,
    eigen,
    functions,
    inverses,
    orthogonal,
    singular,
    spectral,
    systems,
    triangles,
)

__all__ = [
    "banded",
    "definite",
    "determinants",
    "eigen",
    "functions",
    "inverses",
    "orthogonal",
    "singular",
    "spectral",
    "systems",
    "triangles",
]
