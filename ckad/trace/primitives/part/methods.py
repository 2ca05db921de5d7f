"""The methods of arrays on parts of run-time extent."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.trace.dispatch import PART, Function, put
from ckad.trace.primitives.part.shapes import copy, ravel, reshape, transpose
from ckad.trace.primitives.part.writes import write_part
from ckad.trace.values.part import Padded


def _flatten(self: Padded) -> Any:
    return copy(ravel(self))


def _astype(self: Padded, dtype: Any, **options: Any) -> Padded:
    return copy(self, dtype)


def _shaped(self: Padded, *dims: Any, **options: Any) -> Any:
    return reshape(self, dims[0] if len(dims) == 1 else dims, **options)


def _transposed(self: Padded, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    return transpose(self, order or None)


_METHODS: dict[Any, Function] = {
    np.ndarray.copy: copy,
    np.ndarray.flatten: _flatten,
    np.ndarray.astype: _astype,
    np.ndarray.fill: write_part,
    np.ndarray.reshape: _shaped,
    np.ndarray.transpose: _transposed,
    np.ndarray.T: transpose,
    np.ndarray.mT: np.matrix_transpose,
    np.ndarray.real: lambda self: self,
    np.ndarray.conj: lambda self: self,
    np.ndarray.conjugate: lambda self: self,
}
for _key, _function in _METHODS.items():
    put(_key, _function, PART)
