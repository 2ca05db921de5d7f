"""The disk store: what is written is read, from buffers and from files, in any order."""

from __future__ import annotations

import gc
import os
import random
import select
import signal
import sys
import threading
import time

import pytest

from ckad.checkpoint.store import files
from ckad.checkpoint.store.capacity import capacity
from ckad.checkpoint.store.disk import DiskStore
from ckad.checkpoint.store.format import blocks
from ckad.errors import CheckpointError

from .processes import ended, fork

SIZES = [0, 1, 24, 64, 1000, 2**20, 2**20 + 13]


def state(step, n_bytes):
    return random.Random(step).randbytes(n_bytes)


def taken(store, slot, step, n_bytes):
    into = bytearray(n_bytes)
    store.read(slot, step, memoryview(into))
    return into


@pytest.mark.parametrize("n_buffers", [0, 1, 3])
@pytest.mark.parametrize("n_bytes", SIZES)
def test_what_is_written_is_read(tmp_path, n_bytes, n_buffers):
    store = DiskStore(tmp_path, 2**25, n_bytes, n_buffers=n_buffers)
    for slot in range(4):
        store.write(slot, 10 + slot, memoryview(state(slot, n_bytes)))
    store.write(2, 7, memoryview(state(7, n_bytes)))
    expected = {0: (10, 0), 1: (11, 1), 2: (7, 7), 3: (13, 3)}
    for slot, (step, seed) in expected.items():
        store.prefetch((slot + 1) % 4, expected[(slot + 1) % 4][0])
        assert taken(store, slot, step, n_bytes) == state(seed, n_bytes)
    store.close()
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("durability", ["scratch", "resume"])
def test_any_order_of_calls_gives_what_was_written_last(tmp_path, seed, durability):
    draw = random.Random(seed)
    store = DiskStore(
        tmp_path, 2**22, 3000, durability=durability, n_buffers=draw.randrange(5), replaced=40
    )
    held = {}
    for step in range(150):
        slot = draw.randrange(6)
        match draw.choice(["write", "write", "read", "read", "prefetch", "drop", "journal"]):
            case "write":
                store.write(slot, step, memoryview(state(step, 3000)))
                held[slot] = step
            case "read" if slot in held:
                assert taken(store, slot, held[slot], 3000) == state(held[slot], 3000)
            case "prefetch" if slot in held:
                store.prefetch(slot, held[slot])
            case "drop":
                store.drop(slot)
                held.pop(slot, None)
            case "journal" if durability == "resume":
                store.journal({"step": step})
    assert {slot: taken(store, slot, held[slot], 3000) for slot in held} == {
        slot: state(held[slot], 3000) for slot in held
    }
    store.close()


def test_the_source_may_change_as_soon_as_it_is_handed_over(tmp_path):
    store = DiskStore(tmp_path, 2**24, 2**20)
    data = bytearray(2**20)
    for slot in range(8):
        data[:] = bytes([slot]) * 2**20
        store.write(slot, slot, memoryview(data))
    data[:] = b"x" * 2**20
    assert [taken(store, slot, slot, 2**20)[-1] for slot in range(8)] == [*range(8)]
    store.close()


def test_a_slot_that_holds_another_step_is_lost(tmp_path):
    store = DiskStore(tmp_path, 2**20, 100)
    store.write(3, 5, memoryview(bytes(100)))
    for slot, step, holds in ((3, 6, "step 5"), (2, 5, "nothing")):
        with pytest.raises(CheckpointError, match=f"slot {slot} holds {holds}.*not step {step}"):
            taken(store, slot, step, 100)
    store.drop(3)
    with pytest.raises(CheckpointError, match="slot 3") as error:
        taken(store, 3, 5, 100)
    assert error.value.slot == 3
    store.close()


def test_other_sizes_and_slots_are_refused(tmp_path):
    store = DiskStore(tmp_path, 10 * 4096, 100)
    assert store.n_slots == 8
    with pytest.raises(CheckpointError, match="room for 8 slots"):
        store.write(8, 0, memoryview(bytes(100)))
    with pytest.raises(ValueError, match="99 bytes for a slot of 100"):
        store.write(0, 0, memoryview(bytes(99)))
    with pytest.raises(ValueError, match="101 bytes for a slot of 100"):
        store.read(0, 0, memoryview(bytearray(101)))
    with pytest.raises(ValueError, match="resume"):
        store.journal({})
    store.close()
    with pytest.raises(CheckpointError, match="closed"):
        store.write(0, 0, memoryview(bytes(100)))
    store.close()


