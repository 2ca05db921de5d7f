"""The native engine as a whole: when it is chosen, threads, fusion, sums, loops."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import ckad
from ckad import schedules
from ckad.engines import native
from ckad.engines.native.running.compiler import COMPILER
from ckad.machine import compiler
from ckad.passes.pipeline import adjoint_of_tape
from ckad.passes.simplify import simplify
from ckad.rules.evaluate import evaluate

Fun = Callable[..., Any]


def decay(n_steps: int) -> Fun:
    return lambda u: np.sum(ckad.fori_loop(0, n_steps, lambda i, u: u + 0.1 * np.sin(u), u))


# --- the choice of engine ------------------------------------------------------------------------


def test_auto_takes_the_vm_for_what_is_soon_done() -> None:
    assert ckad.plan(decay(10), np.ones(3)).engine == "vm"
    assert ckad.plan(lambda x: np.sum(x * x), np.ones(1000)).engine == "vm"


def test_auto_compiles_long_loops() -> None:
    assert ckad.plan(decay(10**6), np.ones(3)).engine == "native"
    assert ckad.plan(decay(1000), np.ones((300, 300))).engine == "native"


@pytest.mark.parametrize(("by_columns", "engine"), [(False, "vm"), (True, "native")])
def test_columns_of_large_arrays_take_longer_than_rows(by_columns: bool, engine: str) -> None:
    def swept(x: np.ndarray) -> np.floating:
        total = np.zeros(150)
        for k in range(70):
            total = 0.9 * total + (x[:, k] if by_columns else x[k])
        return np.sum(total**2)

    x = np.random.default_rng(0).normal(size=(150, 150))
    gradient = ckad.value_and_grad(swept)
    assert gradient.plan(x).engine == engine
    np.testing.assert_allclose(gradient(x)[0], swept(x), rtol=1e-13)


@pytest.mark.parametrize(("shape", "engine"), [((2000, 3, 3), "native"), ((1, 2000, 3), "vm")])
def test_what_is_moved_by_few_at_a_time_takes_longer(shape: tuple[int, ...], engine: str) -> None:
    def determinants(a: np.ndarray) -> np.floating:
        return np.sum(np.linalg.det(a[:, :3]))

    a = np.random.default_rng(0).normal(size=shape)
    gradient = ckad.value_and_grad(determinants)
    assert gradient.plan(a).engine == engine
    np.testing.assert_allclose(gradient(a)[0], determinants(a), rtol=1e-10)


@pytest.mark.parametrize(("n_steps", "engine"), [(10, "vm"), (10**6, "native")])
def test_auto_looks_at_the_program_alone(n_steps: int, engine: str) -> None:
    for options in (
        {"memory": "64 KiB"},
        {"memory": "1 GiB"},
        {"schedule": "revolve"},
        {"schedule": lambda n: schedules.two_level(n, 100)},
        {"threads": 1},
        {"threads": 3},
    ):
        assert ckad.plan(decay(n_steps), np.ones(3), **options).engine == engine
    ckad.clear_caches()
    assert ckad.plan(decay(n_steps), np.ones(3)).engine == engine


def test_checks_for_finite_numbers_leave_the_choice() -> None:
    gradient = ckad.grad(decay(10**6), check_finite=True)
    assert gradient.plan(np.ones(3)).engine == "native"


# --- threads -------------------------------------------------------------------------------------


def heat(u: Any, kappa: Any) -> Any:
    """Rolls, large enough that every pass is shared."""

    def step(i: Any, u: Any) -> Any:
        flow = kappa * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) - 3 * u)
        return u + 0.1 * np.sin(flow) * u

    u = ckad.fori_loop(0, 4, step, u)
    return np.sum(u * u) + np.mean(np.exp(-u))


def interior(u: Any, kappa: Any) -> Any:
    """Slices, written in place."""

    def step(i: Any, u: Any) -> Any:
        flow = kappa[1:, :] * (u[1:, :] - u[:-1, :])
        u[:-1, :] += 0.1 * np.tanh(flow)
        u[1:, :] -= 0.1 * np.tanh(flow)
        u[:, 1:-1] += 0.1 * (u[:, 2:] - 2 * u[:, 1:-1] + u[:, :-2])
        return u

    return np.sum(ckad.fori_loop(0, 3, step, u) ** 2)


def sums(u: Any, kappa: Any) -> Any:
    """Reductions of the whole and of each axis, in every step."""

    def step(i: Any, u: Any) -> Any:
        rows, columns = np.sum(u, 0), np.mean(u, 1)
        u = u * np.cos(kappa) + 1e-3 * (rows + columns[:, None]) + 1e-6 * np.sum(u * kappa)
        return u / np.max(u)

    return np.sum(ckad.fori_loop(0, 3, step, u) ** 3)


def line(u: Any, kappa: Any) -> Any:
    """One long axis: odd length, parts joined and padded."""

    def step(i: Any, u: Any) -> Any:
        inner = u[2:] - 2 * u[1:-1] + u[:-2]
        u = u + 0.2 * kappa * np.pad(inner, 1)
        return np.concatenate([u[-3:], np.exp(-u[:-3])])

    return np.sum(ckad.fori_loop(0, 3, step, u.ravel()) * kappa.ravel())


def drawn(shape: tuple[int, ...], n: int = 2) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(shape))
    return [rng.uniform(0.2, 0.9, shape) for _ in range(n)]


SHARED: dict[str, tuple[Fun, tuple[int, ...]]] = {
    "heat": (heat, (400, 301)),
    "interior": (interior, (301, 400)),
    "sums": (sums, (257, 500)),
    "few rows": (heat, (5, 40_000)),
    "few columns": (interior, (40_000, 5)),
    "line": (line, (200_003,)),
}


def bits(result: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in ckad.trees.flatten(result)[0]]


@pytest.mark.parametrize("name", SHARED)
def test_the_number_of_threads_changes_no_bit(name: str) -> None:
    fun, shape = SHARED[name]
    arguments = drawn(shape)
    alone, *others = [
        bits(ckad.value_and_grad(fun, (0, 1), engine="native", threads=n)(*arguments))
        for n in (1, 2, 3, 7)
    ]
    assert all(other == alone for other in others)


def test_very_long_code_has_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its instructions are selected in one pass, which takes linear time; few passes before it."""
    managers = []

    def run(x: Any) -> Any:
        y = [x[k] * (1 + k) + np.sin(x[k - 1]) for k in range(len(x))]
        return sum(a / (1 + b * b) for a, b in itertools.pairwise(y))

    def gradient() -> Any:
        ckad.clear_caches()
        gc.collect()
        return ckad.value_and_grad(run, engine="native")(np.linspace(0.1, 0.9, 60))

    monkeypatch.setattr(COMPILER, "entry", lambda key: None)
    wanted = gradient()
    original = compiler._run_passes
    monkeypatch.setattr(
        compiler,
        "_run_passes",
        lambda passes, *args: managers.append(type(passes).__name__) or original(passes, *args),
    )
    monkeypatch.setattr(compiler, "LONG", 100)
    monkeypatch.setattr(compiler, "VERY_LONG", 200)
    for a, b in zip(wanted, gradient(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert managers[0] == "FunctionPassManager"


def test_shared_passes_from_several_threads_at_once() -> None:
    gradients = [
        ckad.value_and_grad(heat, (0, 1), engine="native", threads=n) for n in (1, 2, 3, 2)
    ]
    arguments = drawn((400, 301))
    expected = bits(gradients[0](*arguments))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda g: [bits(g(*arguments)) for _ in range(5)], gradients))
    assert all(one == expected for several in found for one in several)


