"""The machine and the versions that a figure was measured with; no names and no paths."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.peers import PEERS, found_program


def heading(kind: str, peers: Iterable[str] = ("ckad",)) -> dict[str, Any]:
    """What every report begins with."""
    return {"kind": kind, "machine": describe_machine(), "versions": versions(peers)}


def describe_machine() -> dict[str, str | int]:
    return {
        "cpu": cpu_model(),
        "architecture": platform.machine(),
        "cores": usable_cores(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown")


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # absent outside Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def versions(peers: Iterable[str]) -> dict[str, str]:
    chosen = [PEERS[peer] for peer in peers]
    names = {"numpy"}.union(*(peer.distributions for peer in chosen))
    found = {name: installed_version(name) for name in sorted(names)}
    for program in filter(None, (found_program(peer.programs) for peer in chosen)):
        found["C compiler"] = program_version(program)
    return found


def installed_version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "source tree"


def program_version(program: str) -> str:
    """The first line of `--version`, without the path that some programs begin it with."""
    answer = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return Path(answer.splitlines()[0]).name if answer else "unknown"
