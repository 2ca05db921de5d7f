"""Random choices that a seed fixes: the same ones with every version of Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Made of ``random()`` alone, the one method whose sequence Python promises to keep."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def chance(self, p: float) -> bool:
        return self._random() < p

    def below(self, n: int) -> int:
        """One of 0 ... n - 1."""
        return int(self._random() * n)

    def between(self, low: int, high: int) -> int:
        """One of low ... high."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[tuple[float, T]]) -> T:
        left = self._random() * sum(weight for weight, _ in items)
        for weight, item in items:
            left -= weight
            if left < 0:
                return item
        return items[-1][1]

    def some(self, items: Sequence[T], n: int) -> list[T]:
        """``n`` different items, in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(min(n, len(left)))]

    def number(self, low: float, high: float) -> float:
        """Of few digits, and odd enough that no two of a program's numbers meet by chance."""
        return round(low + (high - low) * self._random(), 3)
