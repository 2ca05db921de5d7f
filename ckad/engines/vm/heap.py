"""Where values lie: a heap of cells, and regions that rows share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Region:
    """Cells that hold a value.

    ``users`` counts the rows that name it and are still to be read, ``holds`` the loops that own
    it whether or not a row does. The cells are free when both are zero; a constant's never are.
    """

    offset: int
    size: int
    writable: bool = True
    users: int = 0
    holds: int = 0


class Heap:
    """First-fit allocation of cells; remembers the largest extent."""

    def __init__(self, start: int) -> None:
        self.free: list[tuple[int, int]] = []  # (offset, size), sorted, not adjacent
        self.end = start
        self.peak = start

    def allocate(self, size: int) -> int:
        for k, (offset, room) in enumerate(self.free):
            if room >= size:
                if room == size:
                    del self.free[k]
                else:
                    self.free[k] = (offset + size, room - size)
                return offset
        return self._extend(size)

    def _extend(self, size: int) -> int:
        offset = self.end
        if self.free and sum(self.free[-1]) == self.end:
            offset, _ = self.free.pop()
        self.end = offset + size
        self.peak = max(self.peak, self.end)
        return offset

    def release(self, offset: int, size: int) -> None:
        if not size:
            return
        k = next((k for k, (o, _) in enumerate(self.free) if o > offset), len(self.free))
        self.free.insert(k, (offset, size))
        if k + 1 < len(self.free) and offset + size == self.free[k + 1][0]:
            self.free[k] = (offset, size + self.free.pop(k + 1)[1])
        if k and sum(self.free[k - 1]) == self.free[k][0]:
            o, s = self.free[k - 1]
            self.free[k - 1] = (o, s + self.free.pop(k)[1])
