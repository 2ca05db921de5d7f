"""Habits of published scripts: numbers read as texts, files written meanwhile, state in globals."""

import numpy as np
import pytest

import ckad


def test_numbers_may_be_texts():
    written = ["0.5", "1.25", "-2e-1"]

    def read(x):
        record = np.array(written, dtype="float32")
        table = np.array([line.split(",") for line in ("1,2,3", "4,5,6")], float)
        return np.sum(record * x) + np.sum(table @ x)

    x = np.array([1.0, 2.0, 3.0])
    value, gradient = ckad.value_and_grad(read, engine="vm")(x)
    assert value == read(x)
    np.testing.assert_allclose(gradient, np.array(written, float) + [5.0, 7.0, 9.0], rtol=1e-7)
    with pytest.raises(ValueError, match="could not convert"):
        ckad.jit(lambda x: np.array(["one"], float) * x)(x)


def test_ranges_of_short_floats_are_numpys():
    """Where an argument decides the length, which NumPy fills in float32, too."""

    def times(lengths):
        n = int(lengths.min())
        return np.arange(-0.1, 0.001 * n - 0.1, 0.001, dtype=np.float32)

    lengths = np.array([133.0, 140.0])
    np.testing.assert_array_equal(ckad.jit(times)(lengths), times(lengths))
