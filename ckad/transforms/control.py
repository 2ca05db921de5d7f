"""Loops for users: recorded inside a transformed function, compiled and run outside of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckad.trace import loops
from ckad.trace.context import is_tracing
from ckad.transforms.forward import jit


def scan(
    step: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
) -> tuple[Any, Any]:
    """Run ``carry, y = step(carry, x)`` over the first axis of ``xs``.

    Args:
        step: takes the carry and one element of ``xs`` (``None`` without ``xs``), returns both
            the next carry and an output.
        init: the first carry, a pytree of arrays; its shapes and dtypes stay the same.
        xs: a pytree of arrays with a common first axis, or None.
        length: the number of steps; needed without ``xs``.

    Returns:
        The last carry, and the outputs of all steps stacked along a new first axis.

    Raises:
        CarryError: the carry changes its structure, shape or dtype.

    >>> import numpy as np, ckad
    >>> total, sums = ckad.scan(lambda c, x: (c + x, c + x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> print(total, sums)
    6.0 [1. 3. 6.]
    """
    if is_tracing():
        return loops.scan(step, init, xs, length)
    return jit(lambda init, xs: loops.scan(step, init, xs, length))(init, xs)


def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """Run ``carry = body(i, carry)`` for ``i`` in ``range(lower, upper)``; returns the last carry.

    ``body`` may write into the arrays it gets through the carry; ``init`` itself is not changed.
    The bounds are Python ints. Raises CarryError if the carry changes structure, shape or dtype.

    >>> import ckad
    >>> print(ckad.fori_loop(0, 10, lambda i, x: x + i, 0.0))
    45.0
    """
    if is_tracing():
        return loops.fori_loop(lower, upper, body, init)
    return jit(lambda init: loops.fori_loop(lower, upper, body, init))(init)
