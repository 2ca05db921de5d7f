"""The machine and the versions that a figure was measured with; no names and no paths."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.peers import PEERS


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
    names = {"numpy"}.union(*(PEERS[peer].distributions for peer in peers))
    return {name: installed_version(name) for name in sorted(names)}


def installed_version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "source tree"
