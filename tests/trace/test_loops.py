"""scan and fori_loop against the same loops written in Python on plain NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import ckad
from ckad.testing import check_grads
from ckad.trace.memory.opened import is_tracing

pytestmark = pytest.mark.usefixtures("engine")

U = np.linspace(0.2, 1.1, 6)
V = np.cos(np.arange(6.0))


def python_scan(step: Any, init: Any, xs: Any = None, length: int | None = None) -> Any:
    """What `ckad.scan` means."""
    leaves, tree = ckad.trees.flatten(xs)
    carry, ys = init, []
    for k in range(len(leaves[0]) if leaves else length):  # type: ignore[arg-type]
        carry, y = step(carry, ckad.trees.unflatten(tree, [x[k] for x in leaves]))
        ys.append(ckad.trees.flatten(y))
    stacked = [np.stack(parts) for parts in zip(*(y for y, _ in ys), strict=True)] if ys else []
    return carry, ckad.trees.unflatten(ys[0][1], stacked) if ys else None


def python_fori_loop(lower: int, upper: int, body: Any, init: Any) -> Any:
    carry = init
    for i in range(lower, upper):
        carry = body(i, carry)
    return carry


class Python(NamedTuple):
    scan: Any = python_scan
    fori_loop: Any = python_fori_loop


class Recorded(NamedTuple):
    scan: Any = ckad.scan
    fori_loop: Any = ckad.fori_loop


#: name -> (function of the kind of loop and the arguments, arguments)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}


def program(*args: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, args
        return function

    return register


@program(1.3, 0.2)
def scalar_carry(run: Any, x: Any, k: Any) -> Any:
    return run.fori_loop(0, 9, lambda i, x: x + k * np.sin(x), x)


@program(U, V)
def tuple_carry(run: Any, u: Any, v: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        u, v = c
        u = u + 0.1 * v
        return u, v - 0.1 * np.sin(u)

    return run.fori_loop(0, 7, body, (u, v))


@program(U, 0.5)
def dict_carry(run: Any, u: Any, k: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return {"u": c["u"] * c["k"] + 1.0, "k": c["k"] * 0.9}

    return run.fori_loop(0, 5, body, {"u": u, "k": k})


@program(U, V)
def nested_structure_carry(run: Any, u: Any, v: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        (a, [b]), d = c
        return (b * d["w"], [a + d["w"]]), {"w": d["w"] * 0.5, "none": None}

    return run.fori_loop(0, 4, body, ((u, [v]), {"w": v, "none": None}))


@program(U, np.outer(V, U))
def xs_and_ys(run: Any, u: Any, forcing: Any) -> Any:
    def step(u: Any, f: Any) -> Any:
        u = 0.9 * u + np.tanh(f)
        return u, np.sum(u**2)

    return run.scan(step, u, forcing)


@program(0.3, {"a": U, "b": np.outer(U, V)})
def several_xs_and_ys(run: Any, x: Any, xs: Any) -> Any:
    def step(x: Any, now: Any) -> Any:
        x = np.sin(x + now["a"] * np.sum(now["b"]))
        return x, (x, {"row": now["b"] * x}, x * x)

    return run.scan(step, x, xs)


@program(U)
def ys_that_ignore_the_carry(run: Any, xs: Any) -> Any:
    return run.scan(lambda c, x: (c, x * x), 0.0, xs)[1]


@program(U, V)
def captured_arrays(run: Any, u: Any, k: Any) -> Any:
    k2 = k * k
    return run.fori_loop(0, 8, lambda i, u: u + 0.1 * k2 * np.cos(u) + 0.01 * k, u)


@program(U, V)
def index_reads_a_captured_array(run: Any, x: Any, table: Any) -> Any:
    return run.fori_loop(0, 6, lambda i, x: x * np.cos(table[i]) + table[(3 * i) % 6], x)


@program(U)
def index_in_arithmetic(run: Any, u: Any) -> Any:
    return run.fori_loop(0, 5, lambda i, u: u + np.sin(0.1 * i * u) / (i + 1), u)


@program(U)
def index_from_a_lower_bound(run: Any, u: Any) -> Any:
    return run.fori_loop(2, 6, lambda i, s: s * u[i] + i, 1.0)


@program(U)
def index_writes(run: Any, u: Any) -> Any:
    def body(i: Any, u: Any) -> Any:
        u[i] = np.sin(u[i - 1]) + u[i]
        return u

    return run.fori_loop(1, 6, body, u.copy())


@program(U, V)
def writes_into_the_carry(run: Any, u: Any, k: Any) -> Any:
    def body(i: Any, u: Any) -> Any:
        u[1:-1] += k[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0] = u[-1]
        return u

    return run.fori_loop(0, 6, body, u.copy())


@program(U, V)
def writes_through_a_view(run: Any, u: Any, v: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        u, v = c
        left = u[:3]
        left *= 0.5
        v[...] = u + v[::-1]
        return u, v

    return run.fori_loop(0, 4, body, (u.copy(), v.copy()))


@program(U, 0.1)
def three_deep(run: Any, u: Any, k: Any) -> Any:
    def inner(i: Any, u: Any) -> Any:
        return run.fori_loop(0, 2, lambda j, u: u + k * np.sin(u + j + i), u)

    def middle(m: Any, u: Any) -> Any:
        return run.fori_loop(0, 3, lambda i, u: inner(i + m, u) * 0.9, u)

    return run.fori_loop(0, 4, middle, u)


@program(np.outer(U, V))
def sum_over_rows_and_columns(run: Any, a: Any) -> Any:
    def row(i: Any, s: Any) -> Any:
        return run.fori_loop(0, 6, lambda j, s: s + a[i, j] ** 2 * (i + 1), s)

    return run.fori_loop(0, 6, row, 0.0)


@program(U, np.outer(V, U))
def scan_inside_scan(run: Any, u: Any, xs: Any) -> Any:
    def step(u: Any, x: Any) -> Any:
        u, partial = run.scan(lambda c, z: (c + 0.1 * z * u, np.sum(c)), u, x)
        return 0.9 * u, partial

    return run.scan(step, u, xs)


@program(U)
def no_steps(run: Any, u: Any) -> Any:
    return run.fori_loop(3, 3, lambda i, u: u * 2.0, u * 3.0)


@program(U)
def fewer_than_no_steps(run: Any, u: Any) -> Any:
    return run.fori_loop(3, 1, lambda i, u: u * 2.0, u * 3.0)


@program(U)
def one_step(run: Any, u: Any) -> Any:
    return run.fori_loop(0, 1, lambda i, u: np.sin(u) + i, u)


@program(U, V)
def body_ignores_its_carry(run: Any, u: Any, v: Any) -> Any:
    return run.fori_loop(0, 4, lambda i, u: v * (i + 1.0), u)


@program(U, V)
def carry_passes_through(run: Any, u: Any, v: Any) -> Any:
    return run.fori_loop(0, 4, lambda i, c: (c[0], c[1] * c[0]), (u, v))


@program(U, V)
def carry_swapped(run: Any, u: Any, v: Any) -> Any:
    return run.fori_loop(0, 5, lambda i, c: (c[1], c[0]), (u, v))


@program(U, V)
def carry_swapped_and_changed(run: Any, u: Any, v: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        u, v = c
        return v, v + 0.1 * u * v

    return run.fori_loop(0, 5, body, (u, v))


@program(U, V, U + V)
def carry_rotated(run: Any, a: Any, b: Any, c: Any) -> Any:
    return run.fori_loop(0, 4, lambda i, s: (s[1], s[2], s[0] * s[1]), (a, b, c))


@program(U)
def one_array_in_two_roles(run: Any, u: Any) -> Any:
    return run.fori_loop(0, 4, lambda i, c: (c[0] + 0.1 * c[1] * u, c[1] - u), (u, u))


@program(U)
def one_array_carried_captured_and_scanned(run: Any, u: Any) -> Any:
    return run.scan(lambda c, x: (0.5 * c + x * u, c[0] * x), u, u)


@program(U)
def body_returns_one_value_twice(run: Any, u: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        new = np.sin(c[0]) + c[1]
        return new, new

    return run.fori_loop(0, 4, body, (u, u))


@program(np.outer(U, V))
def captured_view(run: Any, a: Any) -> Any:
    column, corner = a[:, 1], a[::-2, 2:4]
    return run.fori_loop(0, 4, lambda i, s: 0.5 * s + column[:3] * np.sum(corner[i % 3]), a[1, :3])


@program(U)
def captured_array_written_before_and_after(run: Any, u: Any) -> Any:
    w = u.copy()
    w[2:] *= 2.0
    s = run.fori_loop(0, 3, lambda i, s: s + np.sum(w * (i + s)), 0.5)
    w[:2] = s
    return w


@program(U)
def loop_after_loop(run: Any, u: Any) -> Any:
    first = run.fori_loop(0, 4, lambda i, u: np.sin(u), u)
    return run.fori_loop(0, 3, lambda i, v: v * first, u)


@program(U)
def mixed_dtypes(run: Any, u: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        u, n, up = c
        u = np.where(up, u * 1.1, u * 0.7) + 0.1 * n
        return u, n + i, np.logical_not(up)

    return run.fori_loop(0, 5, body, (u, np.array(2), np.array(True)))[0]


@program(U)
def branches_by_index(run: Any, u: Any) -> Any:
    return run.fori_loop(0, 6, lambda i, u: np.where(i % 2 == 0, np.sin(u), u * u), u)


@program(np.linspace(0.1, 1.0, 1500))
def large_vector(run: Any, u: Any) -> Any:
    return run.fori_loop(0, 5, lambda i, u: u + 0.1 * np.sin(np.roll(u, 1)) * u, u)


@program(
    np.linspace(0.1, 1.0, 40 * 33).reshape(40, 33), np.linspace(0.0, 0.2, 40 * 33).reshape(40, 33)
)
def large_grid(run: Any, u: Any, k: Any) -> Any:
    def body(i: Any, u: Any) -> Any:
        flux = k[1:, :] * (u[1:, :] - u[:-1, :])
        u[:-1, :] += flux
        u[1:, :] -= flux
        u[:, 1:-1] += 0.1 * (u[:, 2:] - 2 * u[:, 1:-1] + u[:, :-2])
        return u

    return run.fori_loop(0, 4, body, u.copy())


@program(np.linspace(0.1, 1.0, 900).reshape(3, 300))
def large_rows_by_index(run: Any, a: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        a[(i + 1) % 3] = np.tanh(a[i]) * a[(i + 1) % 3]
        return a

    return run.fori_loop(0, 3, body, a.copy())


@program(np.linspace(0.1, 1.0, 700), np.linspace(0.1, 1.0, 5 * 700).reshape(5, 700))
def large_xs_and_ys(run: Any, u: Any, xs: Any) -> Any:
    return run.scan(lambda u, x: (0.5 * u * x + np.mean(u), u[::7] * x[0]), u, xs)


@program(
    np.linspace(0.1, 1.0, 7 * 8 * 13).reshape(7, 8, 13), np.linspace(-0.3, 0.3, 169).reshape(13, 13)
)
def large_batched_product(run: Any, u: Any, m: Any) -> Any:
    return run.fori_loop(0, 3, lambda i, u: np.tanh(u @ m), u)


READS_BY_INDEX = {
    "captured_view",
    "index_from_a_lower_bound",
    "index_reads_a_captured_array",
    "sum_over_rows_and_columns",
}


def leaves_of(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in ckad.trees.flatten(tree)[0]]


def assert_same(got: Any, expected: Any, rtol: float = 1e-13) -> None:
    assert len(leaves_of(got)) == len(leaves_of(expected))
    for g, e in zip(leaves_of(got), leaves_of(expected), strict=True):
        assert g.shape == e.shape
        assert g.dtype == e.dtype
        np.testing.assert_allclose(g, e, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_the_python_loop(name: str) -> None:
    fun, args = PROGRAMS[name]
    expected = fun(Python(), *args)
    assert_same(ckad.jit(lambda *a: fun(Recorded(), *a))(*args), expected)
    if name not in READS_BY_INDEX:  # a plain array takes no traced index
        assert_same(fun(Recorded(), *args), expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_unrolled_python_loop_has_the_same_gradient(name: str) -> None:
    fun, args = PROGRAMS[name]

    def total(run: Any) -> Any:
        return lambda *a: sum(np.sum(np.sin(3 * y)) for y in ckad.trees.flatten(fun(run, *a))[0])

    argnums = tuple(range(len(args)))
    got = ckad.value_and_grad(total(Recorded()), argnums)(*args)
    assert_same(got, ckad.value_and_grad(total(Python()), argnums)(*args), rtol=1e-11)


def by_python_at_plain_arrays(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Differences are of the Python loop; each point would compile a program of ckad's anew."""
    return lambda *a: fun(Recorded() if is_tracing() else Python(), *a)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name: str) -> None:
    fun, args = PROGRAMS[name]
    check_grads(by_python_at_plain_arrays(fun), args)


