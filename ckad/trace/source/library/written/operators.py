"""Matrices known by their products, as SciPy's iterations for linear systems take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class LinearOperator:
    """A matrix known by its products: ``scipy.sparse.linalg.LinearOperator`` of functions."""

    def __init__(
        self,
        shape: Any,
        matvec: Callable[[Any], Any],
        rmatvec: Callable[[Any], Any] | None = None,
        matmat: Callable[[Any], Any] | None = None,
        dtype: Any = None,
        rmatmat: Callable[[Any], Any] | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.function = matvec
        self.adjoint = rmatvec
        self.of_matrices = matmat

    def matvec(self, x: Any) -> Any:
        return self.function(x)

    def rmatvec(self, x: Any) -> Any:
        if self.adjoint is None:
            raise NotImplementedError("rmatvec is not defined")
        return self.adjoint(x)

    def matmat(self, x: Any) -> Any:
        if self.of_matrices is not None:
            return self.of_matrices(x)
        return np.stack([self.function(x[:, k]) for k in range(x.shape[1])], axis=1)

    def dot(self, x: Any) -> Any:
        return self.matvec(x) if x.ndim == 1 else self.matmat(x)

    __matmul__ = __mul__ = __call__ = dot


class MatrixOperator(LinearOperator):
    """``scipy.sparse.linalg.aslinearoperator``"""

    def __init__(self, A: Any) -> None:
        adjoint = A.conj().T
        super().__init__(A.shape, lambda x: A @ x, lambda x: adjoint @ x, lambda x: A @ x, A.dtype)
        self.A = A

    def rmatmat(self, x: Any) -> Any:
        return self.rmatvec(x)

    @property
    def T(self) -> MatrixOperator:
        return MatrixOperator(self.A.T)

    @property
    def H(self) -> MatrixOperator:
        return MatrixOperator(self.A.conj().T)
