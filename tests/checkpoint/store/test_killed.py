"""Runs that are killed at any moment go on from a record that is whole, and leave nothing."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from pathlib import Path

import pytest

from ckad.checkpoint.store.disk import DiskStore
from ckad.errors import CheckpointError

from .processes import ended, fork

N = 20_000
KEY = {"function": "abc", "parameters": "def", "ckad": "0.1.0"}


def state(step, n_bytes=N):
    return random.Random(step).randbytes(n_bytes)


def opened(tmp_path, key=KEY, **how):
    how = {"durability": "resume", "key": key, "journal_bytes": 2 * N, "replaced": 3} | how
    return DiskStore(tmp_path, 2**20, N, **how)


def go_on(tmp_path, last=10**9):
    """A run whose state after a step is known: slots are written, dropped and replaced.

    It begins with looking at all that it goes on from. Its position is the step after which it is.
    """
    store = opened(tmp_path)
    found = store.read_journal()
    step = checked(store, found) if found is not None else 0
    draw = random.Random(step)
    while step < last:
        step += 1
        for slot in draw.sample(range(6), 2):
            store.write(slot, step, memoryview(state(step + slot)))
        if draw.random() < 0.3:
            store.drop(draw.randrange(6))
        blocks = [memoryview(state(-step)), memoryview(state(step, 99))]
        store.journal({"step": step, "sweep": "reverse"}, blocks)
    store.flush()
    return store


def checked(store, found):
    """Everything that a record names is what was written then; its step."""
    step = found.position["step"]
    assert found.position == {"step": step, "sweep": "reverse"}
    blocks = [bytearray(N), bytearray(99)]
    found.read([memoryview(block) for block in blocks])
    assert blocks == [state(-step), state(step, 99)]
    for slot, written in found.slots.items():
        into = bytearray(N)
        store.prefetch(slot, written)
        store.read(slot, written, memoryview(into))
        assert into == state(written + slot)
    return step


@pytest.fixture
def fast(tmp_path):
    """In memory, where there is such a place: a kill does not ask whether a disk has synced."""
    if not os.path.isdir("/dev/shm"):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def killed(tmp_path, draw, longest=0.15):
    child = fork(lambda: go_on(tmp_path))
    time.sleep(draw.random() * longest)
    os.kill(child, signal.SIGKILL)
    assert ended(child) == -signal.SIGKILL  # and not by an assertion of its own


def kills(tmp_path, n, seed):
    """Each child goes on from where the one before was killed; the last step that was reached."""
    draw = random.Random(seed)
    go_on(tmp_path, last=1).close()  # compiled, for which no child has time
    assert [*tmp_path.iterdir()] == []
    for _ in range(n):
        killed(tmp_path, draw)
    store = opened(tmp_path)
    found = store.read_journal()
    step = 0 if found is None else checked(store, found)
    store.close()
    assert [*tmp_path.iterdir()] == []
    return step


def test_kills_at_random_moments(fast):
    assert kills(fast, 20, 0) > 20


@pytest.mark.slow
def test_five_hundred_kills_at_random_moments(fast):
    assert kills(fast, 500, 1) > 500


@pytest.mark.parametrize("n", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_scratch_runs_leave_nothing_after_the_next_start(tmp_path, n):
    def program():
        while True:
            store = DiskStore(tmp_path, 2**20, N)
            for slot in range(5):
                store.write(slot, slot, memoryview(state(slot)))
            store.close()

    draw = random.Random(n)
    for _ in range(n):
        child = fork(program)
        time.sleep(draw.random() * 0.05)
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL
        DiskStore(tmp_path, 2**20, N).close()
        assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("keep", [True, False])
def test_a_run_that_is_closed(tmp_path, keep):
    go_on(tmp_path, 7).close(keep)
    store = opened(tmp_path)
    found = store.read_journal()
    assert (checked(store, found) if keep else found) == (7 if keep else None)
    store.close()
    assert [*tmp_path.iterdir()] == []


def test_a_store_that_is_forgotten_keeps_the_run(tmp_path):
    store = go_on(tmp_path, 5)
    del store
    store = opened(tmp_path)
    assert checked(store, store.read_journal()) == 5
    store.close()


def test_writes_after_the_last_record_are_not_part_of_it(tmp_path):
    """Nor do they harm it: the slots are as they were."""
    store = go_on(tmp_path, 6)
    before = {slot: stored.step for slot, stored in store._table.slots.items()}
    for k in range(3):
        store.write(k, 1000 + k, memoryview(state(0)))
    store.drop(4)
    store.flush()
    store.close(keep=True)
    store = opened(tmp_path)
    assert store.read_journal().slots == before
    assert checked(store, store.read_journal()) == 6
    store.close()


def test_too_many_writes_without_a_record(tmp_path):
    store = opened(tmp_path, replaced=1)
    assert store.n_slots > 10
    for step in range(2):
        for slot in range(store.n_slots):
            if step:
                store.journal({"step": step})
            store.write(slot, step, memoryview(state(step)))
    store.journal({"step": 3})
    store.write(0, 3, memoryview(state(0)))
    with pytest.raises(CheckpointError, match="Journal more often"):
        store.write(1, 3, memoryview(state(1)))
    store.close()


def test_what_differs_is_named(tmp_path):
    go_on(tmp_path, 3).close(keep=True)
    changed = KEY | {"parameters": "xyz"}
    with pytest.raises(CheckpointError, match=r"differs in parameters \(was def, is xyz\)\."):
        opened(tmp_path, changed)
    with pytest.raises(CheckpointError, match=r"ckad \(was 0.1.0, is None\), dtypes \(was None"):
        opened(tmp_path, {"function": "abc", "parameters": "def", "dtypes": "f8"})
    with pytest.raises(CheckpointError, match="differs in layout of the state"):
        DiskStore(tmp_path, 2**20, N + 8, durability="resume", key=KEY)
    store = opened(tmp_path)  # a refusal has changed nothing
    assert checked(store, store.read_journal()) == 3
    store.close()


def test_a_position_that_could_not_be_read_again_is_refused(tmp_path):
    store = opened(tmp_path)
    for position in ({"step": True}, {"step": 1.5}, {"step": None}, {1: 1}):
        with pytest.raises(TypeError, match="position="):
            store.journal(position)
    store.flush()
    assert store.read_journal() is None
    store.close()


def test_a_position_that_is_too_long_changes_nothing(tmp_path):
    store = opened(tmp_path)
    store.write(0, 1, memoryview(state(1)))
    store.journal({"step": 1})
    with pytest.raises(CheckpointError, match="above the 65,536"):
        store.journal({"step": "x" * 70_000})
    store.journal({"step": 2})
    store.close(keep=True)
    store = opened(tmp_path)
    assert store.read_journal().position["step"] in (1, 2)  # closed without a flush
    assert store.read_journal().slots == {0: 1}
    store.close()


@pytest.mark.parametrize("journal_bytes", [0, 100, 10**6])
def test_blocks_may_change_as_soon_as_they_are_handed_over(tmp_path, journal_bytes):
    store = opened(tmp_path, journal_bytes=journal_bytes)
    block = bytearray(1000)
    for step in range(5):
        block[:] = bytes([step]) * 1000
        store.journal({"step": step}, [memoryview(block), memoryview(block)[:7]])
        block[:] = b"x" * 1000
    store.flush()
    store.close(keep=True)
    store = opened(tmp_path)
    into = [bytearray(1000), bytearray(7)]
    store.read_journal().read([memoryview(one) for one in into])
    assert into == [bytes([4]) * 1000, bytes([4]) * 7]
    store.close()
