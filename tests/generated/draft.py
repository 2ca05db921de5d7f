"""A program's text in the making."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from .choices import Choices
from .scope import Bounded, Helper, Scope, Shape

T = TypeVar("T")
#: Productions with their weights; one that does not apply gives None.
Table = Sequence[tuple[float, Callable[..., T | None]]]
TRIES = 12


class Draft:
    """Lines written so far, and where the next one stands."""

    def __init__(self, choices: Choices, shapes: Sequence[Shape]) -> None:
        self.c = choices
        self.shapes = list(shapes)  # that arrays of this program have
        self.scope = Scope()
        self.lines: list[str] = []
        self.indent = 1
        self.functions: list[str] = []  # text of the functions beside the program
        self.helpers: list[Helper] = []
        self.left = 0  # lines that may still be written, about
        self.n_leaves = 0  # statements that leave a loop
        self._names = 0

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)
        self.left -= 1

    def fresh(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    @contextmanager
    def block(self, **changes: Any) -> Iterator[Scope]:
        """An indented block; names that are new in it end with it."""
        outer = self.scope
        self.scope = outer.inner(**changes)
        self.indent += 1
        try:
            yield self.scope
        finally:
            self.scope, self.indent = outer, self.indent - 1

    @contextmanager
    def function(self, header: str, scope: Scope) -> Iterator[Scope]:
        """A function at the level of the module."""
        outer = self.scope, self.lines, self.indent
        self.scope, self.lines, self.indent = scope, [header], 1
        try:
            yield scope
            self.functions.append("\n".join(self.lines))
        finally:
            self.scope, self.lines, self.indent = outer

    def production(self, table: Table[T], *args: Any) -> T | None:
        """What the first production gives that applies, of some drawn by weight."""
        for _ in range(TRIES):
            made = self.c.weighted(table)(self, *args)
            if made is not None:
                return made
        return None

    def coefficient(self, low: float = 0.2, high: float = 0.9) -> float:
        number = self.c.number(low, high)
        return -number if self.c.chance(0.25) else number


def fitted(expression: Bounded, limit: float) -> str:
    """The expression, made smaller if it can exceed ``limit``."""
    text, bound = expression
    if bound <= limit:
        return text
    return f"{int(1000 * limit / bound) / 1000 or limit / bound:.6g} * ({text})"
