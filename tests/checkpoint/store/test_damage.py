"""What is damaged on the disk is never taken for what was written."""

from __future__ import annotations

import os
import random
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ckad.checkpoint.store.disk import DiskStore
from ckad.checkpoint.store.format.checksum import checksum
from ckad.checkpoint.store.format.head import LARGEST, MAGIC, PREAMBLE, UNIT, decode, encode
from ckad.checkpoint.store.format.layout import BLOCK
from ckad.errors import CheckpointError

N = 2000
FRAMED = UNIT + 64  # where the bytes of a state begin


def state(seed, n_bytes=N):
    return random.Random(seed).randbytes(n_bytes)


@pytest.fixture
def store(tmp_path):
    made = DiskStore(tmp_path, 2**24, N, n_buffers=0)
    yield made
    made.close()


def file_of(store, slot):
    return Path(store.path) / str(store._table.slots[slot].file)


def refused(store, slot, step):
    """The error, which names the file and the slot that is lost."""
    into = bytearray(store.slot_bytes)
    with pytest.raises(CheckpointError) as error:
        store.read(slot, step, memoryview(into))
    assert error.value.slot == slot
    assert error.value.path == str(file_of(store, slot))
    assert error.value.path in str(error.value)
    return str(error.value)


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_every_bit_of_head_and_frame_and_many_of_the_state(store):
    store.write(0, 7, memoryview(state(7)))
    file, whole = file_of(store, 0), file_of(store, 0).read_bytes()
    draw = random.Random(0)
    for bit in range(8 * UNIT):
        with pytest.raises(CheckpointError):
            decode(flipped(whole[:UNIT], bit), "file")
    # in a state's file everything is written: zeros up to the alignment too
    bits = [*range(8 * UNIT, 8 * FRAMED), *draw.sample(range(8 * FRAMED, 8 * len(whole)), 200)]
    for bit in [*draw.sample(range(8 * UNIT), 100), *bits]:
        file.write_bytes(flipped(whole, bit))
        refused(store, 0, 7)
    file.write_bytes(whole)
    into = bytearray(N)
    store.read(0, 7, memoryview(into))
    assert into == state(7)


def test_every_length_but_the_right_one(store):
    store.write(0, 7, memoryview(state(7)))
    file, whole = file_of(store, 0), file_of(store, 0).read_bytes()
    for n in [*range(0, len(whole), 13), len(whole) - 1]:
        file.write_bytes(whole[:n])
        refused(store, 0, 7)
    file.write_bytes(whole + b"\0")
    assert "was damaged" not in refused(store, 0, 7)


def test_what_belongs_elsewhere_is_refused(tmp_path, store):
    """Each file is sound by itself: of another slot, an earlier write, another run."""
    for slot in range(2):
        store.write(slot, 5, memoryview(state(slot)))
    early = file_of(store, 0).read_bytes()
    store.write(0, 5, memoryview(state(9)))
    late, other_slot = file_of(store, 0).read_bytes(), file_of(store, 1).read_bytes()
    other = DiskStore(tmp_path, 2**24, N, n_buffers=0)
    other.write(0, 5, memoryview(state(9)))
    other_run = file_of(other, 0).read_bytes()
    for whole, said in ((early, "sequence"), (other_slot, "slot 1"), (other_run, "run")):
        file_of(store, 0).write_bytes(whole)
        assert said in refused(store, 0, 5)
        # under its own head, so that the blocks alone are wrong
        file_of(store, 0).write_bytes(late[:UNIT] + whole[UNIT:])
        assert "belongs elsewhere" in refused(store, 0, 5)
    other.close()


def test_blocks_that_are_swapped(tmp_path):
    store = DiskStore(tmp_path, 2**24, 3 * BLOCK, n_buffers=0)
    store.write(0, 1, memoryview(state(3, 3 * BLOCK)))
    file, whole = file_of(store, 0), file_of(store, 0).read_bytes()
    size = 64 + BLOCK
    parts = [whole[UNIT + k * size : UNIT + (k + 1) * size] for k in range(3)]
    for order in ((1, 0, 2), (0, 2, 1), (0, 0, 2), (0, 1, 1)):
        file.write_bytes(whole[:UNIT] + b"".join(parts[k] for k in order))
        assert "belongs elsewhere" in refused(store, 0, 1)
    store.close()


