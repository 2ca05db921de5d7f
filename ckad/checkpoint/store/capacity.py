"""What a limit in bytes holds, before anything is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckad.checkpoint.store.buffers import PAGE
from ckad.checkpoint.store.format.layout import BLOCK, CLUSTER, FRAME, Field, layout, padded
from ckad.checkpoint.store.format.records import MOST_SLOTS

RECORDS = 3  # files of progress records at a time: two, and one that is being written
HEAD = 8 * 1024  # bytes of a record beside its blocks and its table, with a long key
CODING = 6 * BLOCK  # bytes: one block that is encoded takes four, two that are decoded one each


class Capacity(NamedTuple):
    """What fits, and what the program's memory has to hold meanwhile."""

    n_slots: int
    n_files: int  # more of them than slots, if records have to outlive what replaces them
    file_bytes: int  # of one slot, as the file system gives them
    buffer_bytes: int


def capacity(
    limit: int,
    slot_bytes: int,
    *,
    durability: str = "scratch",
    codec: str | None = None,
    fields: Sequence[Field] = (),
    n_buffers: int = 3,
    journal_bytes: int = 0,
    replaced: int = 1,
) -> Capacity:
    """How many states of ``slot_bytes`` a store has room for within ``limit`` bytes of disk.

    ``replaced`` is how many slots are written anew between two journals: what they held stays on
    the disk so long, beside the slots.
    """
    how = layout(slot_bytes, codec, fields)
    file_bytes = padded(how.file_bytes, CLUSTER)
    n_files = max(0, limit - 2 * CLUSTER) // file_bytes
    if durability == "resume":
        table = 32 * min(n_files, MOST_SLOTS)
        record = HEAD + table + journal_bytes + FRAME * (journal_bytes // BLOCK + 2)
        n_files = max(0, limit - 2 * CLUSTER - RECORDS * padded(record, CLUSTER)) // file_bytes
        n_slots = n_files - replaced
    else:
        n_slots = n_files
    encoded = any(field.codec is not None for field in how.fields)
    return Capacity(
        n_slots=min(max(n_slots, 0), MOST_SLOTS),
        n_files=n_files,
        file_bytes=file_bytes,
        buffer_bytes=n_buffers * padded(slot_bytes, PAGE)
        + padded(journal_bytes, PAGE)
        + encoded * CODING,
    )
