"""What runs a call's arguments again later finds them as they were, or says so.

A pullback is that at the numbers of then. Arrays are the caller's own, and may be written into
meanwhile; copies of them would take memory that no budget has, so they are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.checkpoint.store.format.checksum import checksum_of
from ckad.errors import DifferentiationError

#: Bytes up to which an array is kept itself, which takes no longer than its checksum.
KEPT = 1 << 14


def unchanged(name: str, arrays: Sequence[Any]) -> Callable[[], None]:
    """What raises DifferentiationError if an array does not hold what it holds now.

    Arrays in files are not read for that.
    """
    own = [x for x in arrays if isinstance(x, np.ndarray) and not isinstance(x, np.memmap)]
    before = [_contents(x) for x in own]

    def check() -> None:
        for x, contents in zip(own, before, strict=True):
            if _contents(x) != contents:
                raise DifferentiationError.here(
                    f"an array {x.dtype}{list(x.shape)} that was given to {name} has been "
                    "written into since; its derivative is that at the numbers of then. Make "
                    "another one of the numbers of now, or give a copy: x.copy()."
                )

    return check


def _contents(x: np.ndarray) -> bytes | int:
    if x.nbytes <= KEPT:
        return x.tobytes()
    return checksum_of(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data, 0)
