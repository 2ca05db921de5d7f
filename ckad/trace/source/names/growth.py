"""By how much a body makes a list longer."""

from __future__ import annotations


class Growth:
    """By how much a list has grown: at most now, and at most meanwhile; what was appended."""

    def __init__(self) -> None:
        self.now = self.peak = self.pushed = 0.0
        self.is_monotonic = True  # whether nothing is taken away

    def add(self, now: float, peak: float, pushed: float) -> None:
        self.peak = max(self.peak, self.now + peak)
        self.now += now
        self.pushed += pushed
        self.is_monotonic &= now >= 0
