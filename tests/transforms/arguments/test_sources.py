"""Arguments that are read by pieces: block by block, into a file or into memory."""

from __future__ import annotations

import dataclasses
import tracemalloc
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import BudgetError, CheckpointError, DtypeError, TraceError
from ckad.transforms.arguments import sources

N, SIZE = 400, 2500


class Lazy:
    """Numbers made when they are asked for; counts them, and the most at a time."""

    def __init__(self, shape=(N, SIZE), dtype=np.float64, wrong=0):
        self.shape, self.dtype, self.wrong = shape, np.dtype(dtype), wrong
        self.read, self.most = 0, 0

    def __getitem__(self, key: Any) -> np.ndarray:
        first, last, _ = key.indices(self.shape[0])
        row = int(np.prod(self.shape[1:]))
        found = 3 * np.sin(np.arange(first * row, last * row))
        self.read, self.most = self.read + found.size, max(self.most, found.size)
        rows = found.astype(self.dtype).reshape(last - first, *self.shape[1:])
        return rows[self.wrong :]


def looped(u: Any, x: Any) -> Any:
    for k in range(N):
        u = u + 0.1 * np.sin(u) + x[k]
    return np.sum(u * u)


def scanned(u: Any, x: Any) -> Any:
    u, ys = ckad.scan(lambda u, x: (u + 0.1 * np.sin(u) + x, np.sum(x * u)), u, x)
    return np.sum(u * u) + np.sum(ys)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", 2**17)


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize("program", [looped, scanned])
@pytest.mark.usefixtures("small")
def test_a_source_is_read_once_and_never_whole(program, engine, tmp_path):
    u, source = np.linspace(0.0, 1.0, SIZE), Lazy()
    whole = Lazy()[0:N]
    expected = ckad.value_and_grad(program, engine=engine)(u, whole)
    budget = ckad.Budget(memory="600 KiB", disk="100 MiB", directory=tmp_path)
    gradient = ckad.value_and_grad(program, engine=engine, memory=budget)
    gradient(u, Lazy())
    tracemalloc.start()
    value, found = gradient(u, source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert value == expected[0]
    assert np.array_equal(found, expected[1])
    assert source.read == N * SIZE
    assert source.most * 8 <= 2**17
    assert peak < whole.nbytes / 4
    assert gradient.plan(u, Lazy()).peak_bytes <= 600 * 2**10
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int16])
def test_what_fits_is_read_into_memory(dtype):
    u = np.linspace(0.0, 1.0, SIZE)
    source = Lazy(dtype=dtype)
    found = ckad.value_and_grad(looped)(u, source)
    expected = ckad.value_and_grad(looped)(u, Lazy(dtype=dtype)[0:N])
    assert found[0] == expected[0]
    assert np.array_equal(found[1], expected[1])
    assert source.read == N * SIZE


def test_sources_in_structures_are_found_and_can_be_differentiated_by(tmp_path):
    def program(given: Any) -> Any:
        return looped(given["u"], given["x"][0])

    u = np.linspace(0.0, 1.0, SIZE)
    budget = ckad.Budget(memory="64 MiB", disk="100 MiB", directory=tmp_path)
    found = ckad.grad(program, memory=budget)({"u": u, "x": (Lazy(),)})
    expected = ckad.grad(program)({"u": u, "x": (Lazy()[0:N],)})
    assert np.array_equal(found["u"], expected["u"])
    assert np.array_equal(found["x"][0], expected["x"][0])


def of_zarr(values: np.ndarray, folder: Any) -> Any:
    zarr = pytest.importorskip("zarr")
    made = zarr.open(str(folder / "x.zarr"), mode="w", shape=values.shape, chunks=(3, 900),
                     dtype=values.dtype)  # fmt: skip
    made[:] = values
    return zarr.open(str(folder / "x.zarr"), mode="r")


def of_h5py(values: np.ndarray, folder: Any) -> Any:
    h5py = pytest.importorskip("h5py")
    file = h5py.File(folder / "x.h5", "w")
    return file.create_dataset("x", data=values, chunks=(3, 900), compression="gzip")


