"""The disk store: bytes per second, and how much of its work is hidden behind steps."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter, itemgetter
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.machine import heading
from benchmarks.report import describe, table
from ckad.checkpoint.store.disk import DiskStore
from ckad.checkpoint.store.format.checksum import checksum

COLUMNS = ("what", "GB/s", "hidden")
#: Steps between two checkpoints take so many times what a checkpoint takes to be written or read.
STEP = 1.5
#: Sizes of states in KiB.
GRADIENTS = (64, 1024)


def disk(directory: Path | None, n_bytes: int, n_slots: int, rounds: int) -> dict[str, Any]:
    """Of ``n_slots`` states of ``n_bytes`` that are written, and read backwards."""
    record = heading("disk", ("ckad",))
    record |= {"n_bytes": n_bytes, "n_slots": n_slots, "rounds": rounds, "rows": {}}
    state = memoryview(np.random.default_rng(0).bytes(n_bytes // 64 * 64))
    into = memoryview(bytearray(state.nbytes))
    rows = record["rows"]
    for name, work in {
        "copy in memory": lambda: np.copyto(np.frombuffer(into, "u1"), np.frombuffer(state, "u1")),
        "checksum": lambda: checksum(state, 1),
    }.items():
        rows[name] = {"GB/s": state.nbytes / min(timed(work) for _ in range(rounds)) / 1e9}
    for durability in ("scratch", "resume"):
        where = directory if durability == "scratch" else Path(directory or tempfile.gettempdir())
        alone = [0.0, 0.0]  # seconds of a state, written and read
        for n_buffers, step in ((0, 0.0), (3, STEP)):
            lengths = [step * seconds for seconds in alone]
            found = [
                run(where, durability, n_slots, state, into, n_buffers, step, lengths)
                for _ in range(rounds)
            ]
            beside = f" beside steps of {step} × its time" if step else ""
            for k, direction in enumerate(("written", "read")):
                best = max(found, key=lambda one: one[k]["GB/s"])
                rows[f"{direction}, {durability}{beside}"] = best[k]
                alone[k] = state.nbytes / best[k]["GB/s"] / 1e9
    for kib in GRADIENTS:
        rows[f"a whole gradient, states of {kib} KiB"] = gradient(directory, kib, rounds)
    return record


def gradient(directory: Path | None, kib: int, rounds: int) -> dict[str, float]:
    """Of the disk's time, how much a gradient does not wait for; the best of some runs.

    Each state is stored after ten steps of some 16 elementary functions per number, which take
    longer than the disk does.
    """
    import ckad

    def value(u: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            for _ in range(8):
                u = u + 0.01 * np.sin(u) * np.exp(-u * u)
            return u

        return np.sum(ckad.fori_loop(0, 200, step, u))

    budget = ckad.Budget("4 GiB", "4 GiB", directory)
    schedule = ckad.schedules.periodic_disk(200, "tape", 10)
    found = ckad.value_and_grad(value, memory=budget, schedule=schedule, engine="native", threads=1)
    u, best = np.linspace(0.0, 1.0, 128 * kib), {"GB/s": 0.0, "hidden": 0.0}
    for _ in range(rounds + 1):
        with closed_stores() as stores:
            found(u)
        moved = sum(one.bytes_written + one.bytes_read for one in stores)
        busy, waited = (sum(map(attrgetter(f"seconds_{x}"), stores)) for x in ("busy", "waited"))
        hidden = {"GB/s": moved / busy / 1e9, "hidden": max(0.0, 1 - waited / busy)}
        best = max(best, hidden, key=itemgetter("hidden"))
    return best


@contextmanager
def closed_stores() -> Iterator[list[DiskStore]]:
    """Those that are closed meanwhile, for their counters."""
    seen: list[DiskStore] = []
    close = DiskStore.close

    def noted(store: DiskStore, keep: bool = False) -> None:
        seen.append(store)
        close(store, keep)

    with mock.patch.object(DiskStore, "close", noted):
        yield seen


def run(
    where: Path | None,
    durability: str,
    n_slots: int,
    state: memoryview,
    into: memoryview,
    n_buffers: int,
    step: float,
    lengths: Sequence[float],
) -> tuple[dict[str, float], dict[str, float]]:
    limit = (n_slots + 4) * (state.nbytes + 2**20)
    store = DiskStore(where, limit, state.nbytes, durability=durability, n_buffers=n_buffers)
    try:
        for slot in range(n_slots):  # files are made here
            store.write(slot, -1, state)
        store.flush()
        pace = _Pace(store, step, lengths[0])
        for slot in range(n_slots):
            pace.step()
            store.write(slot, slot, state)
        store.flush()
        written = pace.result(n_slots * state.nbytes)
        pace = _Pace(store, step, lengths[1])
        for slot in reversed(range(n_slots)):
            if n_buffers:
                store.prefetch(slot, slot)
            pace.step()
            store.read(slot, slot, into)
        return written, pace.result(n_slots * state.nbytes)
    finally:
        store.close()


class _Pace:
    """Steps that take ``share`` times what the disk has taken for a state so far, and ``least``
    seconds: the first of them come before it is known, and some states are still in memory."""

    def __init__(self, store: DiskStore, share: float, least: float) -> None:
        self.store, self.share, self.least = store, share, least
        self.waited, self.busy, self.moved = store.seconds_waited, store.seconds_busy, _moved(store)

    def step(self) -> None:
        """Compute, which holds a core, as steps do."""
        busy, moved = self.store.seconds_busy - self.busy, _moved(self.store) - self.moved
        each = busy / moved * self.store.slot_bytes if moved else 0.0
        end = perf_counter() + max(self.least, self.share * each)
        while perf_counter() < end:
            np.sqrt(_WORK, out=_WORK)

    def result(self, n_bytes: int) -> dict[str, float]:
        waited, busy = self.store.seconds_waited - self.waited, self.store.seconds_busy - self.busy
        busy = max(busy, 1e-9)
        return {"GB/s": n_bytes / busy / 1e9, "hidden": max(0.0, 1 - waited / busy)}


def _moved(store: DiskStore) -> int:
    return store.bytes_written + store.bytes_read


_WORK = np.ones(10_000)


def timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def markdown(record: dict[str, Any]) -> str:
    rows = [
        (name, f"{row['GB/s']:.2f}", f"{row['hidden']:.0%}" if "hidden" in row else "")
        for name, row in record["rows"].items()
    ]
    size = f"{record['n_slots']} states of {record['n_bytes'] / 2**20:g} MiB"
    return f"{describe(record)}\n\n{size}\n\n{table(COLUMNS, rows)}"
