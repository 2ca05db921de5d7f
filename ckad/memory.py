"""Bytes: reading what users write, showing them, and how many are free."""

from __future__ import annotations

import re
from pathlib import Path

from ckad.errors import BudgetError

_UNITS = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip


def parse_bytes(amount: int | str) -> int:
    """Bytes from an int or from text such as ``"64 MiB"``, ``"50 MB"``, ``"1.5GiB"``.

    Raises BudgetError for anything else, and for amounts that are not positive.

    >>> parse_bytes("64 MiB")
    67108864
    """
    if isinstance(amount, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", amount)
        if match is None or match[2].lower() not in _UNITS:
            raise BudgetError(
                f"memory={amount!r} is not an amount of memory; write bytes as an int, or text "
                'such as "64 MiB" or "50 MB".'
            )
        n = int(float(match[1]) * _UNITS[match[2].lower()])
    elif isinstance(amount, int) and not isinstance(amount, bool):
        n = amount
    else:
        raise BudgetError(
            f"memory={amount!r} is a {type(amount).__name__}; write bytes as an int, or text such "
            'as "64 MiB".'
        )
    if n <= 0:
        raise BudgetError(f"memory={amount!r} leaves no memory at all; give a positive amount.")
    return n


def format_bytes(n: int) -> str:
    """Bytes for people: ``format_bytes(67108864)`` is ``'64.0 MiB'``."""
    size = float(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def free_memory() -> int:
    """Bytes that this process may still allocate: the machine's, or less by its cgroup's limit."""
    limits = [_available(), *_cgroup_room()]
    return max(0, min(limits))


def _available() -> int:
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return 4 * 2**30  # no such file on this system: a cautious guess
    match = re.search(r"MemAvailable:\s+(\d+) kB", text)
    return int(match[1]) * 1024 if match else 4 * 2**30


def _cgroup_room() -> list[int]:
    """Limit minus use of the process's cgroups (v2, and v1's memory controller)."""
    pairs = []
    for folder in _cgroup_folders():
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            try:
                pairs.append(int((folder / limit).read_text()) - int((folder / used).read_text()))
            except (OSError, ValueError):
                continue  # no such controller, or "max"
    return pairs


def _cgroup_folders() -> list[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        root = Path("/sys/fs/cgroup") / ("memory" if "memory" in controllers else "")
        folder = root / path.lstrip("/")
        folders += [folder, *[p for p in folder.parents if p.is_relative_to(root)]]
    return folders
