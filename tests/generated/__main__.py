"""``python -m tests.generated``: many random programs, and a summary."""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

from .generate import generated
from .judge import FAILED, INVALID, judge
from .program import runnable
from .run import Hunt
from .worker import Worker

#: Programs of the usual run of the tests.
USUAL = 200


def main() -> int:
    options = parsed()
    if options.program is not None:
        return one(options.program)
    if options.planted:
        return find_planted()
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
    parser.add_argument(
        "--planted", action="store_true", help="which program finds each fault of faults.py first"
    )
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


def find_planted() -> int:
    """What ``seed`` of each fault has to be when the generator makes other programs."""
    from .faults import FAULTS, planted

    missing = 0
    for what in FAULTS:
        for seed in range(USUAL):
            with planted(what):
                verdict = judge(generated(seed))
            if verdict.outcome == FAILED:
                print(f"{seed:4d}  {what}: {verdict.oracle}", flush=True)
                break
        else:
            missing += 1
            print(f"none  {what}", flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
