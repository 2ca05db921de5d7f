"""Codecs: lossless ones give every bit back, lossy ones say what they changed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ckad.checkpoint.store.capacity import capacity
from ckad.checkpoint.store.disk import DiskStore
from ckad.checkpoint.store.format.layout import BLOCK, Field, layout
from ckad.errors import CheckpointError

SMOOTH = np.sin(np.linspace(0.0, 50.0, 300_000))


def bytes_of(array):
    return memoryview(array).cast("B")


def as_float32(n_bytes):
    return [Field(0, n_bytes, 8, "float32")]


def through(store, array):
    into = np.full_like(array, 7)
    for step in range(2):  # from its file, and not from a buffer
        store.write(step, step, bytes_of(array))
    store.read(0, 0, bytes_of(into))
    return into


@pytest.fixture
def zstd():
    return pytest.importorskip("blosc2")


@pytest.mark.parametrize("n_buffers", [0, 3])
def test_zstd_gives_every_bit_back(tmp_path, zstd, n_buffers):
    random = np.random.default_rng(0).random(300_000)
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e308] * 999)
    for array in (SMOOTH, random, odd, np.arange(5.0)):
        store = DiskStore(tmp_path, 2**26, array.nbytes, codec="zstd", n_buffers=n_buffers)
        assert bytes(bytes_of(through(store, array))) == bytes(bytes_of(array))
        assert store.rounding == (0.0, 0.0)
        store.close()


def test_float32_rounds_and_says_so(tmp_path):
    store = DiskStore(tmp_path, 2**26, SMOOTH.nbytes, fields=as_float32(SMOOTH.nbytes), n_buffers=0)
    read = through(store, SMOOTH)
    assert np.array_equal(read, SMOOTH.astype(np.float32).astype(np.float64))
    error = read - SMOOTH
    assert store.rounding.absolute == np.abs(error).max() > 0
    assert 0 < store.rounding.relative < 2.0**-24
    whole = np.linalg.norm(error) / np.linalg.norm(SMOOTH)
    assert whole <= store.rounding.relative <= 3 * whole  # of the worst block
    store.close()


def test_float32_has_the_same_bits_however_soon_it_is_read(tmp_path):
    """In a buffer is what has not been rounded yet."""
    store = DiskStore(tmp_path, 2**26, SMOOTH.nbytes, fields=as_float32(SMOOTH.nbytes))
    rounded = SMOOTH.astype(np.float32).astype(np.float64)
    for k in range(12):
        into = np.empty_like(SMOOTH)
        store.write(k % 3, k, bytes_of(SMOOTH))
        if k % 2:
            store.prefetch(k % 3, k)
        if k % 3:
            store.flush()
        store.read(k % 3, k, bytes_of(into))
        assert np.array_equal(into, rounded)
    store.close()


@pytest.mark.parametrize("n_buffers", [0, 3])
def test_float32_refuses_what_it_would_make_infinite(tmp_path, n_buffers):
    store = DiskStore(tmp_path, 2**20, 80, fields=as_float32(80), n_buffers=n_buffers)

    def written(array):
        store.write(0, 0, bytes_of(array))
        store.flush()

    with pytest.raises(CheckpointError, match=r"cannot keep 1e\+39") as error:
        written(np.full(10, 1e39))
    assert error.value.slot == 0
    assert error.value.path == store.path + "/0"
    odd = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-300, 1.0, 2.0, 3.0, 4.0])
    written(odd)
    into = np.zeros(10)
    store.read(0, 0, bytes_of(into))
    assert np.array_equal(into, np.where(odd == 1e-300, 0.0, odd), equal_nan=True)
    assert store.rounding == (pytest.approx(1e-300 / np.sqrt(30)), 1e-300)
    store.close()


def test_fields_have_codecs_of_their_own(tmp_path):
    """Integers between float64s are kept as they are, at odd places too."""
    fields = [Field(3, 803, 8, "float32"), Field(1000, 1800, 8, "float32")]
    store = DiskStore(tmp_path, 2**20, 2001, fields=fields, n_buffers=0)
    state = np.random.default_rng(1).integers(0, 255, 2001, dtype=np.uint8)
    for field in fields:
        state[field.start : field.stop] = np.frombuffer(SMOOTH[5:105].tobytes(), np.uint8)
    read = through(store, state)
    rounded = np.frombuffer(SMOOTH[5:105].astype("f4").astype("f8").tobytes(), np.uint8)
    expected = state.copy()
    for field in fields:
        expected[field.start : field.stop] = rounded
    assert np.array_equal(read, expected)
    assert not np.array_equal(read, state)
    store.close()


def test_layouts():
    size = 3 * BLOCK + 5
    assert layout(size).fields == (Field(0, size),)
    assert [block.stop - block.start for block in layout(size).blocks] == [BLOCK] * 3 + [5]
    assert layout(0).fields == ()
    mixed = layout(100, "zstd", [Field(40, 80, 8, "float32")])
    assert [field.codec for field in mixed.fields] == ["zstd", "float32", "zstd"]
    for fields in ([Field(0, 20), Field(10, 30)], [Field(90, 101)], [Field(0, 7, 8, "float32")]):
        with pytest.raises(ValueError, match=r"overlaps|have 100|has 100|multiple of 8"):
            layout(100, None, fields)
    with pytest.raises(ValueError, match="which bytes of a state are float64s"):
        layout(100, "float32")


def test_memory_for_codecs_is_counted():
    plain, coded = (capacity(2**30, 2**24, fields=fields) for fields in ((), as_float32(2**24)))
    assert plain.buffer_bytes < coded.buffer_bytes <= plain.buffer_bytes + 2**23


def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "blosc2", None)
    with pytest.raises(CheckpointError, match=r"pip install 'ckad\[zstd\]'"):
        DiskStore(tmp_path, 2**20, 80, codec="zstd")
    with pytest.raises(CheckpointError, match="'gzip' is not one of"):
        DiskStore(tmp_path, 2**20, 80, codec="gzip")
    assert [*tmp_path.iterdir()] == []


def test_damage_is_found_before_anything_is_decoded(tmp_path, zstd):
    store = DiskStore(tmp_path, 2**26, SMOOTH.nbytes, codec="zstd", n_buffers=0)
    store.write(0, 0, bytes_of(SMOOTH))
    file = Path(store.path) / "0"
    whole = file.read_bytes()
    into = np.empty_like(SMOOTH)
    for at in (530, 576 + 10, 576 + 5000):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(CheckpointError, match="is damaged in block 0"):
            store.read(0, 0, bytes_of(into))
    store.close()
