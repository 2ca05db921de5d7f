"""Sparse Jacobians and Hessians.

colouring        columns that one product gives together
recipe           a pattern, read off the tape; seeds; where in the products the elements are
matrices         the matrices, and `sparsity`, the pattern for users
"""

from ckad.transforms.sparse.matrices import (
    Sparsity,
    given_pattern,
    sparse_hessian,
    sparse_jacobian,
    sparsity,
)

__all__ = [
    "Sparsity",
    "given_pattern",
    "sparse_hessian",
    "sparse_jacobian",
    "sparsity",
]
