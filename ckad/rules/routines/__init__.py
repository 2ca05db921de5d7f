"""The package's own routines; importing it defines them, in the order of their numbers."""

from ckad.rules.routines import (
    bounded,
    dense,
    draws,
    error_functions,
    fourier,
    krylov,
    recurrence,
    singles,
    sorting,
    sparse,
    sparse_solve,
    sparse_triangular,
)

__all__ = [
    "bounded",
    "dense",
    "draws",
    "error_functions",
    "fourier",
    "krylov",
    "recurrence",
    "singles",
    "sorting",
    "sparse",
    "sparse_solve",
    "sparse_triangular",
]