@dataclasses.dataclass(frozen=True)
class Stored:
    """As zarr's arrays are made: a dataclass that says where its numbers are."""

    inner: Lazy

    shape = property(lambda self: self.inner.shape)
    dtype = property(lambda self: self.inner.dtype)
    chunks = (3, 900)

    def __getitem__(self, key: Any) -> np.ndarray:
        first, last, _ = key.indices(N)
        assert first % 3 == 0  # no chunk is read for two blocks
        assert last % 3 == 0 or last == N
        return self.inner[key]


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize("make", [of_zarr, of_h5py, lambda values, folder: Stored(Lazy())])
@pytest.mark.usefixtures("small")
def test_arrays_of_files_are_sources_and_observations(make, engine, tmp_path):
    def program(u: Any, given: Any) -> Any:
        return looped(u, given["rain"])

    u, values = np.linspace(0.0, 1.0, SIZE), Lazy()[0:N]
    source = make(values, tmp_path)
    expected = ckad.value_and_grad(program, engine=engine)(u, {"rain": values})
    on_disk = ckad.Budget(memory="600 KiB", disk="100 MiB", directory=tmp_path)
    for memory in (on_disk, "64 MiB"):
        gradient = ckad.value_and_grad(program, engine=engine, memory=memory)
        gradient(u, {"rain": source})
        tracemalloc.start()
        value, found = gradient(u, {"rain": source})
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert value == expected[0]
        assert np.array_equal(found, expected[1])
        assert memory != on_disk or peak < values.nbytes / 4


def test_a_dataclass_of_arrays_is_a_structure_though_it_gives_numbers():
    @dataclasses.dataclass
    class Grid:
        inside: dict[str, np.ndarray]

        shape = property(lambda self: self.inside["u"].shape)
        dtype = property(lambda self: self.inside["u"].dtype)

        def __getitem__(self, key: Any) -> Any:
            return self.inside["u"][key]

    found = ckad.grad(lambda grid: np.sum(grid.inside["u"] ** 2) + grid[0])(
        Grid({"u": np.arange(4.0)})
    )
    assert np.array_equal(found.inside["u"], [1.0, 2.0, 4.0, 6.0])


def test_what_does_not_fit_is_refused_by_name(tmp_path, monkeypatch):
    u = np.linspace(0.0, 1.0, SIZE)
    source = Lazy()
    told = r"(?s)test_sources.py.*a Lazy of shape \(400, 2500\).*8,000,000 bytes.*"
    with pytest.raises(BudgetError, match=told + r"memory='2 MiB' is 2,097,152.*np.memmap"):
        ckad.grad(looped, memory="2 MiB")(u, source)
    budget = ckad.Budget(memory="2 MiB", disk="4 MiB", directory=tmp_path)
    with pytest.raises(BudgetError, match=r"disk='4 MiB' is 4,194,304 bytes. Pass more disk="):
        ckad.grad(looped, memory=budget)(u, source)
    monkeypatch.setattr(sources, "free_memory", lambda: 8_000_000)
    with pytest.raises(BudgetError, match="a quarter of the free memory is 2,000,000 bytes"):
        ckad.grad(looped)(u, source)
    assert source.read == 0
    missing = ckad.Budget(memory="2 MiB", disk="40 MiB", directory=tmp_path / "none")
    with pytest.raises(CheckpointError, match="none is not there"):
        ckad.grad(looped, memory=missing)(u, source)


def test_a_source_that_is_not_what_it_says_is_refused():
    u = np.linspace(0.0, 1.0, SIZE)
    with pytest.raises(TraceError, match=r"its shape is \(400, 2500\), and \[0:209\] of it has"):
        ckad.grad(looped)(u, Lazy(wrong=1))
    with pytest.raises(DtypeError, match="complex128 is not supported"):
        ckad.grad(looped)(u, Lazy(dtype=complex))


def test_what_computes_by_itself_is_left_as_it_is():
    class Field(Lazy):
        def __add__(self, other: Any) -> Any:
            return self[0:1][0] + other

    found = ckad.grad(lambda u, f: np.sum(u * (f + u)))(np.ones(SIZE), Field())
    assert np.allclose(found, Field()[0:1][0] + 2.0, rtol=1e-14)
