"""Sparse matrices: rows of the table, loaded where the first of them is met."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ckad.patterns import Pattern
from ckad.trace import dispatch
from ckad.trace.values.sparse import Sparse
from ckad.trace.values.tracer import Tracer

#: The modules that hold rows of the table; they import SciPy.
_MODULES = (
    "operators",
    "products",
    "methods",
    "making",
    "assembling",
    "solving",
    "iterating",
    "dense",
)


def _derived(key: Any) -> dispatch.Function | None:
    """The row of ``key``, once the modules are there."""
    return dispatch.cell(key, dispatch.SPARSE) if _load() else None


def _load() -> bool:
    """Import the modules; whether they were not there yet."""
    if _loaded:
        return False
    _loaded.append(True)
    for name in _MODULES:
        importlib.import_module(f"{__name__}.{name}")
    return True


def matrix(pattern: Pattern, numbers: Tracer) -> Sparse:
    """A traced matrix, with its methods, which those modules give it."""
    _load()
    return Sparse(pattern, numbers)


def _matrix(name: str) -> dispatch.Function:
    def make(*args: Any, **options: Any) -> Any:
        module = importlib.import_module(f"{__name__}.dense")
        return getattr(module, name)(*args, **options)

    return make


dispatch.put(np.matrix, _matrix("made"))
dispatch.put(np.asmatrix, _matrix("shown"))
_loaded: list[bool] = []
dispatch.derives(dispatch.SPARSE, _derived)
dispatch.later("scipy.sparse", f"{__name__}.table")
