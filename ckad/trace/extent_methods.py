"""NumPy's functions as methods of arrays of run-time extent; importing it fills the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.trace import extent_joins, extent_reductions  # noqa: F401
from ckad.trace.extent_elements import PART_FUNCTIONS
from ckad.trace.extent_shapes import copy, ravel, reshape, transpose
from ckad.trace.extent_writes import write_part
from ckad.trace.extents import Padded

# --- methods ------------------------------------------------------------------------------------


def _method(function: Any) -> Callable[..., Any]:
    return lambda self, *args, **options: PART_FUNCTIONS[function](self, *args, **options)


for _name in """sum prod mean var std max min any all argmax argmin cumsum cumprod dot ravel
    swapaxes clip round copy""".split():
    setattr(Padded, _name, _method(getattr(np, _name)))


def _flatten(self: Padded) -> Any:
    return copy(ravel(self))


def _astype(self: Padded, dtype: Any, **options: Any) -> Padded:
    return copy(self, dtype)


def _fill(self: Padded, value: Any) -> None:
    write_part(self, value)


def _shaped(self: Padded, *dims: Any, **options: Any) -> Any:
    return reshape(self, dims[0] if len(dims) == 1 else dims, **options)


def _transposed(self: Padded, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    return transpose(self, order or None)


for _name, _function in {
    "flatten": _flatten,
    "astype": _astype,
    "fill": _fill,
    "reshape": _shaped,
    "transpose": _transposed,
    "T": property(transpose),
    "real": property(lambda self: self),
    "conj": lambda self: self,
}.items():
    setattr(Padded, _name, _function)
