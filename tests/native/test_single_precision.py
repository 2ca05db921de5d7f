"""Float32 in nests of the native engine: arithmetic stays in it where nothing is lost by that."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ckad

RNG = np.random.default_rng(4)
X = RNG.normal(size=(600, 24)).astype(np.float32)
ROWS = RNG.uniform(1.0, 2.0, size=(600, 1)).astype(np.float32)
SCALE = np.float32(1.7)


def by_rows(x: np.ndarray, rows: np.ndarray, scale: np.float32) -> np.ndarray:
    return (x - rows) / rows


def by_a_number(x: np.ndarray, rows: np.ndarray, scale: np.float32) -> np.ndarray:
    return (x + scale) / scale


def by_a_constant(x: np.ndarray, rows: np.ndarray, scale: np.float32) -> np.ndarray:
    return (x + np.float32(0.3)) / np.float32(1.7)


def by_a_number_of_a_row(x: np.ndarray, rows: np.ndarray, scale: np.float32) -> np.ndarray:
    return np.sqrt(x * x + scale * rows) * rows


@pytest.mark.parametrize("fun", [by_rows, by_a_number, by_a_constant, by_a_number_of_a_row])
def test_arithmetic_with_repeated_numbers_needs_no_doubles(fun: Callable[..., np.ndarray]) -> None:
    run = ckad.jit(fun, engine="native", threads=1)
    np.testing.assert_allclose(run(X, ROWS, SCALE), fun(X, ROWS, SCALE), rtol=5e-7)
    lines = run.compiled(X, ROWS, SCALE).llvm.splitlines()
    assert any("<8 x float>" in line and " f" in line for line in lines)
    assert not [line for line in lines if "= f" in line and "<8 x double>" in line]
