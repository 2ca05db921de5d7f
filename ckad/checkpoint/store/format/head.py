"""The head of a file: magic, version, checksum, and JSON of limited size.

    8 bytes   magic
    4         version of the format
    4         bytes of JSON
    8         checksum of the whole head, taken with zeros here
    40        zeros
    ...       JSON, then zeros up to a multiple of 512 bytes

Numbers are little endian. Nothing is evaluated: JSON holds strings, integers, and lists and objects
of them.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NoReturn

from ckad.checkpoint.store.format.checksum import checksum
from ckad.errors import CheckpointError

MAGIC = b"\x89ckad\r\n\x1a"  # what a transfer as text would change is in it
VERSION = 1
UNIT = 512  # bytes; heads have a multiple of it
LARGEST = 64 * 1024  # bytes of a head
PREAMBLE = struct.Struct("<8sIIQ40x")
_CHECKSUM = slice(16, 24)
_JSON = json.JSONEncoder(separators=(",", ":"), sort_keys=True)

Fields = dict[str, Any]


def encode(fields: Fields) -> bytes:
    """A head. CheckpointError if it is larger than ``LARGEST``."""
    text = _JSON.encode(fields).encode()
    size = head_bytes(len(text))
    if size > LARGEST:
        raise CheckpointError(
            f"a head of {size:,} bytes is above the {LARGEST:,} that the format allows; pass "
            "shorter strings, or put them into a block."
        )
    head = bytearray(size)
    PREAMBLE.pack_into(head, 0, MAGIC, VERSION, len(text), 0)
    head[PREAMBLE.size : PREAMBLE.size + len(text)] = text
    head[_CHECKSUM] = checksum(memoryview(head), 0).to_bytes(8, "little")
    return bytes(head)


def head_bytes(n_text: int) -> int:
    return -(-(PREAMBLE.size + n_text) // UNIT) * UNIT


def announced_bytes(start: bytes, path: str) -> int:
    """How long a head is by its first ``PREAMBLE.size`` bytes, which are checked."""
    if len(start) < PREAMBLE.size:
        _damaged(path, f"it ends after {len(start)} bytes")
    magic, version, n_text, _ = PREAMBLE.unpack_from(start)
    if magic != MAGIC:
        _damaged(path, "it does not begin as ckad's files do")
    if version != VERSION:
        raise CheckpointError(
            f"{path} has version {version} of the format, and this ckad reads version {VERSION}; "
            "use the ckad that wrote it, or remove it.",
            path,
        )
    if head_bytes(n_text) > LARGEST:
        _damaged(path, f"its head of {n_text:,} bytes is above {LARGEST:,}")
    return head_bytes(n_text)


def decode(head: bytes, path: str) -> Fields:
    """What a head says. CheckpointError if it is not what was written."""
    if announced_bytes(head, path) != len(head):
        _damaged(path, f"it ends after {len(head)} bytes, within its head")
    bare = bytearray(head)
    bare[_CHECKSUM] = bytes(8)
    if checksum(memoryview(bare), 0).to_bytes(8, "little") != head[_CHECKSUM]:
        _damaged(path, "its head does not match its checksum")
    n_text = PREAMBLE.unpack_from(head)[2]
    try:
        fields = json.loads(head[PREAMBLE.size : PREAMBLE.size + n_text])
    except (ValueError, RecursionError) as error:
        _damaged(path, f"its head is not JSON ({error})")
    if not isinstance(fields, dict):
        _damaged(path, "its head is not an object of JSON")
    return fields


def _damaged(path: str, fact: str) -> NoReturn:
    raise CheckpointError(f"{path} is damaged: {fact}.", path)
