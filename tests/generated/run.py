"""Many programs, judged by several processes; failures are shrunk as they are found."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from .generate import generated
from .judge import FAILED, INVALID, LONG, LOOSE, REFUSED, RIGHT, Verdict
from .program import Program, runnable
from .shrink import alike, shrunk
from .worker import Worker

#: Failures that look alike are shrunk so many times.
SHRUNK = 3


@dataclass
class Report:
    """What became of the programs."""

    outcomes: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)  # by oracle
    seeds: dict[str, list[int]] = field(default_factory=dict)  # of failures, by oracle
    seconds: float = 0.0  # of the processor
    start: float = field(default_factory=time.monotonic)

    def add(self, seed: int, verdict: Verdict, seconds: float) -> None:
        self.outcomes[verdict.outcome] += 1
        self.seconds += seconds
        if verdict.outcome == REFUSED:
            self.refusals[verdict.oracle] += 1
        elif verdict.outcome in (FAILED, INVALID):
            self.failures[verdict.oracle] += 1
            self.seeds.setdefault(verdict.oracle, []).append(seed)

    @property
    def n(self) -> int:
        return sum(self.outcomes.values())

    def __str__(self) -> str:
        n = max(self.n, 1)
        clock = time.monotonic() - self.start
        lines = [
            f"{self.n:,} programs in {clock:,.0f} s ({self.n / clock:.2f} per s; "
            f"{self.seconds / n:.3f} s of the processor each)",
            *(_line(name, self.outcomes[name], n) for name in (RIGHT, LOOSE, LONG, REFUSED)),
            *("  " + _line(kind, count, n) for kind, count in self.refusals.most_common()),
            _line(FAILED, self.outcomes[FAILED] + self.outcomes[INVALID], n),
        ]
        for oracle, count in self.failures.most_common():
            seeds = ", ".join(map(str, self.seeds[oracle][:8]))
            lines.append("  " + _line(oracle, count, n) + f"  seeds {seeds}")
        return "\n".join(lines)


def _line(name: str, count: int, n: int) -> str:
    return f"{name}: {count:,} ({100 * count / n:.2f} %)"


class Hunt:
    """Workers that take seeds until there are no more, or the time is up."""

    def __init__(
        self, seeds: Iterator[int], total: int | None, seconds: float | None, out: Path | None
    ) -> None:
        self.seeds, self.out = seeds, out
        self.report, self.seen = Report(), Counter[object]()
        self.end = time.monotonic() + seconds if seconds else None
        self.bar = tqdm(total=total, unit="program", smoothing=0.05)
        self._lock = threading.Lock()

    def run(self, processes: int) -> Report:
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.bar.close()
        return self.report

    def _work(self) -> None:
        worker = Worker()
        while (seed := self._next()) is not None:
            program = generated(seed)
            verdict, seconds = worker.judge(program)
            with self._lock:
                self.report.add(seed, verdict, seconds)
                self.bar.update()
                self.bar.set_postfix_str(f"{self.report.outcomes[FAILED]} failed")
            if verdict.outcome in (FAILED, INVALID):
                self._failed(worker, program, verdict)
        worker.stop()

    def _next(self) -> int | None:
        with self._lock:
            if self.end and time.monotonic() > self.end:
                return None
            return next(self.seeds, None)

    def _failed(self, worker: Worker, program: Program, verdict: Verdict) -> None:
        with self._lock:
            self.seen[alike(verdict)] += 1
            known = self.seen[alike(verdict)] > SHRUNK
        if known:
            return self._say(f"seed {program.seed}: {verdict.oracle}: {verdict.message[:200]}")
        small, found = program, verdict
        if verdict.outcome == FAILED:
            small, found = shrunk(program, verdict, lambda p, stage: worker.judge(p, stage)[0])
        comment = f"seed {program.seed}: {found.oracle}\n{found.message}"
        settings = f"settings: short={small.short}, level={small.level}, shapes={small.shapes}"
        text = runnable(small, f"{comment}\n{settings}")
        self._say(text)
        if self.out is not None:
            with self._lock, self.out.open("a") as file:
                file.write(text + "\n\n")

    def _say(self, text: str) -> None:
        with self._lock:
            self.bar.write(text)