def _in_child(queue: Any, expected: list[bytes]) -> None:
    gradient = ckad.value_and_grad(heat, (0, 1), engine="native", threads=2)
    queue.put(bits(gradient(*drawn((400, 301)))) == expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_shared_passes_after_a_fork() -> None:
    gradient = ckad.value_and_grad(heat, (0, 1), engine="native", threads=2)
    expected = bits(gradient(*drawn((400, 301))))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue, expected))
    child.start()
    assert queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert bits(gradient(*drawn((400, 301)))) == expected


def test_an_error_in_a_shared_program() -> None:
    """Helpers are gone after it, and the next run is right."""

    def fun(u: Any, at: Any) -> Any:
        def step(i: Any, u: Any) -> Any:
            return np.sin(u) * u[at.astype(int), 0]

        return np.sum(ckad.fori_loop(0, 3, step, u))

    u = drawn((400, 301), 1)[0]
    gradient = ckad.grad(fun, engine="native", threads=3)
    expected = bits(gradient(u, np.array(1.0)))
    with pytest.raises(ckad.errors.TracedIndexError, match="out of range at step 0"):
        gradient(u, np.array(1e6))
    assert bits(gradient(u, np.array(1.0))) == expected


# --- sums ----------------------------------------------------------------------------------------

