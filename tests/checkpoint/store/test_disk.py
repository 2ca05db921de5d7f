"""The disk store: what is written is read, and nothing else is."""

from __future__ import annotations

import os

from ckad.checkpoint.store.disk import DiskStore


def test_what_is_written_is_read(tmp_path):
    store = DiskStore(tmp_path, 2**20, 1000)
    states = {slot: os.urandom(1000) for slot in range(4)}
    for slot, state in states.items():
        store.write(slot, 10 * slot, memoryview(state))
    for slot, state in states.items():
        into = bytearray(1000)
        store.read(slot, 10 * slot, memoryview(into))
        assert into == state
    store.close()
    assert [*tmp_path.iterdir()] == []