@pytest.mark.parametrize(
    "name", ["xs_and_ys", "writes_into_the_carry", "three_deep", "index_writes"]
)
def test_second_derivatives(name: str) -> None:
    fun, args = PROGRAMS[name]
    check_grads(by_python_at_plain_arrays(fun), args, order=2)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradient_is_bitwise_the_same_under_every_schedule(name: str) -> None:
    fun, args = PROGRAMS[name]

    def total(*a: Any) -> Any:
        return sum(np.sum(np.sin(y)) for y in ckad.trees.flatten(fun(Recorded(), *a))[0])

    argnums = tuple(range(len(args)))
    kept = ckad.value_and_grad(total, argnums)(*args)
    for schedule in ("store_all", "two_level", "revolve", lambda n: ckad.schedules.revolve(n, 1)):
        got = ckad.value_and_grad(total, argnums, schedule=schedule)(*args)
        for a, b in zip(leaves_of(kept), leaves_of(got), strict=True):
            assert a.tobytes() == b.tobytes(), schedule


# --- what the results look like ----------------------------------------------------------------


def test_results_outside_of_transformations_are_plain() -> None:
    carry, ys = ckad.scan(lambda c, x: (c + x, c), 0.0, U)
    assert isinstance(carry, np.float64)
    assert isinstance(ys, np.ndarray)
    out = ckad.fori_loop(0, 3, lambda i, c: {"n": c["n"] + i, "u": c["u"]}, {"n": 0, "u": U})
    assert out["n"] == 3
    assert out["n"].dtype == np.int64
    assert out["u"] is not U


