"""The vm's machine code: what a program needs is compiled, once, and kept without addresses."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ckad
from ckad.engines.vm.isa import FEW, KERNEL_CODES, KERNELS
from ckad.engines.vm.kernels import table
from ckad.engines.vm.kernels.elements import emitter

PROGRAM = """
import os, sys
import numpy as np, ckad
from ckad.machine.compiler import Compiler

compiled = []
original = Compiler._compile

def counting(self, key, build):
    compiled.append(key.decode())
    return original(self, key, build)

Compiler._compile = counting

def decay(k):
    u = 1.0
    for _ in range(20):
        u = u + 0.01 * np.sin(k * u)
    return u

gradient = ckad.grad(decay, engine="vm")
found = gradient(0.3)
if sys.argv[1:] == ["fork"] and hasattr(os, "fork"):
    child = os.fork()
    if not child:
        os._exit(int(gradient(0.3) != found or ckad.grad(np.exp, engine="vm")(0.0) != 1.0))
    assert os.waitpid(child, 0)[1] == 0
print(found.hex(), len(compiled), "vm run" in compiled, sum("ERF" in key for key in compiled))
"""


def test_a_program_waits_for_the_kernels_that_it_has_and_the_next_process_for_none(
    tmp_path: Path,
) -> None:
    def start(*options: str) -> list[str]:
        environment = {**os.environ, "CKAD_CACHE_DIR": str(tmp_path / "cache"), "CKAD_QUIET": "1"}
        command = [sys.executable, "-c", PROGRAM, *options]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout.split()

    first, second = start(), start("fork")
    assert first[0] == second[0]
    assert 0 < int(first[1]) < 10
    assert first[2:] == ["True", "0"]
    assert second[1:] == ["0", "False", "0"]


@pytest.mark.parametrize("n", [1, 2, FEW - 1, FEW, FEW + 1, 2 * FEW + 3])
def test_few_elements_have_the_bits_of_many(n: int) -> None:
    """The interpreter's own loops, and those of the kernels that it calls."""

    def run(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(x * y + x, y / (x - 3.5)) - abs(x) * np.sqrt(y)

    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 40))
    y = abs(y)
    many = ckad.jit(run, engine="vm")(x, y)
    few = ckad.jit(run, engine="vm")(x[:n].copy(), y[:n].copy())
    assert few.tobytes() == many[:n].tobytes()


def test_every_elementwise_kernel_has_code() -> None:
    for key in KERNELS:
        assert table.elements(key) > 0
        assert len(emitter(key)[1]) >= 4
    assert set(KERNEL_CODES) <= set(KERNELS)


def test_threads_that_need_the_same_kernels_share_them() -> None:
    table.whole.cache_clear()
    table.elements.cache_clear()
    gradient = ckad.grad(lambda x: np.sum(np.cumsum(np.tanh(x))), engine="vm")
    x = np.linspace(0.0, 1.0, 30)
    expected = gradient(x).tobytes()
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: gradient(x).tobytes(), range(8))) == {expected}


@pytest.mark.parametrize("function", [np.argmax, np.argmin, np.max, np.min])
@pytest.mark.parametrize("values", [[2.0, np.nan, 5.0, np.nan], [1.0, 3.0, 3.0, 1.0], [np.nan]])
def test_extremes_are_numpys_with_nan_and_with_ties(function: object, values: list[float]) -> None:
    x = np.array(values)
    found = ckad.jit(lambda x: function(x), engine="vm")(x)  # type: ignore[operator]
    np.testing.assert_array_equal(found, function(x))  # type: ignore[operator]


SHAPES = [(20, 20, 20), (1, 5000, 1), (1, 70, 80), (80, 70, 1), (30, 40, 9)]


@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
@pytest.mark.parametrize("tx", [False, True])
@pytest.mark.parametrize("ty", [False, True])
def test_products_by_blas(m: int, k: int, n: int, tx: bool, ty: bool) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(k, m) if tx else (m, k))
    y = rng.normal(size=(n, k) if ty else (k, n))

    def run(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (x.T if tx else x) @ (y.T if ty else y)

    np.testing.assert_allclose(ckad.jit(run, engine="vm")(x, y), run(x, y), rtol=1e-12, atol=1e-12)
