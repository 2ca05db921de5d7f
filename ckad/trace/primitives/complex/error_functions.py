"""Error functions of complex numbers; those of real numbers are there wherever these are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from ckad.trace.arrays import Array, complexed, own, retyped, routine, traced
from ckad.trace.dispatch import COMPLEX, PLAIN, implements
from ckad.trace.primitives import special

__all__ = ["NAMES", "special"]

#: In the order of the routine's attribute; the first two and erfcx have ops for real numbers.
NAMES = ("erf", "erfc", "erfi", "erfcx", "wofz", "dawsn")


def _of_complex(which: int) -> Callable[[Any], Array]:
    def function(x: Any) -> Array:
        z = complexed(x)
        both = routine("error_function", z.real, z.imag, attrs=(which,))
        return complexed(both[0] + 1j * both[1])

    return function


def _of_real(which: int) -> Callable[[Any], Array]:
    def function(x: Any) -> Array:
        given = traced(x)
        real = retyped(given, np.float64)
        found = own(routine("error_function", real, np.zeros_like(real), attrs=(which,))[0])
        return retyped(found, given.dtype) if given.dtype == np.float32 else found

    return function


for _k, _name in enumerate(NAMES):
    _ufunc = getattr(scipy.special, _name)
    implements(_ufunc, kind=COMPLEX)(_of_complex(_k))
    if _name in ("erfi", "dawsn"):
        implements(_ufunc, kind=PLAIN)(_of_real(_k))
    elif _name == "wofz":
        implements(_ufunc, kind=PLAIN)(_of_complex(_k))
