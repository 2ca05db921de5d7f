"""Arrays that loops change in parts are put back step by step: what is kept, and the bits."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.tape.ops import Op
from ckad.tape.tape import Tape

N = 9
SIZE = 8 * N * N  # bytes of a matrix
SCHEDULES = ("store_all", "revolve")


def slow(parameter: Any) -> Any:
    return pytest.param(parameter, marks=pytest.mark.slow)


def matrices(count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.eye(N) + 0.2 * rng.normal(size=(N, N)) for _ in range(count)]


def by_rows(a, b):
    """Forward substitution with several right sides."""
    x = b.copy()
    for i in range(N):
        x[i] = (x[i] - a[i, :i] @ x[:i]) / a[i, i]
    return np.sum(x * x)


def by_columns(a, b):
    x = b.copy()
    for i in range(N):
        x[:, i] = x[:, i] * np.sin(a @ x[:, i - 1])
    return np.sum(x * x)


def by_elements(a, b):
    """The inner loops read elements of what is put back."""
    x = a.copy()
    for i in range(1, N):
        for j in range(i):
            total = x[i, j]
            for k in range(j):
                total -= x[i, k] * x[k, j]
            x[i, j] = total / (1.0 + x[j, j] ** 2)
    return np.sum(x * b)


def until_small(a, b):
    """A loop that ends on a flag."""
    x, i = a.copy(), 0
    while i < N - 1 and x[i, i] > 0.0:
        x[i + 1] = x[i + 1] - 0.1 * x[i] * (x @ x[i])
        i += 1
    return np.sum(x * b)


def added(a, b):
    x = a.copy()
    for i in range(N):
        np.add.at(x, np.array([0, 3, 3]), b[i] * x[i] * x[3])
    return np.sum(x * x)


def slices(a, b):
    x = a.copy()
    for i in range(N):
        x[1, 1:-1] += 0.1 * np.cos(x @ b[i])[1:-1] * x[i, 1:-1]
    return np.sum(x * x)


KEEP_LITTLE = {by_rows: 2, by_columns: 2, by_elements: 3, until_small: 2, added: 5, slices: 4}


def outermost(fun: Callable[..., Any], arguments: list[np.ndarray]) -> int:
    """Bytes that a step of the outermost loop keeps."""
    plan = ckad.plan(fun, *arguments, argnums=(0, 1), schedule="store_all")
    return max(loop.residual_bytes for loop in plan.loops if loop.depth == 1)


QUICK = (by_rows, by_elements)


@pytest.mark.parametrize("fun", [fun if fun in QUICK else slow(fun) for fun in KEEP_LITTLE])
def test_a_step_keeps_what_it_writes_over(fun: Callable[..., Any]) -> None:
    n_rows = KEEP_LITTLE[fun]
    alignment = 64 * (n_rows + 4)
    limit = n_rows * 8 * N + alignment + (8 * 3 * N * N if fun is by_elements else 0)
    assert outermost(fun, matrices(2)) <= limit
    assert_same_gradients(fun, matrices(2))


def test_an_array_that_is_only_read_in_the_inner_loops_leaves_nothing_there() -> None:
    plan = ckad.plan(by_elements, *matrices(2), argnums=(0, 1), schedule="store_all")
    assert [loop.residual_bytes for loop in plan.loops if loop.depth == 3] == [0]


def eliminated(a, b):
    """The inner steps read a row that none of them writes."""
    x = a.copy()
    for k in range(N):
        for i in range(k + 1, N):
            x[i] -= x[i, k] / x[k, k] * x[k]
    return np.sum(x * b)


def eliminated_from_its_own(a, b):
    """The first of the inner steps writes the row that all of them read."""
    x = a.copy()
    for k in range(N):
        for i in range(k, N):
            x[i] -= 0.1 * x[i, k] * x[k]
    return np.sum(x * b)


def pivoted(a, b):
    """The row that the inner steps read is one that the data choose."""
    x = a.copy()
    for k in range(N - 1):
        p = k
        for i in range(k + 1, N):
            if abs(x[i, k]) > abs(x[p, k]):
                p = i
        if p != k:
            row = x[k].copy()
            x[k] = x[p]
            x[p] = row
        for i in range(k + 1, N):
            x[i] -= x[i, k] / x[k, k] * x[k]
    return np.sum(x * b)


@pytest.mark.parametrize("fun", [eliminated, slow(pivoted)])
def test_a_row_that_no_inner_step_writes_is_kept_once(fun: Callable[..., Any]) -> None:
    plan = ckad.plan(fun, *matrices(2), argnums=(0, 1), schedule="store_all")
    assert max(loop.residual_bytes for loop in plan.loops if loop.depth == 2) <= 16
    assert_same_gradients(fun, matrices(2))


def on_both_sides(a, b):
    """Both sides of a branch write a row, each one of its own (as factorisations do)."""
    x = a.copy()
    for i in range(N):
        if x[i, i] > 1.0:
            x[i] = x[i] * np.sin(x @ b[i])
        else:
            x[i - 1] = x[i] * np.cos(x @ b[i])
    return np.sum(x * x)


def elements_on_both_sides(a, b):
    """Cholesky's factor, element by element."""
    c, x = a @ a.T, np.zeros((N, N))
    for i in range(N):
        for j in range(i + 1):
            s = 0.0
            for k in range(j):
                s += x[i, k] * x[j, k]
            if i == j:
                x[i, j] = np.sqrt(c[i, i] - s)
            else:
                x[i, j] = (c[i, j] - s) / x[j, j]
    return np.sum(x * b)