#: The sum of the first argument, beside other work on it.
BESIDE: list[Fun] = [
    lambda x, y: (np.sum(x),),
    lambda x, y: (np.sum(x), np.sum(np.roll(x, 1, -1) * y), np.roll(x, 2, 0) * y + x),
    lambda x, y: (np.sum(x), x * 2),
    lambda x, y: (np.sum(x), np.sum(np.exp(np.sin(x) * y)), np.roll(x, 1, 0)),
    lambda x, y: (np.sum(x), np.concatenate([x[:3], y[3:]])),
    lambda x, y: (np.sum(x), np.concatenate([x[..., :2], y[..., 2:]], -1)),
]


@pytest.mark.parametrize(
    "shape",
    [(2047,), (4096,), (9001,), (70,), (33, 67), (64, 64), (5, 7, 11), (3, 300), (300, 3)],
    ids=str,
)
def test_a_sum_has_the_same_bits_whatever_it_is_fused_with(shape: tuple[int, ...]) -> None:
    x, y = drawn(shape)
    found = {float(ckad.jit(fun, engine="native")(x, y)[0]) for fun in BESIDE}
    assert len(found) == 1
    np.testing.assert_allclose(found.pop(), np.sum(x), rtol=1e-14)


# --- random stencils -----------------------------------------------------------------------------

Draw = np.random.Generator


def _part(z: Any, axis: int, start: int | None, stop: int | None) -> Any:
    return z[tuple(slice(start, stop) if a == axis else slice(None) for a in range(z.ndim))]


def _rolled(x: Any, y: Any, axis: int, rng: Draw) -> Any:
    return np.roll(x, int(rng.integers(-3, 4)), axis) - 0.5 * y


def _padded(x: Any, y: Any, axis: int, rng: Draw) -> Any:
    widths = [(0, 0)] * x.ndim
    before = int(rng.integers(0, min(3, x.shape[axis]) + 1))
    widths[axis] = (before, 0) if rng.integers(2) else (0, before)
    n = x.shape[axis] - before
    kept = _part(x, axis, None, n) if rng.integers(2) else _part(x, axis, before, None)
    return np.pad(kept, widths) * y


def _joined(x: Any, y: Any, axis: int, rng: Draw) -> Any:
    at = int(rng.integers(0, x.shape[axis] + 1))
    return np.concatenate([_part(x, axis, None, at), _part(y, axis, at, None)], axis)


def _updated(x: Any, y: Any, axis: int, rng: Draw) -> Any:
    z, n = x.copy(), x.shape[axis]
    lo, hi = sorted(int(k) for k in rng.integers(0, n + 1, 2))
    _part(z, axis, lo, hi)[...] = _part(y, axis, n - hi, n - lo)
    return z


def _increased(x: Any, y: Any, axis: int, rng: Draw) -> Any:
    z, n = x.copy(), x.shape[axis]
    by = min(n, int(rng.integers(0, 3)))
    part = _part(z, axis, by, None)
    part += 0.3 * _part(y, axis, None, n - by)
    return z


def _curved(x: Any, y: Any, axis: int, rng: Draw) -> Any:
    if x.shape[axis] < 3:
        return x * y
    z = x.copy()
    inner = _part(x, axis, 2, None) - 2 * _part(x, axis, 1, -1) + _part(x, axis, None, -2)
    part = _part(z, axis, 1, -1)
    part += inner * _part(y, axis, 1, -1)
    return z


def _reversed(x: Any, y: Any, axis: int, rng: Draw) -> Any:
    return np.flip(x, axis) * y


def _spread(x: Any, y: Any, axis: int, rng: Draw) -> Any:
    return x - np.mean(y, axis, keepdims=True)


def _chosen(x: Any, y: Any, axis: int, rng: Draw) -> Any:
    return np.where(x > y, x, 0.25 * y)


def _counted(x: Any, y: Any, axis: int, rng: Draw) -> Any:
    """Through int64 and bool."""
    k = (7 * np.floor(4 * x)).astype(np.int64) % 3
    return y + 0.125 * k.astype(x.dtype) * x + (k == 1).astype(x.dtype)


PIECES = (_rolled, _padded, _joined, _updated, _increased, _curved, _reversed)
PIECES += (_spread, _chosen, _counted)


