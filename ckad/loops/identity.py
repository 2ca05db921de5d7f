"""What must not have changed between a run and the one that goes on with it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import version

import numpy as np

from ckad.checkpoint.schedules.schedule import Schedule
from ckad.tape.tape import Tape

#: Versions that decide the bits of a result.
VERSIONS = ("ckad", "numpy", "numba", "llvmlite", "scipy")


def run_key(
    tape: Tape, engine: str, schedule: Schedule, inputs: Sequence[np.ndarray]
) -> dict[str, str]:
    """By name, in the words of a message that says what differs."""
    found = {f"version of {name}": version(name) for name in VERSIONS}
    found["processor"] = platform.machine()
    found["engine"] = engine
    found["types of the arguments"] = ", ".join(map(str, tape.input_types))[:200]
    found["function"] = tape.digest.hex()
    for k, x in enumerate(inputs):
        found[f"argument array {k}"] = _digest(x)
    found["schedule"] = f"{schedule}, on disk {schedule.n_disk_slots}"
    return found


def _digest(x: np.ndarray) -> str:
    return blake2b(np.ascontiguousarray(x).data if x.size else b"", digest_size=16).hexdigest()
