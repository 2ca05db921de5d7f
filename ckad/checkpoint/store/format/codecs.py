"""How a block is encoded: as it is, rounded to float32, or compressed without loss."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import CheckpointError


class Rounding(NamedTuple):
    """What a lossy codec has changed so far.

    Both numbers are the largest of any block: ‖x - x̃‖₂ / ‖x‖₂, and |x - x̃| of one element.
    """

    relative: float = 0.0
    absolute: float = 0.0


class Codec(NamedTuple):
    """One way to encode a block; ``number`` stands for it in files."""

    number: int
    encode: Callable[[memoryview, int], memoryview]  # of a block and its elements' size
    decode: Callable[[memoryview, memoryview], None]  # into the second


class Tally:
    """The rounding of one store, noted by its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.rounding = Rounding()

    def note(self, exact: np.ndarray, rounded: np.ndarray) -> None:
        error = np.abs(exact - rounded)
        error = error[np.isfinite(error)]  # NaN and infinity are kept as they are
        largest = float(error.max(initial=0.0))
        if largest == 0.0:
            return
        # scaled, so that squares neither overflow nor vanish
        finite = np.abs(exact[np.isfinite(exact)])
        scale = float(finite.max())
        relative = float(np.linalg.norm(error / scale) / np.linalg.norm(finite / scale))
        with self._lock:
            before = self.rounding
            self.rounding = Rounding(max(before.relative, relative), max(before.absolute, largest))


def codec(name: str | None, tally: Tally) -> Codec:
    """The codec of a name. CheckpointError if there is none, or its package is not installed."""
    match name:
        case None:
            return Codec(0, lambda block, _: block, _copy)
        case "float32":
            return Codec(1, lambda block, _: _rounded(block, tally), _widened)
        case "zstd":
            return _zstd()
    raise CheckpointError(f"codec={name!r} is not one of None, {', '.join(map(repr, CODECS))}.")


CODECS = ("float32", "zstd")


def _copy(stored: memoryview, into: memoryview) -> None:
    into[:] = stored


def _rounded(block: memoryview, tally: Tally) -> memoryview:
    exact = np.frombuffer(block, np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        rounded = exact.astype(np.float32)
        lost = np.isinf(rounded) & ~np.isinf(exact)
        if lost.any():
            raise CheckpointError(
                f'codec="float32" cannot keep {exact[lost][0]:.3g}, which is above the largest '
                f'float32, {np.finfo(np.float32).max:.3g}; take codec="zstd" or None.'
            )
        tally.note(exact, rounded)
    return rounded.data.cast("B")


def _widened(stored: memoryview, into: memoryview) -> None:
    np.frombuffer(into, np.float64)[:] = np.frombuffer(stored, np.float32)


def _zstd() -> Codec:
    blosc2 = _blosc2()
    settings = {
        "codec": blosc2.Codec.ZSTD,
        "clevel": 1,
        "filters": [blosc2.Filter.SHUFFLE],
        "nthreads": 1,
    }

    def encode(block: memoryview, itemsize: int) -> memoryview:
        return memoryview(blosc2.compress2(block, typesize=itemsize, **settings))

    def decode(stored: memoryview, into: memoryview) -> None:
        n_bytes, n_stored, _ = blosc2.get_cbuffer_sizes(stored)
        if (n_bytes, n_stored) != (into.nbytes, stored.nbytes):
            raise ValueError(f"it would become {n_bytes:,} bytes instead of {into.nbytes:,}")
        blosc2.decompress2(stored, dst=into, nthreads=1)

    return Codec(2, encode, decode)


def _blosc2() -> Any:
    try:
        import blosc2
    except ImportError as error:
        raise CheckpointError(
            'codec="zstd" needs the package blosc2, which is not installed; '
            "`pip install 'ckad[zstd]'`, or take codec=None."
        ) from error
    return blosc2
