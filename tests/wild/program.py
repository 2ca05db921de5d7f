"""What the tests and the benchmark know of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..programs.program import Program

Size = tuple[int, ...]


class Wild(NamedTuple):
    """A function as it is found, and its arguments at two sizes."""

    function: Callable[..., Any]
    arguments: Callable[..., tuple[Any, ...]]  # of a size
    small: Size  # for the tests
    large: Size  # for the benchmark: NumPy takes 1 to 200 ms
    step: float = 1e-3  # of the differences
    rtol: float = 1e-12  # of the value, to NumPy's
    difference: float = 1e-6  # of the derivative, to that of the differences
    ulp: float = 1e3  # of the largest element, from engine to engine
    complex_step: bool = False

    @property
    def name(self) -> str:
        return f"{self.function.__module__.rsplit('.', 1)[-1]}.{self.function.__name__}"

    def at(self, size: Size) -> Program:
        """As the suite of programs checks it."""
        return Program(
            self.function,
            lambda rng: self.arguments(*size),
            step=self.step,
            rtol=self.rtol,
            difference=self.difference,
            ulp=self.ulp,
            complex_step=self.complex_step,
            budgets=True,
        )