def test_a_version_of_later_days_is_named(store):
    store.write(0, 7, memoryview(state(7)))
    file, whole = file_of(store, 0), bytearray(file_of(store, 0).read_bytes())
    whole[8] = 2
    file.write_bytes(whole)
    assert "version 2 of the format, and this ckad reads version 1" in refused(store, 0, 7)


@pytest.mark.parametrize("kind", ["link", "directory", "fifo", "nothing"])
def test_something_else_under_the_name_of_a_file(tmp_path, store, kind):
    store.write(0, 7, memoryview(state(7)))
    file = file_of(store, 0)
    aside = tmp_path / "aside"
    shutil.move(file, aside)
    match kind:
        case "link":
            file.symlink_to(aside)
        case "directory":
            file.mkdir()
        case "fifo":
            os.mkfifo(file)
    refused(store, 0, 7)
    with pytest.raises(CheckpointError):
        store.write(0, 8, memoryview(state(8)))
    assert len(aside.read_bytes()) > N  # was not followed
    if kind == "directory":
        file.rmdir()


HEADS = [
    {},
    [],
    None,
    {"kind": "journal"},
    {"kind": [[[[]]]] * 100},
    {"file_bytes": 10**400},
    {str(k): k for k in range(3000)},
]


def journal_head(**changes):
    fields = {"run": "r", "kind": "journal", "sequence": 1, "slot": -1, "step": -1}
    fields |= {"layout": "x", "key": {}, "position": {}, "n_slots": 0, "sizes": []}
    return fields | {"file_bytes": 512 + 64} | changes


HEADS += [
    journal_head(),
    journal_head(n_slots=10**9),
    journal_head(n_slots=-1),
    journal_head(sizes=[10**18]),
    journal_head(sizes=[True]),
    journal_head(sizes=["x"]),
    journal_head(sizes=[-1]),
    journal_head(sequence=1.5),
    journal_head(key={"a": []}),
    journal_head(position={"a": None}),
    journal_head(n_slots=2**14, file_bytes=512 + 64 + 2**19),
]


def texts():
    """Files that an ill-meaning or broken writer could leave, some of them with sound checksums."""
    draw = random.Random(1)
    yield b""
    yield MAGIC
    for n in (1, 64, 600, 5000):
        yield draw.randbytes(n)
        yield MAGIC + draw.randbytes(n)
    for fields in HEADS:
        head = encode(fields)
        for rest in (b"", bytes(64), bytes(64 + 2**19), draw.randbytes(200)):
            yield head + rest
    for text in (
        b"[" * 60_000,
        b"[0" + b",[]" * 20_000 + b"]",
        b"9" * 60_000,
        b"NaN",
        b"{",
        b"\xff",
    ):
        yield raw_head(text)


