"""A gradient that is killed again and again, and goes on where it was.

A worker computes the gradient of a reaction-diffusion run by its initial state, with ``resume=``.
It is killed by SIGKILL after a while, and started again until it is done. What it gives has the
bits of a run that nobody has killed.

    python examples/killed_run.py --steps 20000 --kills 3
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import ckad

CELLS = 4000
MEMORY = "4 MiB"


def front(u: np.ndarray, steps: int) -> float:
    """A Fisher-KPP front: what is left of the cells that it has not reached."""
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2]) + 0.01 * u[1:-1] * (1 - u[1:-1])
    return np.sum((1 - u) ** 2)


def initial() -> np.ndarray:
    return np.exp(-(((np.arange(CELLS) - 200.0) / 40.0) ** 2))


def gradient(steps: int, resume: Path | None = None) -> np.ndarray:
    return ckad.grad(front, memory=MEMORY, resume=resume)(initial(), steps)


def killed(steps: int, kills: int, seconds: float, folder: Path) -> tuple[np.ndarray, int]:
    """The gradient by workers that are killed after so many seconds; and how many were."""
    found = folder / "gradient.npy"
    worker = [sys.executable, __file__, "--steps", str(steps), "--worker", str(folder)]
    for k in range(kills):
        process = subprocess.Popen(worker)
        try:
            process.wait(timeout=(k + 1) * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if found.exists():
            return np.load(found), k
    subprocess.run(worker, check=True)
    return np.load(found), kills


def main(arguments: list[str] | None = None) -> bool:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="before the first kill")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker is not None:
        np.save(options.worker / "gradient.npy", gradient(options.steps, options.worker / "run"))
        return True
    start = time.perf_counter()
    whole = gradient(options.steps)
    print(f"without a kill: {time.perf_counter() - start:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        found, kills = killed(options.steps, options.kills, options.seconds, Path(folder))
        print(f"killed {kills} times: {time.perf_counter() - start:.1f} s")
    same = bool(np.array_equal(found, whole))
    print("the bits are the same" if same else "the bits differ")
    return same


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
