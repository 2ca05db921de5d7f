"""``np.emath``: functions whose results are complex where real ones are undefined.

Of a traced real array it is not known whether a number is outside of the domain, so that the result
is always complex; NumPy's is real where all numbers are inside, and has the same real part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.trace.arrays import Array, complexed
from ckad.trace.dispatch import STATIC, implements

_UFUNCS = (np.sqrt, np.log, np.log2, np.log10, np.arccos, np.arcsin, np.arctanh)


def _extended(ufunc: np.ufunc) -> Callable[[Any], Array]:
    def function(x: Any) -> Array:
        result: Any = ufunc(complexed(x))
        return complexed(result)

    return function


for _ufunc in _UFUNCS:
    implements(getattr(np.emath, _ufunc.__name__), kind=STATIC)(_extended(_ufunc))


@implements(np.emath.logn, kind=STATIC)
def logn(n: Any, x: Any) -> Any:
    return np.log(complexed(x)) / np.log(complexed(n))


@implements(np.emath.power, kind=STATIC)
def power(x: Any, p: Any) -> Any:
    return np.power(complexed(x), p)
