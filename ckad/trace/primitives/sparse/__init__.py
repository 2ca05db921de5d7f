"""Sparse matrices: rows of the table, loaded where the first of them is met."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ckad.trace import dispatch

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
    if not _loaded:
        _loaded.append(True)
        for name in _MODULES:
            importlib.import_module(f"{__name__}.{name}")
        return dispatch.cell(key, dispatch.SPARSE)
    return None


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
