"""``python -m tests.generated``: many random programs, and a summary."""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

from .generate import generated
from .judge import FAILED, INVALID
from .program import runnable
from .run import Hunt
from .worker import Worker


def main() -> int:
    options = parsed()
    if options.program is not None:
        return one(options.program)
    count = itertools.count(options.seed)
    seeds = itertools.islice(count, options.programs) if options.programs else count
    report = Hunt(iter(seeds), options.programs, options.seconds, options.out).run(
        options.processes
    )
    print(report)
    return 1 if report.failures else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.generated", description=__doc__)
    parser.add_argument("--programs", type=int, help="how many; without end if not given")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="stop after so many")
    parser.add_argument("--out", type=Path, help="failures are appended to this file")
    parser.add_argument("--program", type=int, metavar="SEED", help="show and judge one program")
    options = parser.parse_args()
    if options.programs is None and options.seconds is None:
        options.programs = 1000
    return options


def one(seed: int) -> int:
    program = generated(seed)
    print(runnable(program))
    worker = Worker()
    verdict, seconds = worker.judge(program)
    worker.stop()
    print(f"short={program.short}, level={program.level}: {verdict}, {seconds:.2f} s")
    return 1 if verdict.outcome in (FAILED, INVALID) else 0


if __name__ == "__main__":
    sys.exit(main())