@pytest.mark.parametrize(("fun", "most"), [(elements_on_both_sides, 100), (on_both_sides, 500)])
def test_an_array_that_both_sides_of_a_branch_write_is_put_back(
    fun: Callable[..., Any], most: int
) -> None:
    """Nothing is kept of the innermost loop, and no matrix by a step that changes one."""
    plan = ckad.plan(fun, *matrices(2), argnums=(0, 1), schedule="store_all")
    depth = max(loop.depth for loop in plan.loops)
    assert max(x.residual_bytes for x in plan.loops if x.depth == max(1, depth - 1)) <= most
    assert all(x.residual_bytes == 0 for x in plan.loops if x.depth == 3)
    assert_same_gradients(fun, matrices(2))


def through_a_buffer(a, b):
    """Two inner loops read an array that the third writes over (Durbin's recursion)."""
    y, z = 0.1 * a.ravel(), np.zeros(N * N)
    for k in range(1, N * N):
        s = b[0, 0]
        for i in range(k):
            s += y[k - i - 1] * y[i]
        for i in range(k):
            z[i] = y[i] + 0.01 * s * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
    return np.sum(y * b.ravel())


def test_an_array_that_inner_loops_read_is_kept_once() -> None:
    assert outermost(through_a_buffer, matrices(2)) < 2 * SIZE
    assert_same_gradients(through_a_buffer, matrices(2))


def linear(a, b):
    """Its reverse needs no state at all."""
    x = a.copy()
    for i in range(1, N):
        x[i] = x[i] + 0.5 * x[i - 1]
    return np.sum(x * b)


def branching(a, b):
    """A branch that changes the array: its states are kept."""
    x = a.copy()
    for i in range(N):
        if x[i, i] > 1.0:
            x[i] = x[i] * np.sin(x @ b[i])
    return np.sum(x * x)


def own_places(a, b):
    """Where a step writes depends on what it writes over."""
    x = a.copy()
    for i in range(N):
        j = int(np.abs(x[i, 0]) * 100.0) % N
        x[j] = x[j] * np.cos(x @ b[i])
    return np.sum(x * x)


def from_before(a, b):
    """A step reads the array as it was, after having written into it."""
    x = a.copy()
    for i in range(1, N):
        old = x.copy()
        x[i] = np.sin(x[i - 1]) * x[i]
        x[0] = x[0] + np.cos(old @ b[i]) * old[i] * x[i]
    return np.sum(x * x)


def taking_turns(a, b):
    x, y = a.copy(), b.copy()
    for i in range(N):
        x[i] = np.sin(x @ y[i])
        x, y = y, x
    return np.sum(x * x) + np.sum(y)


@pytest.mark.parametrize(
    "fun",
    [
        own_places,
        eliminated_from_its_own,
        *map(slow, (linear, branching, from_before, taking_turns)),
    ],
)
def test_gradients_where_arrays_are_put_back_in_part_or_not(fun: Callable[..., Any]) -> None:
    assert_same_gradients(fun, matrices(2))


def assert_same_gradients(fun: Callable[..., Any], arguments: list[np.ndarray]) -> None:
    """The same bits under every schedule; both engines, and both modes, agree; NumPy's value."""
    positions = tuple(range(len(arguments)))
    found = {}
    for engine in ("native", "vm"):
        for schedule in SCHEDULES:
            make = ckad.value_and_grad(fun, positions, schedule=schedule, engine=engine)
            value, gradient = make(*arguments)
            found[engine, schedule] = value, *gradient
        first = found[engine, "store_all"]
        for schedule in SCHEDULES:
            for x, y in zip(found[engine, schedule], first, strict=True):
                assert np.asarray(x).tobytes() == np.asarray(y).tobytes(), (engine, schedule)
    native, vm = (found[engine, "store_all"] for engine in ("native", "vm"))
    np.testing.assert_allclose(native[0], fun(*arguments), rtol=1e-9)
    for x, y in zip(native, vm, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)
    rng = np.random.default_rng(1)
    direction = tuple(rng.normal(size=x.shape) for x in arguments)
    _, forward = ckad.jvp(fun, tuple(arguments), direction)
    reverse = sum(np.sum(g * d) for g, d in zip(native[1:], direction, strict=True))
    np.testing.assert_allclose(reverse, forward, rtol=1e-9)