def test_float32_stays_float32() -> None:
    u = U.astype(np.float32)
    carry, ys = ckad.scan(lambda c, x: (c * np.float32(0.5) + x, c * x), u, u)
    assert carry.dtype == ys.dtype == np.float32
    gradient = ckad.grad(lambda u: np.sum(ckad.fori_loop(0, 3, lambda i, u: 2 * np.sin(u), u)))(u)
    assert gradient.dtype == np.float32


def test_no_steps_give_empty_outputs() -> None:
    carry, ys = ckad.scan(lambda c, x: (c + x, (c * x, 2 * x)), 1.5, np.zeros(0))
    assert carry == 1.5
    assert [y.shape for y in ys] == [(0,), (0,)]
    gradient = ckad.grad(lambda c, x: ckad.scan(lambda c, x: (c + x, c), c, x)[0], (0, 1))
    assert_same(gradient(2.0, np.zeros(0)), (np.float64(1.0), np.zeros(0)))


def test_empty_arrays_are_carried() -> None:
    out = ckad.fori_loop(0, 3, lambda i, c: (c[0] * 2.0, c[1] + 1.0), (np.zeros((0, 4)), 0.0))
    assert out[0].shape == (0, 4)
    assert out[1] == 3.0


def test_a_carry_of_nothing() -> None:
    assert ckad.fori_loop(0, 3, lambda i, c: c, ()) == ()
    assert_same(ckad.scan(lambda c, x: (c, x * 2), None, U), (None, 2 * U))


def test_a_long_loop() -> None:
    n = 100_000
    value, gradient = ckad.value_and_grad(
        lambda x: ckad.fori_loop(0, n, lambda i, x: x + (1.0 - x) * 1e-4, x), memory="1 MiB"
    )(0.5)
    np.testing.assert_allclose(gradient, (1 - 1e-4) ** n, rtol=1e-9)
    np.testing.assert_allclose(value, 1 - 0.5 * (1 - 1e-4) ** n, rtol=1e-9)


def test_the_size_of_the_tape_does_not_depend_on_the_number_of_steps() -> None:
    sizes = {
        len(ckad.trace(lambda u, n=n: ckad.fori_loop(0, n, lambda i, u: np.sin(u), u))(U))  # type: ignore
        for n in (1, 10, 10**9)
    }
    assert len(sizes) == 1
