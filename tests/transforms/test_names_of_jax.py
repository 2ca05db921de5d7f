"""What programs written for JAX call: other modes and orders of derivatives, scan's options."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

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


class Model(NamedTuple):
    rates: Any
    level: Any


def responses(model: Model, x: Any, n: int = 20) -> dict[str, Any]:
    total = 0.0
    for _ in range(n):
        x = x + 0.05 * (model.level - x @ model.rates)
        total = total + x[0] ** 2
    return {"at": (x, np.argmax(x)), "total": total}


RATES, LEVEL = np.array([[0.4, 0.1], [-0.2, 0.3]]), 0.7


def joined(z: Any) -> Any:
    found = responses(Model(z[:4].reshape(2, 2), z[4]), z[5:])
    return np.append(found["at"][0], found["total"])


@pytest.mark.parametrize("mode", ["fwd", "rev", "auto"])
def test_jacobians_of_structures(mode: str) -> None:
    x = np.array([1.0, -0.5])
    found = ckad.jacobian(responses, (0, 1), mode)(Model(RATES, LEVEL), x)
    whole = ckad.jacobian(joined)(np.concatenate([RATES.ravel(), [LEVEL], x]))
    for (by_model, by_x), rows in (found["at"][0], slice(0, 2)), (found["total"], 2):
        rest = whole[rows].shape[:-1]
        same(by_model.rates, whole[rows, :4].reshape(*rest, 2, 2))
        same(by_model.level, whole[rows, 4])
        same(by_x, whole[rows, 5:])
    still = found["at"][1]
    assert [np.shape(z) for z in (*still[0], still[1])] == [(2, 2), (), (2,)]
    alone = ckad.jacobian(responses, mode=mode, memory="1 MB")(Model(RATES, LEVEL), x)
    assert isinstance(alone["total"], Model)
    np.testing.assert_array_equal(alone["total"].rates, found["total"][0].rates)


def same(found: Any, wanted: Any) -> None:
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


def test_hessians_of_structures() -> None:
    x = np.array([1.0, -0.5])

    def total(model: Model, x: Any) -> Any:
        return responses(model, x)["total"]

    whole = ckad.hessian(lambda z: joined(z)[2])(np.concatenate([RATES.ravel(), [LEVEL], x]))
    by = ckad.hessian(total, (0, 1))(Model(RATES, LEVEL), x)
    same(by[0].rates[0].rates, whole[:4, :4].reshape(2, 2, 2, 2))
    same(by[0].rates[0].level, whole[:4, 4].reshape(2, 2))
    same(by[0].level[0].rates, whole[4, :4].reshape(2, 2))
    same(by[0].level[0].level, whole[4, 4])
    same(by[0].rates[1], whole[:4, 5:].reshape(2, 2, 2))
    same(by[1][0].rates, whole[5:, :4].reshape(2, 2, 2))
    same(by[1][1], whole[5:, 5:])
    alone = ckad.hessian(total)(Model(RATES, LEVEL), x)
    same(alone.level.rates, by[0].level[0].rates)
    nested = ckad.jacobian(lambda m: ckad.hessian(total)(m, x).level.level)(Model(RATES, LEVEL))
    assert nested.rates.shape == (2, 2)


@pytest.mark.parametrize(
    ("compute", "says"),
    [
        (lambda: ckad.jacobian(lambda d: d["a"] * 1j)({"a": X}), "the result is complex"),
        (lambda: ckad.hessian(lambda d: abs(d["a"]) ** 2)({"a": 1j}), "argument 0 is complex"),
        (lambda: ckad.jacobian(lambda d: d["a"])({"a": X, "n": 2}), "holds int"),
        (lambda: ckad.jacobian(lambda a, b: a, (0, 2))(X, X), "names argument 2"),
    ],
)
def test_jacobians_that_there_are_not(compute: Any, says: str) -> None:
    with pytest.raises(DifferentiationError, match=says):
        compute()


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