def test_second_derivatives_go_through_what_is_put_back() -> None:
    a, b = matrices(2)
    direction = np.random.default_rng(2).normal(size=a.shape)

    def slope(a: np.ndarray) -> Any:
        return ckad.grad(by_elements)(a, b)

    step = 1e-6
    expected = (slope(a + step * direction) - slope(a - step * direction)) / (2 * step)
    found = ckad.hvp(lambda a: by_elements(a, b), (a,), (direction,))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_the_adjoint_of_an_adjoint_goes_through_what_is_put_back() -> None:
    a, b = matrices(2)
    tape = ckad.adjoint(ckad.trace(by_rows)(a, b))
    assert _restores(tape)
    tangent = ckad.tangent(tape)
    assert not any(row.op is Op.TAPED_LOOP for row in tangent.rows)


def _restores(tape: Tape) -> bool:
    """Whether the reverse loop is given an array that the forward sweep has left."""
    row = next(row for row in tape.rows if row.op is Op.REVERSE_LOOP)
    results = {k for k, x in enumerate(tape.rows) if x.op is Op.RESULT and x.type.size == N * N}
    return any(x in results for x in row.operands)


# --- random programs -----------------------------------------------------------------------------

STATEMENTS = (
    "a[i] = np.sin(a[i]) * b[i]",
    "a[:, i] = a[:, i] * np.cos(a[i])",
    "a[i, :i] = a[i, :i] * b[:i, i] + 0.1",
    "b[i + 1 :, i] /= 1.5 + a[i, i] ** 2",
    "a[i, i] = np.sqrt(1.0 + a[i, i] ** 2)",
    "b[i] = b[i] - 0.1 * a[i, :i] @ b[:i]",
    "a[1:-1, 1] += 0.1 * a[2:, 1] * a[:-2, 1] * b[i, i]",
    "a[P[i]] = a[P[i]] * np.cos(b[i]) + 0.1 * a[i]",
    "b[i] = b[i] * np.tanh(a @ b[i])",
    "a[i:, i:] = a[i:, i:] - 0.1 * np.outer(a[i:, i], b[i, i:])",
    "old = a.copy()\n        a[i] = a[i] + 0.1 * np.sin(old @ b[i])",
    "for j in range(i):\n            a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / (2 + a[j, j])",
    "for j in range(N):\n            b[i, j] -= 0.1 * b[j, i] * a[i, j]",
    "if a[i, 0] > 0.5:\n            b[i] = b[i] * a[i]",
    "for j in range(1, N):\n            b[j] = b[j] - 0.1 * b[j - 1] * a[i, j] * b[j]",
    "a = 0.9 * a",
    "for j in range(i + 1, N):\n            a[j] = a[j] - 0.1 * a[j, i] * a[i]",
    "for j in range(i, N):\n            b[j] -= 0.1 * b[j, i] * b[i]",
    "for j in range(N):\n            a[j] = a[j] + 0.1 * np.sin(b[i]) * a[P[i]]",
    "s = 0.0\n        for j in range(i):\n            s += a[j, i] * a[i, j]\n"
    "        b[i] = b[i] * np.cos(s)",
    "if a[i, 0] > 0.5:\n            b[i] = b[i] * a[i]\n"
    "        else:\n            b[P[i]] = np.sin(b[i])",
)


def drawn(seed: int, folder: Path) -> ModuleType:
    rng = random.Random(seed)
    lines = "\n        ".join(rng.sample(STATEMENTS, rng.choice([1, 2, 3, 4])))
    text = (
        "import numpy as np\n\n"
        f"N = {N}\nP = np.array({random.Random(3).sample(range(N), N)})\n\n\n"
        "def program(a, b):\n    a, b = a.copy(), b.copy()\n"
        f"    for i in range(N):\n        {lines}\n"
        "    return np.sum(a * a) + np.sum(np.sin(b))\n"
    )
    path = folder / f"drawn_{seed}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", [0, *(slow(seed) for seed in range(1, 60))])
def test_random_programs_that_write_parts_of_arrays(seed: int, tmp_path: Path) -> None:
    assert_same_gradients(drawn(seed, tmp_path).program, matrices(2, seed))
