"""Where values lie: a heap of cells of eight bytes."""

from __future__ import annotations

from bisect import bisect

from ckad.memory import format_bytes

#: Regions of at least this many cells begin at a cache line.
LINE = 8
#: Cells taken at once for the smaller ones.
CHUNK = 32 * LINE


class Heap:
    """First-fit allocation of cells; remembers the largest extent.

    Small regions are packed into chunks of their own, so that large ones stay aligned.
    """

    def __init__(self) -> None:
        self.large = _FreeList()
        self.small = _FreeList()
        self.peak = 0

    def allocate(self, size: int) -> int:
        if size >= LINE:
            return self._lines(size)
        offset = self.small.take(size)
        if offset is None:
            self.small.give(self._lines(CHUNK), CHUNK)
            offset = self.small.take(size)
            assert offset is not None
        return offset

    def release(self, offset: int, size: int) -> None:
        if size >= LINE:
            self.large.give(offset, -(-size // LINE) * LINE)
        elif size:
            self.small.give(offset, size)

    def _lines(self, size: int) -> int:
        size = -(-size // LINE) * LINE
        offset = self.large.take(size)
        if offset is None:
            offset = self.large.take_end(self.peak)
            self.peak = offset + size
        return offset


class _FreeList:
    """Free ranges (offset, size), sorted, none adjacent to the next."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []

    def take(self, size: int) -> int | None:
        for k, (offset, room) in enumerate(self.ranges):
            if room >= size:
                self.ranges[k : k + 1] = [(offset + size, room - size)] if room > size else []
                return offset
        return None

    def take_end(self, end: int) -> int:
        """Where an allocation at ``end`` begins: a free range that reaches it is used up first."""
        if self.ranges and sum(self.ranges[-1]) == end:
            return self.ranges.pop()[0]
        return end

    def give(self, offset: int, size: int) -> None:
        k = bisect(self.ranges, (offset, size))
        if k < len(self.ranges) and offset + size == self.ranges[k][0]:
            size += self.ranges.pop(k)[1]
        if k and sum(self.ranges[k - 1]) == offset:
            before = self.ranges.pop(k - 1)
            offset, size, k = before[0], before[1] + size, k - 1
        self.ranges.insert(k, (offset, size))


def too_much(nbytes: int) -> str:
    """The words of a MemoryError."""
    return (
        f"the program needs {format_bytes(nbytes)} at once, more than there are. Make its arrays "
        "smaller, or give a gradient a budget with memory=."
    )
