"""What ckad makes its user wait for: the first gradient, compiling, a call of a tiny function.

Everything runs in fresh processes of programs/, with a kernel cache that this file made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tqdm import tqdm

from benchmarks.fit import exponent
from benchmarks.machine import heading
from benchmarks.report import describe, duration, table

PROGRAMS = Path(__file__).parent / "programs"
FIRST_GRADIENTS = ("lorenz63", "gray_scott")
MOMENTS = {
    "first use ever": "empty kernel cache",
    "never seen": "a new program, the package's kernels cached",
    "seen before": "the same program in another process",
}
ENGINES = ("vm", "native")


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    rounds: int = 5
    sizes: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000)
    calls: int = 2_000


TINY = Extent(rounds=1, sizes=(40, 80), calls=5)


def latency(extent: Extent, engine: str) -> dict[str, Any]:
    """The answer is what the JSON file holds; `engine` is that of the first gradients."""
    record = heading("latency") | {
        "engine": engine,
        "first_gradient": {},
        "compile": {},
        "call": {},
    }
    with TemporaryDirectory() as directory:
        for name in tqdm(FIRST_GRADIENTS, desc="first gradients", leave=False, disable=None):
            cache = Path(directory, name)
            record["first_gradient"][name] = first_gradients(name, cache, engine, extent.rounds)
        for known in known_engines():
            record["compile"][known] = compile_times(cache, known, extent)
            overhead = known, extent.rounds, extent.calls
            record["call"][known] = run_program("call_overhead", overhead, cache)
    return record


def known_engines() -> list[str]:
    import ckad

    known = []
    for engine in ENGINES:
        try:
            ckad.jit(abs, engine=engine)
        except ckad.errors.EngineError:
            continue
        known.append(engine)
    return known


def first_gradients(program: str, cache: Path, engine: str, rounds: int) -> dict[str, Any]:
    """One run with an empty cache; then new programs, and each of them again."""
    seed = new_number()
    found: dict[str, list[dict[str, Any]]] = {moment: [] for moment in MOMENTS}
    found["first use ever"].append(run_program(program, (seed, engine), cache))
    for k in range(1, rounds + 1):
        for moment in ("never seen", "seen before"):
            found[moment].append(run_program(program, (seed + k, engine), cache))
    return {moment: summarise(runs) for moment, runs in found.items()}


def summarise(runs: list[dict[str, Any]]) -> dict[str, Any]:
    keys = ("total_seconds", "import_seconds", "first_seconds", "second_seconds")
    said = next((run["said"] for run in runs if run["said"]), "")
    return {key: median(run[key] for run in runs) for key in keys} | {"said": said, "runs": runs}


def compile_times(cache: Path, engine: str, extent: Extent) -> dict[str, Any]:
    arguments = json.dumps(extent.sizes), engine, min(extent.rounds, 3), new_number()
    points = run_program("compile_ops", arguments, cache)["points"]
    sizes, seconds = [p["n_ops"] for p in points], [max(p["seconds"], 1e-9) for p in points]
    return {"points": points, "exponent": exponent(sizes, seconds)}


def new_number() -> int:
    """No program with this number in it was ever compiled."""
    return time.time_ns() // 1_000_000 % 10**6


def run_program(name: str, arguments: tuple[Any, ...], cache: Path) -> dict[str, Any]:
    """What the program printed; with the seconds from its start to its first gradient."""
    command = [sys.executable, str(PROGRAMS / f"{name}.py"), *map(str, arguments)]
    begin = time.time()
    finished = subprocess.run(command, env=environment(cache), capture_output=True, text=True)
    if finished.returncode:
        last = (finished.stderr.strip() or "nothing").splitlines()[-1]
        raise ValueError(f"programs/{name}.py failed; its last words: {last}")
    figures = json.loads(finished.stdout) | {"said": finished.stderr.strip()}
    if "finished" in figures:
        figures["total_seconds"] = figures.pop("finished") - begin
    return figures


def environment(cache: Path) -> dict[str, str]:
    import ckad

    # Without compiled modules on disk every import would compile the package's sources anew.
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"CKAD_CACHE_DIR": str(cache), "PYTHONPATH": str(Path(ckad.__file__).parents[1])}


# As Markdown -------------------------------------------------------------------------------------


def markdown(record: Mapping[str, Any]) -> str:
    parts = [describe(record), f"Engine of the first gradients: {record['engine']}."]
    parts.append(first_table(record["first_gradient"]))
    parts += [compile_table(engine, found) for engine, found in record["compile"].items()]
    calls = [(engine, duration(found["seconds"])) for engine, found in record["call"].items()]
    parts.append(table(("engine", "call of a gradient in 3 scalars"), calls))
    return "\n\n".join(parts) + "\n"


def first_table(found: Mapping[str, Any]) -> str:
    columns = ("program", "moment", "process start to gradient", "imports", "gradient", "next call")
    rows = [
        (
            program,
            f"{moment}: {MOMENTS[moment]}",
            duration(run["total_seconds"]),
            duration(run["import_seconds"]),
            duration(run["first_seconds"]),
            duration(run["second_seconds"]),
        )
        for program, moments in found.items()
        for moment, run in moments.items()
    ]
    return table(columns, rows)


def compile_table(engine: str, found: Mapping[str, Any]) -> str:
    rows = [
        (f"{p['n_ops']:,}", duration(p["seconds"]), duration(p["record_seconds"]))
        for p in found["points"]
    ]
    columns = ("scalar ops", "compile", "record")
    return f"**{engine}**: exponent {found['exponent']:.2f}.\n\n{table(columns, rows)}"
