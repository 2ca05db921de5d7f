"""Functions of NumPy's that give an ``np.matrix`` where they are given one, and such as do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.trace.dispatch import SPARSE, call, put
from ckad.trace.primitives.sparse.dense import beside_sparse, check_dense, reduced
from ckad.trace.primitives.sparse.operators import numbers_of
from ckad.trace.values.sparse import Dense

#: By elements, or of the elements in another order.
_ALIKE = (
    *(np.square, np.sqrt, np.exp, np.exp2, np.expm1, np.log, np.log10, np.log2, np.log1p),
    *(np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2, np.hypot),
    *(np.sinh, np.cosh, np.tanh, np.maximum, np.minimum, np.fmax, np.fmin, np.power, np.sign),
    *(np.floor, np.ceil, np.trunc, np.clip, np.reciprocal, np.isnan, np.isfinite),
    *(np.logical_and, np.logical_or, np.logical_not, np.mod, np.deg2rad, np.rad2deg),
    *(np.cumsum, np.cumprod, np.sort, np.inner, np.squeeze, np.fliplr, np.flipud, np.kron),
)
#: Of ``np.linalg``: what has two axes is a matrix, eigenvalues are an array.
_LINEAR = (
    *(np.linalg.eig, np.linalg.eigh, np.linalg.eigvals, np.linalg.eigvalsh, np.linalg.svd),
    *(np.linalg.qr, np.linalg.cholesky, np.linalg.pinv, np.linalg.slogdet),
    np.linalg.matrix_rank,
)
_REDUCED = (np.prod, np.any, np.all, np.argmax, np.argmin)
_ARRAYS = (np.diag, np.einsum, np.cov, np.tril, np.triu, np.nonzero)


def _given(function: Any, give: Callable[[Any], Any]) -> Callable[..., Any]:
    def called(*args: Any, **options: Any) -> Any:
        arrays = tuple(map(numbers_of, args))
        check_dense(function, arrays)
        return give(call(function, arrays, options))

    return called


def _as_matrix(found: Any) -> Any:
    """A vector is a row."""
    axes = np.ndim(found)
    if axes == 1:
        found = call(np.reshape, (found, (1, -1)), {})
    return Dense(found) if axes in (1, 2) else found


def _as_matrices(found: Any) -> Any:
    if isinstance(found, tuple):
        parts = map(_as_matrices, found)
        return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    return Dense(found) if np.ndim(found) == 2 else found


for _functions, _give in ((_ALIKE, _as_matrix), (_LINEAR, _as_matrices), (_ARRAYS, lambda x: x)):
    for _function in _functions:
        beside_sparse(_function, _given(_function, _give))
for _function in _REDUCED:
    beside_sparse(_function, reduced(_function))


def _method(name: str, give: Callable[[Any], Any]) -> Any:
    return lambda x, *args, **options: give(getattr(x.numbers, name)(*args, **options))


for _name in ("reshape", "astype"):
    put(f"matrix.{_name}", _method(_name, _as_matrix), SPARSE)
for _name in ("item", "tolist"):
    put(f"matrix.{_name}", _method(_name, lambda x: x), SPARSE)
