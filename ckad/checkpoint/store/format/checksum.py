"""XXH64 of aligned bytes: fast enough that disks, not checksums, set the pace.

Y. Collet, xxHash fast digest algorithm, https://github.com/Cyan4973/xxHash (the 64-bit variant). It
is no signature: files lie where only their owner writes. It finds what decays, and, by its seed,
bytes that are sound but belong to another place.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from ckad.kernel import kernel

ALIGNMENT = 64  # bytes; what is summed has a multiple of it

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)


def checksum(data: memoryview, seed: int) -> int:
    """The 64-bit checksum of bytes, a multiple of ``ALIGNMENT`` of them."""
    words = np.frombuffer(data, np.uint64)
    if not words.flags.aligned:
        words = words.copy()
    words.flags.writeable = False  # one type of array, so that the kernel is compiled once
    with np.errstate(over="ignore"):  # as plain Python, for coverage
        return int(_xxh64(words, np.uint64(seed)))


def checksum_of(data: memoryview, seed: int) -> int:
    """The same of any number of bytes, as if zeros followed them."""
    whole = data.nbytes // ALIGNMENT * ALIGNMENT
    total = checksum(data[:whole], seed)
    if whole == data.nbytes:
        return total
    return checksum(memoryview(bytes(data[whole:]).ljust(ALIGNMENT, b"\0")), total)


def seed_of(*place: int | str) -> int:
    """64 bits that stand for a place, so that bytes are sound there and nowhere else."""
    text = "\0".join(map(str, place)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, person=b"ckad-seed").digest())


@kernel
def _rotated(x: np.uint64, n: int) -> np.uint64:
    return (x << np.uint64(n)) | (x >> np.uint64(64 - n))


@kernel
def _xxh64(words: NDArray[np.uint64], seed: np.uint64) -> np.uint64:
    a, b = seed + _P1 + _P2, seed + _P2
    c, d = seed, seed - _P1
    for k in range(0, words.size, 4):
        a = _rotated(a + words[k] * _P2, 31) * _P1
        b = _rotated(b + words[k + 1] * _P2, 31) * _P1
        c = _rotated(c + words[k + 2] * _P2, 31) * _P1
        d = _rotated(d + words[k + 3] * _P2, 31) * _P1
    total = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
    for lane in (a, b, c, d):
        total = (total ^ (_rotated(lane * _P2, 31) * _P1)) * _P1 + _P4
    total += np.uint64(words.size * 8)
    total = (total ^ (total >> np.uint64(33))) * _P2
    total = (total ^ (total >> np.uint64(29))) * _P3
    return total ^ (total >> np.uint64(32))