@pytest.mark.parametrize("durability", ["scratch", "resume"])
@pytest.mark.parametrize("slot_bytes", [24, 50_000, 2**20])
@pytest.mark.parametrize("limit", [20_000, 50_000, 2**21])
def test_files_stay_within_the_limit(tmp_path, durability, slot_bytes, limit):
    how = {"durability": durability, "journal_bytes": 1000, "replaced": 2}
    store = DiskStore(tmp_path, limit, slot_bytes, **how)
    most = 0
    slots = range(min(store.n_slots, 10))
    assert store.n_slots == capacity(limit, slot_bytes, **how).n_slots
    for step, slot in enumerate([*slots] * 3):
        store.write(slot, step, memoryview(bytes(slot_bytes)))
        if durability == "resume" and step % 2:
            store.journal({"step": step}, [memoryview(bytes(1000))])
            store.flush()
        most = max(most, disk_use(store.path))
    store.flush()
    assert max(most, disk_use(store.path)) <= limit
    store.close()


def disk_use(path):
    found = [os.stat(entry).st_blocks * 512 for entry in os.scandir(path)]
    return sum(found)


def test_buffers_are_counted(tmp_path):
    n = 8 * 2**20
    assert capacity(2**30, n).buffer_bytes == 3 * n
    assert capacity(2**30, n, n_buffers=0).buffer_bytes == 0
    assert capacity(2**30, n, n_buffers=1, journal_bytes=n).buffer_bytes == 2 * n
    store = DiskStore(tmp_path, 2**30, n)
    before = resident_bytes()
    data = memoryview(bytes(n))
    for slot in range(12):
        store.write(slot, slot, data)
    for slot in range(12):
        store.prefetch(slot, slot)
        taken(store, slot, slot, n)
    grown = resident_bytes() - before
    store.close()
    assert grown <= store.buffer_bytes + 3 * n  # the test's own two arrays, and the allocator's


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_io_goes_on_beside_the_program(tmp_path, monkeypatch):
    """A slow disk, and steps that take longer than it."""
    slow = files.write_all
    monkeypatch.setattr(
        blocks,
        "write_all",
        lambda opened, parts: (time.sleep(0.004), slow(opened, parts))[1],
    )
    store = DiskStore(tmp_path, 2**24, 1000)
    store.write(0, 0, memoryview(bytes(1000)))
    for slot in range(1, 40):
        time.sleep(0.008)
        store.write(slot, slot, memoryview(bytes(1000)))
    assert store.seconds_busy > 0.1
    assert store.seconds_waited < 0.2 * store.seconds_busy
    store.close()


def test_what_was_read_ahead_is_not_read_again(tmp_path):
    store = DiskStore(tmp_path, 2**24, 1000)
    for slot in range(10):
        store.write(slot, slot, memoryview(state(slot, 1000)))
    store.flush()
    once = store._files.format.layout.file_bytes
    for slot in range(5):
        store.prefetch(slot, slot)
        until(lambda: store.bytes_read >= (slot + 1) * once)  # noqa: B023
        waited = store.seconds_waited
        assert taken(store, slot, slot, 1000) == state(slot, 1000)
        assert store.seconds_waited == waited
    assert store.bytes_read == 5 * once
    store.close()


def until(happened, seconds=20.0):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_forgotten_store_goes_with_its_threads_and_files(tmp_path):
    def forgotten():  # a frame whose variables no assertion has looked at
        store = DiskStore(tmp_path, 2**20, 1000)
        store.write(0, 0, memoryview(bytes(1000)))
        store.write(0, 1, memoryview(bytes(1000)))
        store.flush()
        for buffer in store._traffic.buffers.all:
            buffer.clear()
        store.prefetch(0, 1)
        return threading.active_count(), len([*tmp_path.iterdir()])

    before = threading.active_count()
    assert forgotten() == (before + 2, 1)
    gc.collect()
    assert threading.active_count() == before
    assert [*tmp_path.iterdir()] == []


def begin(folder):
    store = DiskStore(folder, 2**24, 2**20)
    store.write(0, 0, memoryview(bytes(2**20)))
    return store