def stencil(seed: int, shape: tuple[int, ...], looped: bool) -> Fun:
    def body(x: Any, y: Any) -> list[Any]:
        rng = np.random.default_rng(seed)
        pool = [x, y]
        for _ in range(int(rng.integers(2, 9))):
            a, b = (pool[rng.integers(len(pool))] for _ in "ab")
            piece = PIECES[rng.integers(len(PIECES))]
            z = piece(a, b, int(rng.integers(len(shape))), rng)
            pool.append(np.sin(z) if rng.integers(2) else 0.5 * z)
        return [np.sin(pool[-1] + pool[rng.integers(len(pool))]), pool[-2]]

    if not looped:
        return lambda x, y: (*body(x, y), np.sum(body(x, y)[0]))
    return lambda x, y: ckad.fori_loop(0, 3, lambda i, c: tuple(body(*c)), (x, y))


def any_shape(rng: Draw) -> tuple[int, ...]:
    rank = int(rng.integers(1, 4))
    near = (1, 2, 63, 64, 65, 4095, 4096, 4097)
    if rank == 1:
        size = near[rng.integers(len(near))] if rng.integers(2) else rng.integers(1, 71)
        return (int(size),)
    most = 71 if rank == 2 else 18
    return tuple(int(n) for n in rng.integers(1, most, rank))


def check_stencil(seed: int, dtype: type, looped: bool) -> None:
    """Value and adjoint in one tape, on the native engine and row by row with NumPy."""
    rng = np.random.default_rng(seed)
    shape = any_shape(rng)
    x, y = (rng.uniform(-1.0, 1.0, shape).astype(dtype) for _ in "xy")
    tape = ckad.trace(stencil(seed, shape, looped))(x, y)
    whole = simplify(adjoint_of_tape(keep_outputs=True).run(tape))
    cts = [np.asarray(rng.uniform(-1.0, 1.0, t.shape), t.numpy) for t in tape.output_types]
    found = native.run(whole, x, y, *cts)
    for got, want in zip(found, evaluate(whole, x, y, *cts), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        size = max(1.0, np.abs(want).max(initial=0.0))
        bound = (3e-5 if dtype is np.float32 else 1e-12) * size
        np.testing.assert_allclose(got, want, rtol=0, atol=bound, err_msg=f"{seed} {shape}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(40))
def test_random_stencils(seed: int) -> None:
    check_stencil(seed, np.float64, looped=seed % 2 == 0)


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_random_stencils_in_float32(seed: int) -> None:
    check_stencil(seed, np.float32, looped=seed % 2 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 500))
def test_many_random_stencils(seed: int) -> None:
    check_stencil(seed, np.float64, looped=seed % 2 == 0)


# --- loops and branches --------------------------------------------------------------------------


def branched(x: Any, y: Any) -> Any:
    """Branches inside nested loops; the names of the carry change places."""

    def inner(j: Any, c: Any) -> Any:
        a, b = c
        return b, ckad.cond(np.sum(a) > np.sum(b) + j, lambda a, b: a * y, lambda a, b: b - a, a, b)

    def outer(i: Any, c: Any) -> Any:
        a, b = ckad.fori_loop(0, 3, inner, c)
        return ckad.cond(i % 2 == 0, lambda a, b: (np.sin(b), a), lambda a, b: (a, b * y), a, b)

    return ckad.fori_loop(0, 5, outer, (x, y))


def stepped(x: Any, y: Any) -> Any:
    """Values go in and out at every step of both loops."""

    def outer(c: Any, row: Any) -> Any:
        c, ys = ckad.scan(lambda c, s: (np.tanh(c + s * y), np.sum(c * s)), c, row)
        return c, (ys, c * row[0])

    return ckad.scan(outer, x, np.outer(x, y))


@pytest.mark.parametrize("fun", [branched, stepped])
@pytest.mark.parametrize("size", [1, 7, 70])
def test_loops_in_loops(fun: Fun, size: int) -> None:
    x, y = drawn((size,))
    tape = ckad.trace(fun)(x, y)
    whole = adjoint_of_tape(keep_outputs=True).run(tape)
    cts = [np.ones(t.shape, t.numpy) for t in tape.output_types]
    for got, want in zip(native.run(whole, x, y, *cts), evaluate(whole, x, y, *cts), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("n_steps", [0, 3])
def test_nothing_at_all(shape: tuple[int, ...], n_steps: int) -> None:
    def fun(u: Any) -> Any:
        step = lambda i, u: np.roll(np.sin(u), 1, 0) + np.sum(u)  # noqa: E731
        return np.sum(ckad.fori_loop(0, n_steps, step, u) * 2.0)

    value, gradient = ckad.value_and_grad(fun, engine="native")(np.zeros(shape))
    assert value == 0.0
    assert gradient.shape == shape
