"""Nests that read parts of arrays where they lie, and write parts in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ckad
from ckad.engines.native.nests.boxes import fused
from ckad.engines.native.nests.fusion import Nest
from ckad.tape.ops import Op


def mean(x: Any) -> Any:
    middle = x[1:-1, 1:-1]
    return 0.2 * (middle + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])


def two_sweeps(a: Any, b: Any) -> Any:
    a, b = a.copy(), b.copy()
    for _ in range(20):
        b[1:-1, 1:-1] = mean(a)
        a[1:-1, 1:-1] = mean(b)
    return np.sum(a * a) + np.sum(b)


def one_sweep(a: Any, b: Any) -> Any:
    a = a.copy()
    for _ in range(20):
        a[1:-1, 1:-1] = mean(a)
    return np.sum(a * b)


def an_older_state(a: Any, b: Any) -> Any:
    a, b = a.copy(), b.copy()
    for _ in range(20):
        old = a.copy()
        a[1:-1, 1:-1] = mean(b)
        b[2:-1, 3:-2] = 0.5 * mean(a)[1:, 2:-1] + old[2:-1, 3:-2]
    return np.sum(a * a) + np.sum(b)


def a_swap(a: Any, b: Any) -> Any:
    a, b = a.copy(), b.copy()
    for _ in range(20):
        b[1:-1, 1:-1] = mean(a)
        a, b = b, a
    return np.sum(a * a) + np.sum(b)


PROGRAMS = [two_sweeps, one_sweep, an_older_state, a_swap]


def grids(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.random.default_rng(3).normal(size=(2, *shape))
    return a, b


@pytest.mark.parametrize("fun", PROGRAMS)
@pytest.mark.parametrize("shape", [(9, 31), (13, 40)])
def test_values_and_gradients(fun: Any, shape: tuple[int, int]) -> None:
    a, b = grids(shape)
    value, found = ckad.value_and_grad(fun, (0, 1), engine="native")(a, b)
    again = ckad.value_and_grad(fun, (0, 1), engine="native", schedule="revolve", threads=2)(a, b)
    want = ckad.value_and_grad(fun, (0, 1), engine="vm")(a, b)[1]
    assert np.isclose(value, fun(a, b), rtol=1e-12)
    assert value == again[0]
    for x, y, z in zip(found, again[1], want, strict=True):
        assert np.array_equal(x, y)
        assert np.allclose(x, z, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("fun", "n_copies"), [(two_sweeps, 2), (one_sweep, 1)])
def test_no_step_copies_an_array(fun: Any, n_copies: int) -> None:
    a, b = grids((13, 40))
    program = ckad.jit(fun, engine="native", threads=1).compiled(a, b)
    calls = [line for line in program.llvm.splitlines() if "call void @llvm.memcpy" in line]
    assert len(calls) == n_copies


def test_a_part_of_an_array_in_memory_is_read_there() -> None:
    tape = ckad.jit(two_sweeps, engine="native").compiled(*grids((13, 40))).tape
    (loop,) = [row for row in tape.rows if row.op is Op.LOOP]
    first, second = (x for x in fused(tape.bodies[loop.attrs[0]])[0].items if isinstance(x, Nest))
    assert not first.holders
    assert {holder.row for holder in second.holders.values()} == set(first.outputs)
    assert set(first.outputs) < set(second.leaves)


def test_a_roll_of_a_part_goes_around_within_it() -> None:
    def fun(a: Any, b: Any) -> Any:
        c = b * 1.0
        c[2:-2, 2:-2] = np.roll(b[2:-2, 1:-3] * 0.3, 1, 0)
        return np.sum(c * c * a) + np.sum(np.roll(c, -1, 0) ** 2)

    a, b = grids((9, 31))
    value, found = ckad.value_and_grad(fun, (0, 1), engine="native")(a, b)
    want = ckad.value_and_grad(fun, (0, 1), engine="vm")(a, b)[1]
    assert np.isclose(value, fun(a, b), rtol=1e-12)
    for x, y in zip(found, want, strict=True):
        assert np.allclose(x, y, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_cheap_given_arrays_in_memory_is_not_kept_beside_them(dtype: Any) -> None:
    """What two passes read: an array in memory; what takes an operation more: computed twice."""

    def fun(x: Any, y: Any) -> Any:
        a, b = np.tanh(x), np.exp(y)
        half, more, both = 0.5 * a, 1.0 + b, a * b
        total = np.sum(half * more + both)
        return total * (half + more) * both * a * b

    arrays = [x.astype(dtype) for x in grids((13, 40))]
    program = ckad.jit(fun, engine="native").compiled(*arrays)
    first, second = (x for x in fused(program.tape)[0].items if isinstance(x, Nest))
    kept = {program.tape.rows[k].op for k in first.outputs}
    assert kept == {Op.TANH, Op.EXP}
    assert set(first.outputs) <= set(second.leaves)
    np.testing.assert_allclose(ckad.jit(fun, engine="native")(*arrays), fun(*arrays), rtol=1e-5)
