"""The checks of ``numpy.testing``: of traced numbers they stop the program that runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import testing

from ckad.trace import dispatch
from ckad.trace.source.actions import stop


def _asserted(holds: Callable[..., Any]) -> Callable[..., None]:
    """A check of NumPy's of traced numbers, which stops the program as an ``assert`` does."""

    def check(
        x: Any, y: Any, *args: Any, err_msg: Any = "", verbose: Any = True, **options: Any
    ) -> None:
        stop(np.logical_not(holds(x, y, *args, **options)))

    return check


def _are_close(
    x: Any, y: Any, rtol: float = 1e-7, atol: float = 0.0, equal_nan: bool = True
) -> Any:
    return np.allclose(x, y, rtol, atol, equal_nan)


def _to_digits(digits: int) -> Callable[..., Any]:
    """Whether numbers are equal to so many digits behind the point, of which NumPy asks."""

    def are_equal(x: Any, y: Any, decimal: int = digits) -> Any:
        return np.allclose(x, y, 0.0, 1.5 * 10.0**-decimal, equal_nan=True)

    return are_equal


def _are_equal(x: Any, y: Any) -> Any:
    return np.array_equal(x, y) if np.shape(x) == np.shape(y) else np.all(np.equal(x, y))


_ASSERTED = {
    testing.assert_allclose: _are_close,
    testing.assert_array_almost_equal: _to_digits(6),
    testing.assert_almost_equal: _to_digits(7),
    testing.assert_array_equal: _are_equal,
    testing.assert_equal: _are_equal,
}
for _function, _holds in _ASSERTED.items():
    dispatch.put(_function, _asserted(_holds), dispatch.ANY)
