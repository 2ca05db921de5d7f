"""Bytes: reading what users write, showing them, and how many are free."""

from __future__ import annotations

import re
from decimal import Decimal
from numbers import Integral
from pathlib import Path

from ckad.errors import BudgetError

_UNITS = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip

MEMINFO = Path("/proc/meminfo")
CGROUPS = Path("/sys/fs/cgroup")
CGROUPS_OF_PROCESS = Path("/proc/self/cgroup")
#: Bytes taken for free on a system that does not say.
GUESS = 4 * 2**30
#: Limit, use, and the line of memory.stat that counts cached files: version 2, and version 1.
_CGROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def parse_bytes(amount: object, name: str = "memory") -> int:
    """Bytes from an int or from text such as ``"64 MiB"``, ``"50 MB"``, ``"1.5GiB"``.

    Raises BudgetError, which names the argument ``name``, for anything else, and for amounts that
    are not positive.

    >>> parse_bytes("64 MiB")
    67108864
    """
    if isinstance(amount, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", amount)
        if match is None or match[2].lower() not in _UNITS:
            raise BudgetError(
                f"{name}={amount!r} is not an amount of {name}; write bytes as an int, or text "
                'such as "64 MiB" or "50 MB".'
            )
        n = int(Decimal(match[1]) * _UNITS[match[2].lower()])
    elif isinstance(amount, bool) or not isinstance(amount, Integral):
        raise BudgetError(
            f"{name}={amount!r} is a {type(amount).__name__}; write bytes as an int, or text such "
            'as "64 MiB".'
        )
    else:
        n = int(amount)
    if n <= 0:
        raise BudgetError(f"{name}={amount!r} leaves no {name} at all; give a positive amount.")
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
    found = _first(MEMINFO, r"MemAvailable:\s+(\d+) kB")
    return GUESS if found is None else found * 1024


def _first(file: Path, pattern: str) -> int | None:
    """The number that ``pattern`` captures in a text file, if both are there."""
    try:
        match = re.search(pattern, file.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) if match else None


def _cgroup_room() -> list[int]:
    """What the process's cgroups, and those around them, leave below their limits."""
    rooms = []
    for folder in _cgroup_folders():
        for limit, used, cached in _CGROUP_FILES:
            most = _first(folder / limit, r"^(\d+)$")
            now = None if most is None else _first(folder / used, r"^(\d+)$")
            if most is not None and now is not None:
                # Files kept in memory count as used, but go as soon as a program asks for more.
                reclaimable = _first(folder / "memory.stat", rf"^{cached} (\d+)$") or 0
                rooms.append(most - now + reclaimable)
    return rooms


def _cgroup_folders() -> list[Path]:
    try:
        lines = CGROUPS_OF_PROCESS.read_text().splitlines()
    except OSError:
        return []
    folders: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue  # a hierarchy of version 1 that limits something else
        root = CGROUPS / "memory" if controllers else CGROUPS
        folder = root / path.lstrip("/")
        folders += [p for p in (folder, *folder.parents) if p.is_relative_to(root)]
    return folders
