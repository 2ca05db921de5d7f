"""What generated code may call besides the C library: routines, special functions, BLAS, Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

from numba.extending import get_cython_function_address

from ckad.engines import routines
from ckad.engines.routines import PART, SYMBOL
from ckad.machine.compiler import in_process
from ckad.rules.numbers import special

#: An address is taken when a program that needs it is loaded, because importing SciPy's modules
#: takes long.
SYMBOLS: dict[str, Callable[[], int]] = {
    **{f"ckad_{name}": partial(special.address, name) for name in special.COMPILED},
    **{
        f"ckad_{name}": partial(get_cython_function_address, "scipy.linalg.cython_blas", name)
        for name in ("dgemm", "sgemm", "dsyrk", "ssyrk", "dgemv", "ddot")
    },
}


def address(name: str) -> int | None:
    if name in SYMBOLS:
        return SYMBOLS[name]()
    if name.startswith(SYMBOL):
        return routines.address(int(name.removeprefix(SYMBOL)))
    if name.startswith(PART):
        return routines.part(int(name.removeprefix(PART)))
    if name.startswith("Py"):
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    return in_process(name)
