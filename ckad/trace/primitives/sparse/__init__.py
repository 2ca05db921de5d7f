"""Sparse matrices: rows of the table, loaded where the first of them is met."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import numpy as np

from ckad.patterns import Pattern
from ckad.trace import dispatch
from ckad.trace.values.sparse import Dense, Sparse
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
    "alike",
)


def _derived(key: Any) -> dispatch.Function | None:
    """The row of ``key``, once the modules are there; ``scipy.linalg`` takes what an ``np.matrix``
    holds, and gives arrays."""
    found = dispatch.cell(key, dispatch.SPARSE) if _load() else None
    of_arrays = (getattr(key, "__module__", None) or "").startswith("scipy.linalg")
    return partial(_of_numbers, key) if found is None and of_arrays else found


def _of_numbers(function: Any, *args: Any, **options: Any) -> Any:
    dispatch.reject(
        any(isinstance(x, Sparse) for x in (*args, *options.values())),
        f"scipy.linalg.{function.__name__} of sparse matrices (A.toarray() before)",
    )
    given = {name: _numbers(x) for name, x in options.items()}
    return dispatch.call(function, [*map(_numbers, args)], given)


def _numbers(x: Any) -> Any:
    return x.numbers if isinstance(x, Dense) else x


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
dispatch.put(np.bmat, _matrix("blocks"))
_loaded: list[bool] = []
dispatch.derives(dispatch.SPARSE, _derived)
dispatch.later("scipy.sparse", f"{__name__}.table")
