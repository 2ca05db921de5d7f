"""What a program's text may name where the next statement stands."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

Shape = tuple[int, ...]
#: Every number of a program stays within this, so that a few hundred steps do not grow.
LIMIT = 2.0
#: Steps of all loops around a statement.
MOST_STEPS = 300


class Bounded(NamedTuple):
    """An expression and a bound of its magnitude."""

    text: str
    bound: float


class Helper(NamedTuple):
    """A function beside the program; a result of None means that it writes into its argument."""

    name: str
    arrays: tuple[Shape, ...]  # of its first parameters; one float comes after them
    result: Shape | None
    steps: int


@dataclass
class Scope:
    """Names with what is known of them; a block has a copy, whose new names end with it."""

    arrays: dict[str, Shape] = field(default_factory=dict)
    floats: list[str] = field(default_factory=list)
    integers: dict[str, tuple[int, int]] = field(default_factory=dict)  # least, largest
    functions: list[Helper] = field(default_factory=list)  # nested ones
    kept: frozenset[str] = frozenset()  # what no statement may bind: counters of loops
    steps: int = 1
    depth: int = 0
    loop: str = ""  # "for" or "while", of the innermost loop
    returns: tuple[Shape, ...] | None = ((),)  # shapes of results; None: it returns at its end

    def inner(self, **changes: object) -> Scope:
        return replace(
            self,
            arrays=dict(self.arrays),
            floats=list(self.floats),
            integers=dict(self.integers),
            functions=list(self.functions),
            **changes,  # type: ignore[arg-type]
        )

    def take(self, inner: Scope) -> None:
        """The names that a block has bound are those of the block around it."""
        self.arrays.update(inner.arrays)
        self.integers.update(inner.integers)
        self.floats += [name for name in inner.floats if name not in self.floats]

    def of_shape(self, shape: Shape) -> list[str]:
        return [name for name, found in self.arrays.items() if found == shape]

    def of_axes(self, n: int) -> list[str]:
        return [name for name, shape in self.arrays.items() if len(shape) == n]

    @property
    def bindable_floats(self) -> list[str]:
        return [name for name in self.floats if name not in self.kept]