@pytest.mark.parametrize("end", [lambda: None, lambda: sys.exit(0), lambda: 1 / 0])
def test_a_process_that_ends_leaves_nothing(tmp_path, end):
    def program():
        stores.append(begin(tmp_path))
        end()

    stores = []
    assert ended(fork(program)) in (0, 1)
    assert [*tmp_path.iterdir()] == []


def test_a_forked_child_has_no_part_in_it(tmp_path):
    store = begin(tmp_path)

    def child():
        try:
            taken(store, 0, 0, 2**20)
        except CheckpointError as error:
            assert "belong to process" in str(error)  # noqa: PT017
            store.close()
            store.write_was_refused = True
        assert store.write_was_refused

    assert ended(fork(child)) == 0
    assert taken(store, 0, 0, 2**20) == bytes(2**20)
    store.close()
    assert [*tmp_path.iterdir()] == []


def test_a_child_that_lives_on_does_not_hold_the_lock(tmp_path):
    """Its parent is killed: the child has no part in the directory, which is swept."""
    ready, tell = os.pipe()

    def program():
        stores.append(begin(tmp_path))
        child = fork(lambda: time.sleep(60))
        os.write(tell, child.to_bytes(4, "little"))
        time.sleep(60)

    stores = []
    parent = fork(program)
    assert select.select([ready], [], [], 60.0)[0]
    child = int.from_bytes(os.read(ready, 4), "little")
    os.kill(parent, signal.SIGKILL)
    ended(parent)
    assert len([*tmp_path.iterdir()]) == 1
    DiskStore(tmp_path, 2**20, 8).close()
    os.kill(child, signal.SIGKILL)
    assert [*tmp_path.iterdir()] == []


def test_ctrl_c_while_it_waits(tmp_path, monkeypatch):
    """The disk hangs; the program is stopped, and the store goes on when the disk does."""
    going = threading.Event()
    real = files.write_all
    monkeypatch.setattr(
        blocks,
        "write_all",
        lambda opened, parts: (going.wait(60), real(opened, parts))[1],
    )
    store = DiskStore(tmp_path, 2**20, 1000)
    stopped = threading.Event()

    def shoot():  # again: Python loses what comes within a collector's callback
        while not stopped.wait(0.3):
            os.kill(os.getpid(), signal.SIGINT)

    shooter = threading.Thread(target=shoot)

    def program():
        for slot in range(6):
            store.write(slot, slot, memoryview(state(slot, 1000)))

    def until_interrupted():
        shooter.start()
        try:
            program()
        finally:
            stopped.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            until_interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
    shooter.join()
    going.set()
    program()
    assert all(taken(store, slot, slot, 1000) == state(slot, 1000) for slot in range(6))
    store.close()


@pytest.mark.parametrize("durability", ["scratch", "resume"])
def test_ctrl_c_at_any_moment_leaves_a_store_that_works(tmp_path, durability):
    """In a child, many times, each within some call of the store or between two of them.

    Python itself loses a few: what a callback of the garbage collector raises is only printed, and
    hypothesis has such a callback. So no round waits for its interrupt.
    """
    assert ended(fork(lambda: interrupted(tmp_path, durability))) == 0
    assert [*tmp_path.iterdir()] == []


def interrupted(tmp_path, durability):
    draw = random.Random(0)
    states = [state(step, 3000) for step in range(20)]
    store = DiskStore(tmp_path, 2**22, 3000, durability=durability, replaced=40)
    armed = threading.Event()

    def shoot():
        while armed.wait():
            time.sleep(0.002 * draw.random())
            armed.clear()
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=shoot, daemon=True).start()
    held = {}
    answered = 0
    for _ in range(150):
        try:
            armed.set()
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                slot, step = draw.randrange(5), draw.randrange(20)
                held.pop(slot, None)
                store.write(slot, step, memoryview(states[step]))
                held[slot] = step
                if durability == "resume":
                    store.journal({"step": step})
                read = draw.choice([*held])
                store.prefetch(read, held[read])
                assert taken(store, read, held[read], 3000) == states[held[read]]
        except KeyboardInterrupt:
            answered += 1
    assert answered > 100
    assert all(taken(store, slot, step, 3000) == states[step] for slot, step in held.items())
    for slot in range(5):
        store.write(slot, 1, memoryview(states[1]))
    store.flush()
    assert threading.active_count() <= 4  # this one, the shooter, the store's two
    store.close()
