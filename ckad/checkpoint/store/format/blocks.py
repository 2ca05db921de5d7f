"""A block in a file: its frame, its bytes, and zeros up to the alignment.

    8 bytes   checksum of the bytes that follow the frame
    4         bytes of the block in memory
    4         bytes of it in the file, without the zeros after them
    4         number of the codec, 0 for none
    44        zeros

The checksum is bound, by its seed, to the run, the step, the slot, the place in the file and the
rest of the frame: bytes that are sound elsewhere are not sound here.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, NoReturn

from ckad.checkpoint.store.files import read_all, write_all
from ckad.checkpoint.store.format.checksum import checksum_of, seed_of
from ckad.checkpoint.store.format.codecs import Codec
from ckad.checkpoint.store.format.layout import FRAME, padded
from ckad.checkpoint.store.interrupts import answer
from ckad.errors import CheckpointError

_FRAME = struct.Struct("<QIII44x")
_ZEROS = bytes(FRAME)


class Place(NamedTuple):
    """What a file belongs to; slot and step are -1 in a journal."""

    run: str
    kind: str
    sequence: int
    slot: int = -1
    step: int = -1


def write_block(
    opened: int, place: Place, index: int, block: memoryview, codec: Codec, itemsize: int = 8
) -> None:
    answer()
    stored, number = codec.encode(block, itemsize), codec.number
    if stored.nbytes >= block.nbytes:
        stored, number = block, 0
    sizes = (block.nbytes, stored.nbytes, number)
    total = checksum_of(stored, seed_of(*place, index, *sizes))
    write_all(opened, [_FRAME.pack(total, *sizes), stored, _zeros_after(stored.nbytes)])


def read_block(
    opened: int, place: Place, index: int, into: memoryview, codec: Codec, path: str
) -> None:
    """Fill ``into``; CheckpointError if that is not what was written for this place."""
    answer()
    frame = bytearray(FRAME)
    read_all(opened, [frame], path)
    total, *sizes = _FRAME.unpack(frame)
    n_bytes, n_stored, number = sizes
    encoded = number == codec.number and n_stored < n_bytes
    if n_bytes != into.nbytes or not (encoded or (number == 0 and n_stored == n_bytes)):
        _damaged(path, index, f"its frame says {n_stored:,} of {n_bytes:,} bytes")
    stored = memoryview(bytearray(n_stored)) if number else into
    zeros = bytearray(padded(n_stored) - n_stored)
    read_all(opened, [stored, zeros], path)
    if any(zeros) or frame[_FRAME.size - 44 :] != _ZEROS[:44]:
        _damaged(path, index, "there is something where zeros were written")
    if checksum_of(stored, seed_of(*place, index, *sizes)) != total:
        _damaged(path, index, "it does not match its checksum, or belongs elsewhere")
    if number:
        try:
            codec.decode(stored, into)
        except (ValueError, RuntimeError) as error:
            _damaged(path, index, f"it is not decoded ({error})")


def _zeros_after(n_bytes: int) -> bytes:
    return _ZEROS[: padded(n_bytes) - n_bytes]


def _damaged(path: str, index: int, fact: str) -> NoReturn:
    raise CheckpointError(f"{path} is damaged in block {index}: {fact}.", path)
