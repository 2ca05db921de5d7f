"""The transformations: arguments, structures, dtypes, nesting, threads, fork, interrupts."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import ckad

pytestmark = pytest.mark.usefixtures("engine")

X = np.linspace(0.2, 1.0, 5)
Y = np.cos(np.arange(5.0))
Point = namedtuple("Point", ["x", "y"])


@dataclass
class Model:
    weights: Any
    offset: Any = 0.0


def energy(x: Any, y: Any = 2.0) -> Any:
    return np.sum(np.sin(x) * y)


def decay(u: Any, k: Any = 0.1) -> Any:
    return np.sum(ckad.fori_loop(0, 6, lambda i, u: u - k * np.sin(u), u) ** 2)


# --- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("argnums", [0, -2])
def test_one_argument(argnums: int) -> None:
    value, gradient = ckad.value_and_grad(energy, argnums)(X, Y)
    np.testing.assert_allclose(value, energy(X, Y), rtol=1e-14)
    np.testing.assert_allclose(gradient, np.cos(X) * Y, rtol=1e-14)


@pytest.mark.parametrize("argnums", [1, -1])
def test_the_other_argument(argnums: int) -> None:
    np.testing.assert_allclose(ckad.grad(energy, argnums)(X, Y), np.sin(X), rtol=1e-14)


@pytest.mark.parametrize("argnums", [(0, 1), [0, 1], (0, -1), (1, 0)])
def test_several_arguments_give_a_tuple(argnums: Any) -> None:
    gradients = ckad.grad(energy, argnums)(X, Y)
    assert type(gradients) is tuple
    for n, gradient in zip(argnums, gradients, strict=True):
        np.testing.assert_allclose(gradient, [np.cos(X) * Y, np.sin(X)][n], rtol=1e-14)


def test_a_tuple_of_one_argument_gives_a_tuple_of_one() -> None:
    (gradient,) = ckad.grad(energy, (0,))(X)
    np.testing.assert_allclose(gradient, 2 * np.cos(X), rtol=1e-14)


def test_keyword_arguments_are_passed_on() -> None:
    value, gradient = ckad.value_and_grad(energy)(X, y=3.0)
    np.testing.assert_allclose(value, energy(X, 3.0), rtol=1e-14)
    np.testing.assert_allclose(gradient, 3 * np.cos(X), rtol=1e-14)
    assert ckad.jit(energy)(X, y=Y) == pytest.approx(energy(X, Y), rel=1e-14)


def test_other_arguments_may_be_anything() -> None:
    def f(x: Any, n: Any, name: Any, table: Any, nothing: Any, fun: Any) -> Any:
        assert name == "sum"
        assert nothing is None
        return np.sum(fun(x) ** n + table[1])

    gradient = ckad.grad(f)(X, 3, "sum", [1, 2], None, np.sin)
    np.testing.assert_allclose(gradient, 3 * np.sin(X) ** 2 * np.cos(X), rtol=1e-13)


def test_python_ints_stay_python_ints() -> None:
    def f(x: Any, n: Any) -> Any:
        return sum(x[k] for k in range(n))

    np.testing.assert_array_equal(ckad.grad(f)(X, 2), [1, 1, 0, 0, 0])


def test_integer_arrays_may_be_passed_along() -> None:
    index = np.array([3, 3, 0])
    gradient = ckad.grad(lambda x, i: np.sum(x[i] * 2.0))(X, index)
    np.testing.assert_array_equal(gradient, [2, 0, 0, 4, 0])


def test_lists_are_pytrees_of_numbers() -> None:
    assert ckad.grad(lambda x: x[0] * x[1])([2.0, 3.0]) == [3.0, 2.0]


def test_an_argument_that_does_not_matter_has_a_zero_gradient() -> None:
    gradients = ckad.grad(lambda x, y: np.sum(x), (0, 1))(X, Y)
    np.testing.assert_array_equal(gradients[1], np.zeros(5))


# --- results -----------------------------------------------------------------------------------


def test_has_aux() -> None:
    def f(x: Any) -> Any:
        y = np.sin(x)
        return np.sum(y), {"y": y, "n": 3}

    (value, aux), gradient = ckad.value_and_grad(f, has_aux=True)(X)
    np.testing.assert_allclose(value, np.sum(np.sin(X)), rtol=1e-14)
    np.testing.assert_allclose(aux["y"], np.sin(X), rtol=1e-14)
    assert aux["n"] == 3
    alone, aux = ckad.grad(f, has_aux=True)(X)
    np.testing.assert_array_equal(alone, gradient)
    assert set(aux) == {"y", "n"}


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda a, b: (a, b), lambda t: t),
        (lambda a, b: [a, b], lambda t: t),
        (lambda a, b: {"b": b, "a": a}, lambda t: (t["a"], t["b"])),
        (Point, lambda t: (t.x, t.y)),
        (Model, lambda t: (t.weights, t.offset)),
        (
            lambda a, b: {"deep": [(a, None), Point(b, None)]},
            lambda t: (t["deep"][0][0], t["deep"][1].x),
        ),
    ],
    ids=["tuple", "list", "dict", "namedtuple", "dataclass", "nested"],
)
def test_structures(make: Any, parts: Any) -> None:
    def f(tree: Any) -> Any:
        a, b = parts(tree)
        return np.sum(np.sin(a) * b)

    tree = make(X, 2.0)
    value, gradient = ckad.value_and_grad(f)(tree)
    assert type(gradient) is type(tree)
    a, b = parts(gradient)
    np.testing.assert_allclose(a, 2 * np.cos(X), rtol=1e-14)
    assert b == pytest.approx(np.sum(np.sin(X)), rel=1e-14)
    assert value == pytest.approx(f(tree), rel=1e-14)
    out = ckad.jit(lambda t: make(*parts(t)))(tree)
    assert type(out) is type(tree)
    np.testing.assert_array_equal(parts(out)[0], X)
    _, pullback = ckad.vjp(lambda t: make(*parts(t)), tree)
    np.testing.assert_array_equal(parts(pullback(make(Y, 3.0))[0])[0], Y)
    _, moved = ckad.jvp(lambda t: make(*parts(t)), (tree,), (make(Y, 3.0),))
    np.testing.assert_array_equal(parts(moved)[0], Y)


def test_python_floats_give_numpy_scalars() -> None:
    value, gradient = ckad.value_and_grad(lambda x: x**2)(3.0)
    assert type(value) is np.float64
    assert type(gradient) is np.float64
    assert (value, gradient) == (9.0, 6.0)
    assert type(ckad.jvp(np.sin, (1.0,), (1.0,))[1]) is np.float64
    assert type(ckad.vjp(np.sin, 1.0)[1](1.0)[0]) is np.float64


def test_arrays_without_axes_stay_arrays() -> None:
    gradient = ckad.grad(lambda x: np.sum(x**2))(np.array(3.0))
    assert isinstance(gradient, np.ndarray)
    assert gradient.shape == ()
    assert gradient == 6.0
    assert isinstance(ckad.jit(lambda x: x)(np.array(3.0)), np.ndarray)


def test_float32_in_float32_out() -> None:
    x = X.astype(np.float32)
    value, gradient = ckad.value_and_grad(lambda x: np.sum(np.sin(x) * 2.0))(x)
    assert type(value) is np.float32
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, 2 * np.cos(x), rtol=1e-6)
    assert type(ckad.grad(lambda x: x * x)(np.float32(2))) is np.float32


def test_mixed_precision() -> None:
    x, y = X.astype(np.float32), Y
    gx, gy = ckad.grad(lambda x, y: np.sum(x * y), (0, 1))(x, y)
    assert (gx.dtype, gy.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(gx, y.astype(np.float32))
    out, tangent = ckad.jvp(lambda x: x * 1.5, (x,), (np.ones(5),))
    assert (out.dtype, tangent.dtype) == (np.float32, np.float32)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (1,), (2, 3, 4)])
def test_shapes(shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    np.testing.assert_array_equal(ckad.grad(lambda x: np.sum(x * x))(x), 2 * x)


# --- closures ----------------------------------------------------------------------------------


def test_a_changed_closure_changes_the_gradient() -> None:
    weights = np.ones(5)
    gradient = ckad.grad(lambda x: np.sum(weights * x * x))
    np.testing.assert_array_equal(gradient(X), 2 * X)
    weights[:] = 3.0
    np.testing.assert_array_equal(gradient(X), 6 * X)


@pytest.mark.parametrize("schedule", ["store_all", "two_level", "revolve"])
def test_the_second_control_after_the_first(schedule: str) -> None:
    forcing = np.ones(5)

    def f(u: Any) -> Any:
        return np.sum(ckad.fori_loop(0, 20, lambda i, u: np.sin(u + 0.1 * forcing), u) ** 2)

    gradient = ckad.value_and_grad(f, schedule=schedule)
    gradient(X)
    forcing[2] = -2.0
    for control in (Y, X):
        got, fresh = gradient(control), ckad.value_and_grad(f)(control)
        assert got[0] == fresh[0]
        assert got[1].tobytes() == fresh[1].tobytes()


def test_a_changed_global_number_and_argument() -> None:
    scale = 1.0

    def f(x: Any, n: int) -> Any:
        return scale * np.sum(x**n)

    gradient = ckad.grad(f)
    np.testing.assert_allclose(gradient(X, 2), 2 * X, rtol=1e-14)
    scale = 5.0
    np.testing.assert_allclose(gradient(X, 3), 15 * X**2, rtol=1e-14)


def test_a_gradient_after_an_error_is_right() -> None:
    table = np.arange(5.0)

    def f(x: Any, offset: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            return s * x[i + offset] + np.sum(table)

        return ckad.fori_loop(0, 5, body, 1.0)

    gradient = ckad.grad(f)
    right = gradient(X, np.array(0))
    with pytest.raises(ckad.errors.TracedIndexError):
        gradient(X, np.array(3))
    assert gradient(X, np.array(0)).tobytes() == right.tobytes()


# --- vjp, jvp and the others -------------------------------------------------------------------


def test_a_pullback_runs_again_and_again() -> None:
    out, pullback = ckad.vjp(lambda x, k: k * np.sin(x), X, 2.0)
    np.testing.assert_allclose(out, 2 * np.sin(X), rtol=1e-14)
    for ct in (Y, X, Y):
        gx, gk = pullback(ct)
        np.testing.assert_allclose(gx, 2 * np.cos(X) * ct, rtol=1e-14)
        assert gk == pytest.approx(np.sum(np.sin(X) * ct), rel=1e-13)


def test_cotangents_of_integer_results_are_ignored() -> None:
    _, pullback = ckad.vjp(lambda x: (2 * x, np.argmax(x)), X)
    np.testing.assert_array_equal(pullback((Y, 7))[0], 2 * Y)


def test_jvp_of_integer_results_is_zero() -> None:
    out, tangent = ckad.jvp(lambda x: (2 * x, np.argmax(x)), (X,), (Y,))
    np.testing.assert_array_equal(tangent[0], 2 * Y)
    assert (out[1], tangent[1]) == (4, 0)


def test_jvp_with_an_argument_that_is_no_float() -> None:
    _, tangent = ckad.jvp(lambda x, n: x**n, (X, 2), (Y, 0))
    np.testing.assert_allclose(tangent, 2 * X * Y, rtol=1e-14)


@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
@pytest.mark.parametrize("argnums", [0, 1, -1])
def test_jacobian(mode: str, argnums: int) -> None:
    a = np.arange(6.0).reshape(2, 3)
    jacobian = ckad.jacobian(lambda a, x: np.sin(a @ x), argnums, mode)(a, X[:3])
    slope = np.cos(a @ X[:3])
    by_a = np.einsum("i,ij,k->ijk", slope, np.eye(2), X[:3])
    expected = by_a if argnums == 0 else slope[:, None] * a
    assert jacobian.shape == expected.shape
    np.testing.assert_allclose(jacobian, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_jacobian_of_scalars(mode: str) -> None:
    assert ckad.jacobian(np.sin, mode=mode)(0.0) == 1.0
    np.testing.assert_allclose(ckad.jacobian(lambda x: np.sum(x**2), mode=mode)(X), 2 * X)
    np.testing.assert_allclose(ckad.jacobian(lambda k: k * X, mode=mode)(2.0), X)
    assert ckad.jacobian(lambda x: 2 * x, mode=mode)(np.zeros(0)).shape == (0, 0)


def test_jacobian_keeps_float32() -> None:
    jacobian = ckad.jacobian(lambda x: x * x)(X.astype(np.float32))
    assert jacobian.dtype == np.float32
    assert ckad.hessian(lambda x: np.sum(x**3))(X.astype(np.float32)).dtype == np.float32


def test_hessian_and_hvp() -> None:
    def f(x: Any) -> Any:
        return np.sum(x**3) + x[0] * x[1] ** 2

    h = 6 * np.diag(X)
    h[0, 1] = h[1, 0] = 2 * X[1]
    h[1, 1] += 2 * X[0]
    np.testing.assert_allclose(ckad.hessian(f)(X), h, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(ckad.hvp(f, (X,), (Y,)), h @ Y, rtol=1e-13)


def test_hvp_through_a_loop() -> None:
    h = ckad.hessian(decay)(X)
    np.testing.assert_allclose(h, h.T, atol=1e-15)
    np.testing.assert_allclose(ckad.hvp(decay, (X,), (Y,)), h @ Y, rtol=1e-12)
    e = 1e-5
    d = (ckad.grad(decay)(X + e * Y) - ckad.grad(decay)(X - e * Y)) / (2 * e)
    np.testing.assert_allclose(h @ Y, d, rtol=1e-8)


def test_hvp_of_a_pytree() -> None:
    product = ckad.hvp(
        lambda p: np.sum(p["a"] ** 2 * p["b"]), ({"a": X, "b": 2.0},), ({"a": Y, "b": 1.0},)
    )
    np.testing.assert_allclose(product["a"], 4 * Y + 2 * X, rtol=1e-13)
    assert product["b"] == pytest.approx(2 * X @ Y, rel=1e-13)


def test_trace_adjoint_and_tangent_are_tapes_that_run() -> None:
    from ckad.rules.evaluate import evaluate

    tape = ckad.trace(energy)(X, Y)
    assert isinstance(tape, ckad.Tape)
    np.testing.assert_allclose(evaluate(tape, X, Y)[0], energy(X, Y), rtol=1e-14)
    by_x, by_y = evaluate(ckad.adjoint(tape), X, Y, 1.0)
    np.testing.assert_allclose(by_x, np.cos(X) * Y, rtol=1e-14)
    np.testing.assert_allclose(by_y, np.sin(X), rtol=1e-14)
    value, moved = evaluate(ckad.tangent(tape), X, Y, Y, X)
    np.testing.assert_allclose(moved, by_x @ Y + by_y @ X, rtol=1e-13)
    np.testing.assert_allclose(value, energy(X, Y), rtol=1e-14)


def test_a_tape_names_the_users_lines() -> None:
    assert {source.file for source in ckad.trace(energy)(X).sources} >= {__file__}


# --- nested transformations --------------------------------------------------------------------


def test_grad_of_grad() -> None:
    second = ckad.grad(ckad.grad(lambda x: x**3 + np.sin(x)))
    assert second(0.7) == pytest.approx(6 * 0.7 - np.sin(0.7), rel=1e-13)
    third = ckad.grad(second)
    assert third(0.7) == pytest.approx(6 - np.cos(0.7), rel=1e-13)


def test_every_pair_of_modes() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x) ** 2)

    expected = 2 * np.cos(2 * X) * Y
    forward_reverse = ckad.jvp(ckad.grad(f), (X,), (Y,))[1]
    reverse_forward = ckad.grad(lambda x: ckad.jvp(f, (x,), (Y,))[1])(X)
    reverse_reverse = ckad.grad(lambda x: np.sum(ckad.grad(f)(x) * Y))(X)
    forward_forward = ckad.jvp(lambda x: ckad.jvp(f, (x,), (Y,))[1], (X,), (X,))[1]
    for product in (forward_reverse, reverse_forward, reverse_reverse):
        np.testing.assert_allclose(product, expected, rtol=1e-12)
    assert forward_forward == pytest.approx(expected @ X, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"memory": "1 MiB"}, {"schedule": "revolve"}])
def test_grad_of_grad_through_a_loop(options: dict[str, Any]) -> None:
    inner = ckad.grad(decay)
    got = ckad.grad(lambda u: np.sum(inner(u) * Y), **options)(X)
    np.testing.assert_allclose(got, ckad.hvp(decay, (X,), (Y,)), rtol=1e-12)


def test_perturbations_are_not_confused() -> None:
    def f(x: Any) -> Any:
        return x * ckad.grad(lambda y: x + y)(1.0)

    assert ckad.grad(f)(3.0) == 1.0

    def g(x: Any) -> Any:
        return x * ckad.jvp(lambda y: x * y, (2.0,), (1.0,))[1]

    assert ckad.grad(g)(3.0) == 6.0
    assert ckad.jvp(g, (3.0,), (1.0,))[1] == 6.0


def test_grad_inside_jit() -> None:
    descend = ckad.jit(lambda x: x - 0.1 * ckad.grad(energy)(x))
    np.testing.assert_allclose(descend(X), X - 0.2 * np.cos(X), rtol=1e-14)
    value, gradient = ckad.jit(ckad.value_and_grad(decay))(X)
    np.testing.assert_array_equal(gradient, ckad.grad(decay)(X))
    assert value == ckad.jit(decay)(X)


def test_jit_inside_grad() -> None:
    np.testing.assert_array_equal(ckad.grad(ckad.jit(decay))(X), ckad.grad(decay)(X))


def test_grad_inside_a_loop_body() -> None:
    def descent(x: Any) -> Any:
        return ckad.fori_loop(0, 5, lambda i, x: x - 0.1 * ckad.grad(energy)(x), x)

    expected = X
    for _ in range(5):
        expected = expected - 0.2 * np.cos(expected)
    np.testing.assert_allclose(descent(X), expected, rtol=1e-13)
    ckad.testing.check_grads(descent, (X,))


def test_grad_of_a_loop_inside_a_loop_body() -> None:
    def descent(x: Any, k: Any) -> Any:
        return ckad.fori_loop(0, 3, lambda i, x: x - 0.1 * ckad.grad(decay)(x, k), x)

    ckad.testing.check_grads(descent, (X, 0.1))


def test_inner_function_captures_the_outer_argument() -> None:
    def f(x: Any) -> Any:
        return np.sum(ckad.grad(lambda y: np.sum(y**2 * x))(x * 3.0))

    np.testing.assert_allclose(ckad.grad(f)(X), 12 * X, rtol=1e-13)


def test_vjp_and_jvp_inside_jit() -> None:
    def f(x: Any) -> Any:
        out, pullback = ckad.vjp(np.sin, x)
        return pullback(out)[0] + ckad.jvp(np.cos, (x,), (x,))[1]

    np.testing.assert_allclose(ckad.jit(f)(X), np.sin(X) * np.cos(X) - X * np.sin(X), rtol=1e-13)


def test_jacobian_and_hessian_inside_grad() -> None:
    def f(x: Any) -> Any:
        return np.trace(ckad.hessian(lambda x: np.sum(x**4))(x)) + np.sum(ckad.jacobian(np.sin)(x))

    np.testing.assert_allclose(ckad.grad(f)(X), 24 * X - np.sin(X), rtol=1e-12)


def test_scipy_minimize_takes_value_and_grad_as_it_is() -> None:
    def rosenbrock(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    found = scipy.optimize.minimize(
        ckad.value_and_grad(rosenbrock), np.full(4, 1.3), jac=True, method="L-BFGS-B"
    )
    np.testing.assert_allclose(found.x, np.ones(4), atol=1e-4)
    found = scipy.optimize.minimize(
        rosenbrock,
        np.full(4, 1.3),
        jac=ckad.grad(rosenbrock),
        hessp=lambda x, v: ckad.hvp(rosenbrock, (x,), (v,)),
        method="Newton-CG",
    )
    np.testing.assert_allclose(found.x, np.ones(4), atol=1e-4)


def test_args_of_scipy_minimize_are_passed_on() -> None:
    fun = ckad.value_and_grad(lambda x, target: np.sum((x - target) ** 2))
    found = scipy.optimize.minimize(fun, np.zeros(5), args=(Y,), jac=True)
    np.testing.assert_allclose(found.x, Y, atol=1e-6)


# --- threads, fork, interrupts -----------------------------------------------------------------


def test_eight_threads_at_once() -> None:
    def long(u: Any, k: Any) -> Any:
        return np.sum(ckad.fori_loop(0, 300, lambda i, u: u - k * np.sin(u), u))

    gradients = [ckad.grad(long), ckad.grad(decay), ckad.grad(long, memory="1 MiB")]
    inputs = [(X * (1 + n / 50), 0.01 * n) for n in range(24)]
    expected = [gradients[n % 3](*args) for n, args in enumerate(inputs)]

    def run(n: int) -> Any:
        return gradients[n % 3](*inputs[n])

    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            for got, right in zip(pool.map(run, range(24)), expected, strict=True):
                assert got.tobytes() == right.tobytes()


def test_threads_record_different_functions_at_once() -> None:
    def run(n: int) -> Any:
        return ckad.grad(lambda x: np.sum(ckad.fori_loop(0, n, lambda i, x: x * 1.01 + n, x)))(X)

    with ThreadPoolExecutor(8) as pool:
        for n, got in enumerate(pool.map(run, range(32))):
            np.testing.assert_allclose(got, np.full(5, 1.01**n), rtol=1e-12)


def _in_child(queue: Any, expected: bytes) -> None:
    queue.put(ckad.grad(decay)(X).tobytes() == expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_after_use() -> None:
    expected = ckad.grad(decay)(X).tobytes()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_in_child, args=(queue, expected)) for _ in range(2)]
    for child in children:
        child.start()
    assert [queue.get(timeout=60) for _ in children] == [True, True]
    for child in children:
        child.join(60)
        assert child.exitcode == 0


LONG = """
    import signal, sys, time
    import numpy as np, ckad

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have it ignored

    def long(u):
        return np.sum(ckad.fori_loop(0, 10**9, lambda i, u: np.sin(u), u))

    def short(u):
        return np.sum(ckad.fori_loop(0, 3, lambda i, u: np.sin(u), u))

    run = {call}
    ckad.grad(short, memory="32 MiB", schedule="revolve", engine="{engine}")(np.ones(4))
    ckad.grad(short, memory="32 MiB", engine="{engine}")(np.ones(4))
    print("ready", flush=True)
    try:
        run(np.ones({size}))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize(
    ("call", "size"),
    [
        ("ckad.jit(long, engine='{engine}')", 4),
        ("ckad.grad(long, memory='32 MiB', engine='{engine}')", 4),
        pytest.param("ckad.jit(long, engine='{engine}')", 100_000, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_is_answered(call: str, size: int, engine: str) -> None:
    call = call.format(engine=engine)
    assert any(seconds_to_answer(call, size, engine) < 0.5 for _ in range(2))


def seconds_of(process: int) -> float:
    """Processor time where it is told, so that other processes may be in the way."""
    told = Path(f"/proc/{process}/stat")
    if not told.exists():
        return time.perf_counter()
    used = told.read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def seconds_to_answer(call: str, size: int, engine: str) -> float:
    program = textwrap.dedent(LONG.format(call=call, size=size, engine=engine))
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(1.0)
        assert child.poll() is None, child.stderr
        begin = seconds_of(child.pid)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        seconds = seconds_of(child.pid) - begin
        child.communicate(timeout=60)
        return seconds
    finally:
        child.kill()


def test_progress_counts_all_steps(capsys: pytest.CaptureFixture[str]) -> None:
    ckad.grad(decay, progress=True)(X)
    assert "12.0/12.0" in capsys.readouterr().err


# --- how things show themselves ----------------------------------------------------------------


def test_every_public_object_has_a_readable_form() -> None:
    tape = ckad.trace(decay)(X)
    plan = ckad.plan(decay, X)
    shown = {
        repr(ckad.value_and_grad(decay)): "decay",
        repr(ckad.grad(decay)): "decay",
        repr(tape): "<Tape of",
        str(tape): "LOOP",
        str(plan): "Plan: peak",
        repr(plan): "Plan(",
        repr(ckad.schedules.revolve(10, 3)): "revolve",
        str(ckad.schedules.store_all(10)): "store_all",
        repr(ckad.testing.check_schedule(ckad.schedules.revolve(10, 3))): "25",
    }
    for text, part in shown.items():
        assert part.lower() in text.lower()
        assert " at 0x" not in text


def test_a_tracer_shows_its_type() -> None:
    seen = []
    ckad.jit(lambda x: seen.append((repr(x), str(x), f"{x}")) or x)(X)  # type: ignore
    assert {str.__str__(text) for text in seen[0]} == {"<traced f64[5]>"}


def test_transformed_functions_keep_name_and_docstring() -> None:
    def documented(x: Any) -> Any:
        """What it does."""
        return np.sum(x)

    assert ckad.jit(documented).__name__ == "documented"
    assert ckad.jit(documented).__doc__ == "What it does."


@pytest.mark.parametrize("name", [n for n in ckad.__all__ if callable(getattr(ckad, n))])
def test_every_public_function_has_a_docstring(name: str) -> None:
    assert (getattr(ckad, name).__doc__ or "").strip()


def test_what_transformations_make_says_what_it_is_and_has_the_function_s_signature():
    def misfit(rate, times, *, scale=1.0):
        return np.sum(scale * np.exp(-rate * times))

    for made, shown in [
        (ckad.grad(misfit), "gradient of misfit by argument 0"),
        (ckad.value_and_grad(misfit, (0, 1)), "value and gradient of misfit by argument (0, 1)"),
        (ckad.jacobian(misfit, 1), "Jacobian of misfit by argument 1"),
        (ckad.hessian(ckad.jit(misfit)), "Hessian of misfit by argument 0"),
        (ckad.sparsity(misfit), "sparsity of misfit by argument 0"),
        (ckad.jit(misfit), "compiled misfit"),
    ]:
        assert shown in repr(made)
        assert made.__name__ == "misfit"
        assert inspect.signature(made) == inspect.signature(misfit)


def test_directions_may_be_short_integers():
    # as SciPy's trust-constr passes to hessp= to learn its dtype
    x, v = np.array([1.0, 2.0, 3.0]), np.array([0, 1, 2], np.int8)
    np.testing.assert_array_equal(ckad.hvp(lambda x: np.sum(x**3), (x,), (v,)), 6.0 * x * v)
    np.testing.assert_array_equal(ckad.jvp(np.square, (x,), (v,))[1], 2.0 * x * v)
    np.testing.assert_array_equal(ckad.vjp(np.square, x)[1](v)[0], 2.0 * x * v)
