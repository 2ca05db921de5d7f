"""Products of large matrices, which threads share: value, gradient, bits, memory budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import ckad
from ckad.engines import blas

M, N = 217, 203
STEPS = 6
RANDOM = np.random.default_rng(5)
A = RANDOM.normal(size=(M, N)) / 14
SQUARE = RANDOM.normal(size=(N, N)) / 14
X, Y = RANDOM.normal(size=N), RANDOM.normal(size=M)


def power(a, x):
    for _ in range(STEPS):
        x = a @ x
        x = x / np.sqrt(np.sum(x * x))
    return x


def normal_equations(a, x):
    for _ in range(STEPS):
        x = x - 0.1 * (a.T @ (a @ x))
    return x


def in_branches(a, x):
    for k in range(STEPS):
        x = a @ x if np.sum(x) > 0 else np.tanh(x @ a) + k
    return x


def until(a, x):
    n = 0
    while n < 20:
        x = 0.9 * (a @ x)
        n += 1
        if np.sum(x * x) < 1e-1:
            break
    return x + n


def in_nested_loops(a, x):
    for _ in range(3):
        for _ in range(2):
            x = np.sin(a @ x)
        x = x + a.T @ x
    return x


class Layer:
    def __init__(self, weights):
        self.weights = weights

    def both(self, x):
        return self.weights @ x, x @ self.weights


def by_method(a, x):
    y, z = Layer(a).both(x)
    return y * z


def columns_changed(a, x):
    b = a.copy()
    b[:, 3] = x
    return b @ x + b.T @ x


#: Of a square matrix and a vector.
SQUARES: dict[str, Callable] = {
    "A x": lambda a, x: a @ x,
    "A.T x": lambda a, x: a.T @ x,
    "x A": lambda a, x: x @ a,
    "A.T (A x)": lambda a, x: a.T @ (a @ x),
    "A (A.T x)": lambda a, x: a @ (a.T @ x),
    "A x, A.T x": lambda a, x: np.sin(a @ x) * (a.T @ x),
    "twice the same": lambda a, x: (a @ x) * (a @ x) + a @ (2 * x),
    "A x, A.T x, A sin x": lambda a, x: (a @ x) * (a.T @ x) + a @ np.sin(x),
    "a column": lambda a, x: (a @ x[:, None])[:, 0] + (x[None, :] @ a)[0],
    "repeated scalar": lambda a, x: a @ np.full(N, x[0]) + a.T @ np.ones(N) * x,
    "np.dot, einsum": lambda a, x: np.dot(a, x) + np.einsum("ij,i->j", a, x),
    "outer": lambda a, x: (a + np.outer(x, x)) @ x,
    "part of a matrix": lambda a, x: a[:200] @ x,
    "a row is written": columns_changed,
    "power iteration": power,
    "normal equations": normal_equations,
    "branches": in_branches,
    "while with break": until,
    "nested loops": in_nested_loops,
    "a method": by_method,
    "gradient inside": lambda a, x: ckad.grad(lambda v: np.sum(np.sin(a @ v)))(x),
    "products of matrices": lambda a, x: ((a @ a.T) @ (a.T @ a)) @ x,
    "by their own transposes": lambda a, x: (a.T @ a + np.sin(a @ a.T)) @ x,
    "a stack by its own transposes": lambda a, x: (
        (s := np.stack([a, a * a])).swapaxes(1, 2) @ s @ x
    ),
    "a stack": lambda a, x: np.sum(np.stack([a, a.T, a * a]) @ a, axis=(0, 2)) * x,
}


def total(f: Callable) -> Callable:
    return lambda *arrays: np.sum(np.cos(f(*arrays)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SQUARES)
def test_engines_modes_and_threads_agree(name: str) -> None:
    f = SQUARES[name]
    value = total(f)
    if name != "gradient inside":
        np.testing.assert_allclose(ckad.jit(f, engine="native")(SQUARE, X), f(SQUARE, X), 1e-10)
    native = [
        ckad.value_and_grad(value, (0, 1), engine="native", threads=t)(SQUARE, X) for t in (1, 2, 3)
    ]
    bits = [(v.tobytes(), *(g.tobytes() for g in gs)) for v, gs in native]
    assert bits[0] == bits[1] == bits[2]
    by_vm = ckad.value_and_grad(value, (0, 1), engine="vm")(SQUARE, X)
    towards = RANDOM.normal(size=(N, N)), RANDOM.normal(size=N)
    for a, b in zip(native[0][1], by_vm[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    _, slope = ckad.jvp(value, (SQUARE, X), towards, engine="native")
    by_reverse = sum(np.sum(g * t) for g, t in zip(native[0][1], towards, strict=True))
    np.testing.assert_allclose(slope, by_reverse, rtol=1e-9)
    h = 1e-5
    run = ckad.jit(value, engine="vm")
    ahead, back = (run(SQUARE + s * towards[0], X + s * towards[1]) for s in (h, -h))
    np.testing.assert_allclose(slope, (ahead - back) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["power iteration", "normal equations", "nested loops"])
def test_bits_stay_under_budgets(name: str) -> None:
    f = total(SQUARES[name])
    plain = ckad.value_and_grad(f, (0, 1), engine="native")(SQUARE, X)
    tight = ckad.value_and_grad(f, (0, 1), engine="native", memory="5 MB")(SQUARE, X)
    assert plain[0].tobytes() == tight[0].tobytes()
    for a, b in zip(plain[1], tight[1], strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("m", "n"), [(217, 203), (64, 513), (3001, 17), (17, 3001), (1030, 32)])
def test_shapes_of_a_matrix_by_a_vector(m: int, n: int, dtype: type) -> None:
    a, x, y = (RANDOM.normal(size=s).astype(dtype) for s in ((m, n), n, m))

    def f(a, x, y):
        return a @ x, a.T @ y, a.T @ (a @ x), y @ a, a @ (y @ a)

    for got, expected in zip(ckad.jit(f, engine="native")(a, x, y), f(a, x, y), strict=True):
        assert got.dtype == dtype
        scale = np.max(np.abs(expected))
        np.testing.assert_allclose(got, expected, atol=scale * m * n * np.finfo(dtype).eps / 16)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("turned", ["", "x", "y", "xy"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(520, 70, 150), (150, 70, 520), (300, 300, 300), (130, 2100, 140)]
)
def test_shapes_of_large_products(m: int, k: int, n: int, turned: str, dtype: type) -> None:
    x = RANDOM.normal(size=(k, m) if "x" in turned else (m, k)).astype(dtype)
    y = RANDOM.normal(size=(n, k) if "y" in turned else (k, n)).astype(dtype)

    def f(x, y):
        return (x.T if "x" in turned else x) @ (y.T if "y" in turned else y)

    found = [ckad.jit(f, engine="native", threads=t)(x, y) for t in (1, 2)]
    assert found[0].tobytes() == found[1].tobytes()
    np.testing.assert_allclose(found[0], f(x, y), atol=8 * k * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize(("k", "n"), [(500, 100), (900, 217), (70, 500), (20, 1030)])
def test_a_matrix_by_its_own_transpose(k: int, n: int, turned: int, dtype: type) -> None:
    x = RANDOM.normal(size=(n, k) if turned else (k, n)).astype(dtype)

    def f(x):
        return x @ x.T if turned else x.T @ x

    found = [ckad.jit(f, engine="native", threads=t)(x) for t in (1, 2)]
    assert found[0].tobytes() == found[1].tobytes()
    np.testing.assert_allclose(found[0], f(x), atol=8 * k * np.finfo(dtype).eps)
    if n <= 1024:
        np.testing.assert_array_equal(found[0], found[0].T)


@pytest.mark.parametrize("f", [lambda x: x.T @ x, lambda x: x @ x.T])
def test_one_product_derives_both_factors_that_are_one_matrix(f: Callable) -> None:
    x, w = RANDOM.normal(size=(9, 7)), RANDOM.normal(size=(9, 9))

    def weighted(x):
        square = f(x)
        return np.sum(w[: len(square), : len(square)] * np.sin(square))

    tape = ckad.grad(weighted).compiled(x).tape
    assert sum(row.op.name == "MATMUL" for row in tape.rows) == 2
    ckad.testing.check_grads(weighted, (x,), order=2)


def test_a_large_product_of_float32_is_added_up_as_float32() -> None:
    x = RANDOM.normal(size=(300, 300)).astype(np.float32)
    exact = x.astype(np.float64) @ x.astype(np.float64)
    error = np.max(np.abs(ckad.jit(lambda x: x @ x, engine="native")(x) - exact))
    assert error < 300 * np.finfo(np.float32).eps * np.max(np.abs(exact))


def test_the_threads_of_blas_are_given_back() -> None:
    get, put = blas._threads()
    before = get()
    with blas.one_thread(), blas.one_thread():
        assert get() == 1
    assert get() == before
    with pytest.raises(ZeroDivisionError), blas.one_thread():
        raise ZeroDivisionError
    assert get() == before
    put(before)


MATRIX = np.eye(5) + 0.1 * RANDOM.normal(size=(5, 5))


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize(
    ("module", "name", "fun"),
    [
        (scipy.linalg, "logm", scipy.linalg.logm),
        (scipy.linalg, "sqrtm", scipy.linalg.sqrtm),
    ],
)
def test_what_python_calls_of_scipy_has_one_thread_of_blas(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, fun: Callable[..., Any], engine: str
) -> None:
    (get, put), seen = blas._threads(), list[int]()
    before, own = get(), getattr(module, name)
    run = ckad.jit(fun, engine=engine)
    run(MATRIX)

    def noted(*matrices: np.ndarray, **options: Any) -> Any:
        seen.append(get())
        return own(*matrices, **options)

    put(2)
    try:
        monkeypatch.setattr(module, name, noted)
        run(MATRIX)
    finally:
        put(before)
    assert seen == [1]


def test_a_transpose_is_read_where_it_lies() -> None:
    def f(a, b, x):
        return np.sum((a.T @ b.T) * 2) + np.sum(np.einsum("kij,kl->ijl", a.reshape(N, 7, 29), b))

    b = RANDOM.normal(size=(N, N))
    tape = ckad.value_and_grad(f, (0, 1)).compiled(SQUARE, b, X).tape
    assert not [row for row in tape.rows if row.op.name == "TRANSPOSE" and row.type.size > N]
