"""What the tests know of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .arguments import Maker


class Program(NamedTuple):
    """A function as its user wrote it, and how to check its derivatives."""

    function: Callable[..., Any]
    make_arguments: Maker
    argnums: tuple[int, ...] | None = None  # all that hold floats, if None
    returns: int | tuple[int, ...] | None = None  # the arguments it writes, if they are the result
    step: float = 1e-3  # of the differences
    rtol: float = 1e-12  # of the value, to NumPy's
    difference: float = 1e-8  # of the derivative, to that of the differences
    ulp: float = 1e3  # of the largest element, from engine to engine: native rounds x y + z once
    complex_step: bool = False  # it can run on complex numbers, and means the same
    budgets: bool = False  # long enough for the memory to matter

    @property
    def name(self) -> str:
        return f"{self.function.__module__.rsplit('.', 1)[-1]}.{self.function.__name__}"
