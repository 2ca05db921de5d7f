"""What programs written for JAX call: other modes and orders of derivatives, scan's options."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import DifferentiationError

pytestmark = pytest.mark.usefixtures("engine")

X = np.array([0.3, -1.2, 2.0])
Y = np.array([[1.0, 0.5], [-0.7, 1.1]])


def mixed(x: Any, y: Any) -> Any:
    return np.sum(x[:2] ** 2 @ y) * np.sin(x[2]) + np.sum(y**3)


def test_the_version_is_that_of_the_package(checkout: Path) -> None:
    found = tomllib.loads((checkout / "pyproject.toml").read_text())
    assert ckad.__version__ == found["project"]["version"]


def test_hessian_by_several_arguments() -> None:
    (xx, xy), (yx, yy) = ckad.hessian(mixed, argnums=(0, 1))(X, Y)
    assert (xx.shape, xy.shape, yx.shape, yy.shape) == ((3, 3), (3, 2, 2), (2, 2, 3), (2, 2, 2, 2))
    for f, found, at in (
        (lambda x: ckad.grad(mixed, 0)(x, Y), xx, X),
        (lambda y: ckad.grad(mixed, 0)(X, y), xy, Y),
        (lambda x: ckad.grad(mixed, 1)(x, Y), yx, X),
        (lambda y: ckad.grad(mixed, 1)(X, y), yy, Y),
    ):
        np.testing.assert_allclose(found, differences(f, at), atol=1e-8)


def differences(f: Any, x: np.ndarray) -> np.ndarray:
    h = 1e-5
    units = np.eye(x.size).reshape(x.size, *x.shape)
    columns = np.stack([(f(x + h * d) - f(x - h * d)) / (2 * h) for d in units], axis=-1)
    return columns.reshape(*columns.shape[:-1], *x.shape)


@pytest.mark.parametrize("argnums", [1, -1])
def test_hessian_by_another_argument(argnums: int) -> None:
    found = ckad.hessian(mixed, argnums)(X, Y)
    np.testing.assert_array_equal(found, ckad.hessian(mixed, (1,))(X, Y)[0][0])
    assert found.shape == (2, 2, 2, 2)


def test_hessian_by_an_argument_that_is_not_there() -> None:
    with pytest.raises(DifferentiationError, match="names argument 2"):
        ckad.hessian(mixed, argnums=2)(X, Y)


def test_jacobians_of_both_modes() -> None:
    def f(x: Any, k: float) -> Any:
        return np.cumsum(x**2) * k

    wanted = 3.0 * np.tril(np.ones((3, 3))) * 2 * X
    for made in (ckad.jacfwd(f), ckad.jacrev(f), ckad.jacrev(f, memory="1 MB")):
        np.testing.assert_allclose(made(X, 3.0), wanted, rtol=1e-14)
    np.testing.assert_allclose(ckad.jacfwd(f, 1)(X, 3.0), np.cumsum(X**2))
    np.testing.assert_allclose(ckad.jacrev(f, argnums=1)(X, 3.0), np.cumsum(X**2))


def test_linearize_pushes_as_often_as_one_likes() -> None:
    out, push = ckad.linearize(mixed, X, Y)
    assert out == mixed(X, Y)
    for k in range(3):
        tangents = np.eye(3)[k], np.full((2, 2), 0.1 * k)
        assert push(*tangents) == ckad.jvp(mixed, (X, Y), tangents)[1]
    with pytest.raises(DifferentiationError, match="tangent"):
        push(X)


# --- scan ---------------------------------------------------------------------------------


def reference(step: Any, carry: Any, xs: Any, n: int) -> Any:
    ys = [None] * n
    for k in reversed(range(n)):
        carry, ys[k] = step(carry, None if xs is None else {name: x[k] for name, x in xs.items()})
    return carry, np.array(ys)


@pytest.mark.parametrize("unroll", [1, 4, True])
def test_a_scan_from_the_end(unroll: int) -> None:
    def step(c: Any, x: Any) -> Any:
        return c * x["a"] + np.sum(x["b"]), c * c

    xs = {"a": np.linspace(0.5, 1.5, 7), "b": np.arange(14.0).reshape(7, 2)}
    wanted = reference(step, 1.0, xs, 7)
    carry, ys = ckad.scan(step, 1.0, xs, reverse=True, unroll=unroll)
    np.testing.assert_allclose(carry, wanted[0], rtol=1e-14)
    np.testing.assert_allclose(ys, wanted[1], rtol=1e-14)

    def f(c: Any, xs: Any, scan: Any) -> Any:
        carry, ys = scan(step, c, xs)
        return carry + np.sum(ys * np.arange(7))

    def scan(step: Any, c: Any, xs: Any) -> Any:
        return ckad.scan(step, c, xs, reverse=True, unroll=unroll)

    found = ckad.grad(lambda c, xs: f(c, xs, scan), (0, 1))(1.0, xs)
    np.testing.assert_allclose(
        found[1]["a"],
        differences(lambda a: f(1.0, {**xs, "a": a}, lambda s, c, x: reference(s, c, x, 7)),
                    xs["a"]),
        rtol=1e-6,
    )  # fmt: skip
    assert found[1]["b"].shape == (7, 2)


def test_a_scan_from_the_end_without_xs() -> None:
    found = ckad.scan(lambda c, _: (2 * c, c), 1.0, length=4, reverse=True)
    assert found[0] == 16
    np.testing.assert_array_equal(found[1], [8, 4, 2, 1])


# --- stop_gradient ------------------------------------------------------------------------


def test_what_is_stopped_is_a_constant() -> None:
    def f(x: Any) -> Any:
        return np.sum(x * ckad.stop_gradient(x**2))

    value, gradient = ckad.value_and_grad(f)(X)
    assert value == np.sum(X * X**2)
    np.testing.assert_array_equal(gradient, X**2)
    np.testing.assert_array_equal(ckad.hessian(f)(X), np.zeros((3, 3)))
    assert ckad.jvp(f, (X,), (X,))[1] == pytest.approx(np.sum(X**3), rel=1e-15)


def test_in_loops_and_for_parts_of_arrays() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for k in range(1, 40):
            total = total + np.sum(x[:k] * ckad.stop_gradient(x[:k]))
        return total

    x = np.linspace(0.5, 1.0, 40)
    np.testing.assert_allclose(ckad.grad(f)(x), x * np.arange(39, -1, -1), rtol=1e-13)


def test_of_structures_complex_numbers_and_integers() -> None:
    def f(tree: Any) -> Any:
        held = ckad.stop_gradient({"z": tree["z"], "n": 3, "x": tree["x"]})
        return np.abs(tree["z"] * held["z"]) ** 2 * held["n"] + tree["x"] * held["x"]

    found = ckad.grad(f)({"z": 1 + 2j, "x": 5.0})
    assert found == {"z": 3 * 5 * (2 - 4j), "x": 5.0}
    assert ckad.stop_gradient({"n": 3}) == {"n": 3}


# --- progress -----------------------------------------------------------------------------


def test_progress_is_told_to_a_function() -> None:
    seen: list[tuple[int, int]] = []

    def decay(x: Any) -> Any:
        return np.sum(ckad.fori_loop(0, 300, lambda i, x: x - 0.1 * x**2, x))

    ckad.value_and_grad(decay, progress=lambda *counts: seen.append(counts))(X)
    assert seen[-1] == (600, 600)
    ckad.grad(decay, progress=lambda *counts: np.zeros(2))(X)


def test_an_error_in_it_ends_the_run() -> None:
    def refuse(done: int, of: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        ckad.grad(lambda x: np.sum(ckad.fori_loop(0, 3, lambda i, x: x**2, x)), progress=refuse)(X)


# --- without Numba's compiler -------------------------------------------------------------


def test_without_jit_both_engines_run(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    ckad.clear_caches()
    np.testing.assert_array_equal(ckad.grad(np.sum, engine=engine)(X), np.ones(3))