def raw_head(text, n_text=None):
    size = -(-(PREAMBLE.size + len(text)) // UNIT) * UNIT
    head = bytearray(size)
    PREAMBLE.pack_into(head, 0, MAGIC, 1, len(text) if n_text is None else n_text, 0)
    head[PREAMBLE.size : PREAMBLE.size + len(text)] = text
    head[16:24] = checksum(memoryview(head), 0).to_bytes(8, "little")
    return bytes(head)


def test_whatever_lies_there_raises_only_checkpoint_errors_and_takes_little(tmp_path):
    """As a slot's file, and as the progress record that a run would go on from."""
    scratch = DiskStore(tmp_path, 2**20, N, n_buffers=0)
    scratch.write(0, 7, memoryview(state(7)))
    resume = tmp_path / "ckad-resume"
    DiskStore(tmp_path, 2**20, N, durability="resume").close(keep=True)
    n = 0
    for text in [*texts(), raw_head(b"{}", 2**32 - 1), raw_head(b"{}", LARGEST)]:
        n += 1
        tracemalloc.start()
        file_of(scratch, 0).write_bytes(text)
        refused(scratch, 0, 7)
        (resume / "journal-0").write_bytes(text)
        with pytest.raises(CheckpointError, match=r"journal-0|differs in"):
            DiskStore(tmp_path, 2**20, N, durability="resume", key={"function": "f"})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**24, text[:100]
        assert (resume / "journal-0").read_bytes() == text  # nothing is removed after a refusal
    assert n > 80
    scratch.close()


@pytest.mark.slow
def test_random_changes_of_sound_files(tmp_path):
    journalled(tmp_path)
    resume = tmp_path / "ckad-resume"
    sound = {file: file.read_bytes() for file in resume.iterdir()}
    draw = random.Random(5)
    outcomes = set()
    for _ in range(500):
        for file, data in sound.items():
            changed = bytearray(data)
            for _ in range(draw.choice([0, 0, 0, 1, 1, 3])):
                at = draw.randrange(len(changed)) if changed else 0
                changed[at : at + draw.randrange(9)] = draw.randbytes(draw.randrange(9))
            file.write_bytes(changed)
        outcomes.add(resumed(tmp_path))
    # the newest record, the one before it, or a refusal; never anything else
    assert outcomes == {1, 2, None}


def journalled(tmp_path):
    store = DiskStore(tmp_path, 2**20, N, durability="resume")
    for number in (1, 2):
        for slot in range(3):
            store.write(slot, 10 * number + slot, memoryview(state(10 * number + slot)))
        store.journal({"number": number}, [memoryview(state(number, 100))])
    store.flush()
    store.close(keep=True)


def resumed(tmp_path):
    """The number of the record from which the run goes on, after all of it was looked at."""
    try:
        store = DiskStore(tmp_path, 2**20, N, durability="resume")
    except CheckpointError:
        return None
    try:
        found = store.read_journal()
        if found is None:
            return None
        number = found.position["number"]
        block = bytearray(100)
        found.read([memoryview(block)])
        assert block == state(number, 100)
        assert found.slots == {slot: 10 * number + slot for slot in range(3)}
        for slot, step in found.slots.items():
            into = bytearray(N)
            store.read(slot, step, memoryview(into))
            assert into == state(step)
        return number
    except CheckpointError:
        return None
    finally:
        store.close(keep=True)


@pytest.mark.parametrize("where", [0, 9, 20, 100, UNIT + 3, UNIT + 70, -100, None])
def test_a_damaged_record_gives_way_to_the_one_before(tmp_path, where):
    """In its head, its frames, its table, its blocks, or cut off."""
    journalled(tmp_path)
    assert resumed(tmp_path) == 2
    files = (tmp_path / "ckad-resume").glob("journal-*")
    (newest,) = (file for file in files if b'"number":2' in file.read_bytes())
    whole = newest.read_bytes()
    bit = 8 * (where % len(whole)) if where is not None else 0
    newest.write_bytes(whole[:-1] if where is None else flipped(whole, bit))
    assert resumed(tmp_path) == 1
    journalled(tmp_path)  # and the run goes on as if nothing had been
    assert resumed(tmp_path) == 2


def test_a_record_is_read_into_memory_of_its_sizes(tmp_path):
    journalled(tmp_path)
    store = DiskStore(tmp_path, 2**20, N, durability="resume")
    found = store.read_journal()
    with pytest.raises(CheckpointError, match=r"holds blocks of \[100\] bytes, not of \[99\]"):
        found.read([memoryview(bytearray(99))])
    for number in (3, 4):
        store.journal({"number": number})
    store.flush()
    with pytest.raises(CheckpointError, match="sequence"):  # it has been replaced
        found.read([memoryview(bytearray(100))])
    store.close()


def test_xxh64():
    """Against its definition, written out again in Python's integers."""
    for n in (64, 128, 4096):
        data = state(n, n)
        for seed in (0, 1, 2**64 - 1):
            assert checksum(memoryview(data), seed) == plain_xxh64(data, seed)
    # of the reference implementation
    known = bytes(range(64))
    assert checksum(memoryview(known), 0) == KNOWN


KNOWN = 0xF7C67301DB6713F0


def plain_xxh64(data, seed):
    p1, p2, p3, p4 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63
    mask = 2**64 - 1

    def turned(x, n):
        return (x << n | x >> (64 - n)) & mask

    lanes = [(seed + p1 + p2) & mask, (seed + p2) & mask, seed, (seed - p1) & mask]
    for k, word in enumerate(np.frombuffer(data, "<u8").tolist()):
        lanes[k % 4] = turned((lanes[k % 4] + word * p2) & mask, 31) * p1 & mask
    total = sum(turned(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18), strict=True)) & mask
    for lane in lanes:
        total = ((total ^ turned(lane * p2 & mask, 31) * p1 & mask) * p1 + p4) & mask
    total = (total + len(data)) & mask
    total = (total ^ total >> 33) * p2 & mask
    total = (total ^ total >> 29) * p3 & mask
    return total ^ total >> 32
