"""Roots, fixed points and minima: values, derivatives of the implicit function, what they cost."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import ckad
from ckad.engines import arena
from ckad.errors import RaisedError, UnrecordableError
from ckad.optimize import fixed_point, minimize, root
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Tape
from ckad.transforms import call

P = np.array([2.0, 0.3])


def curve(p: Any) -> Any:
    return root(
        lambda x: np.array([x[0] ** 2 + x[1] - p[0], x[1] ** 3 + x[0] * p[1]]), [1.0, 1.0]
    ).x


def rows(tape: Tape) -> Iterator[Any]:
    yield from tape.rows
    for body in tape.bodies:
        yield from rows(body)


def solves(tape: Tape) -> tuple[int, int]:
    """Systems that are solved with factors: outside of all loops, and within."""
    counts = [
        sum(row.op is Op.CALL and routine_of(row).name == "lu_solve" for row in found)
        for found in (tape.rows, [*rows(tape)])
    ]
    return counts[0], counts[1] - counts[0]


def differences(fun: Callable[[Any], float], x: np.ndarray, h: float = 1e-5) -> list[float]:
    return [(fun(x + d) - fun(x - d)) / (2 * h) for d in h * np.eye(len(x))]


def test_a_root_and_its_derivatives_of_both_modes_and_of_second_order() -> None:
    found = optimize.root(
        lambda x: [x[0] ** 2 + x[1] - P[0], x[1] ** 3 + x[0] * P[1]], [1.0, 1.0], tol=1e-13
    )
    np.testing.assert_allclose(curve(P), found.x, rtol=1e-12)
    x, y = found.x
    exact = -np.linalg.solve([[2 * x, 1.0], [P[1], 3 * y**2]], [[-1.0, 0.0], [0.0, x]])
    np.testing.assert_allclose(ckad.jacobian(curve, mode="rev")(P), exact, rtol=1e-12)
    np.testing.assert_allclose(ckad.jacobian(curve, mode="fwd")(P), exact, rtol=1e-12)

    def first(p: Any) -> Any:
        return curve(p)[0] ** 2

    slope = ckad.grad(first)
    rows = [(slope(P + d) - slope(P - d)) / 2e-5 for d in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(ckad.hessian(first)(P), rows, rtol=1e-7)


def test_the_adjoint_of_a_root_is_one_solve_and_no_taped_loop() -> None:
    b = np.linspace(0.0, 1.0, 20)

    def size(p: Any) -> Any:
        return np.sum(root(lambda u: u + p * u**3 + 0.2 * np.roll(u, 1) - b, b).x)

    tape = ckad.value_and_grad(size).compiled(0.5).tape
    assert solves(ckad.jit(size).compiled(0.5).tape) == (0, 1)  # in the body of the iteration
    assert solves(tape) == (1, 1)
    assert not any(row.op in (Op.TAPED_LOOP, Op.REVERSE_LOOP) for row in rows(tape))


def test_memory_does_not_depend_on_the_iterations() -> None:
    b = np.linspace(1.0, 2.0, 1000)

    def size(rate: Any) -> Any:
        return np.sum(
            fixed_point(lambda x: rate * x + b, b, maxiter=100_000, method="iteration",
                        linear_solver="gmres")
        )  # fmt: skip

    gradient = ckad.value_and_grad(size, engine="native")

    def peak(rate: float) -> int:
        for _ in range(15):  # until calls of this form are at hand
            gradient(rate)
        arena.clear()
        tracemalloc.start()
        try:
            value, slope = gradient(rate)
            used = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert value == pytest.approx(np.sum(b) / (1 - rate), rel=1e-4)
        assert slope == pytest.approx(np.sum(b) / (1 - rate) ** 2, rel=1e-4)
        return used

    few, many = peak(0.1), peak(0.999)  # 8 iterations, and 11,000: 88 MB, were they kept
    assert many < 1.1 * few < 2e6


def test_implicit_steps_in_a_loop_are_run_again_to_the_same_bits() -> None:
    def van_der_pol(mu: Any) -> Any:
        y, h = np.array([2.0, 0.0]), 0.05

        def residual(z: Any, before: Any) -> Any:
            return z - before - h * np.array([z[1], mu[0] * (1 - z[0] ** 2) * z[1] - z[0]])

        for _ in range(100):
            y = root(residual, y, (y,), raises=True).x
        return np.sum(y**2)

    mu = np.array([5.0])
    value, slope = ckad.value_and_grad(van_der_pol, engine="vm")(mu)
    run = ckad.jit(van_der_pol, engine="vm")
    np.testing.assert_allclose(slope, differences(run, mu), rtol=1e-7)
    schedule = ckad.schedules.revolve(100, 5)
    again = ckad.value_and_grad(van_der_pol, schedule=schedule, engine="vm")(mu)
    assert (value, *slope) == (again[0], *again[1])  # bit by bit


@pytest.mark.parametrize("method", ["del2", "iteration", "anderson"])
def test_fixed_points(method: str) -> None:
    def point(a: Any) -> Any:
        return fixed_point(lambda x: a * np.cos(x), np.array([0.5, 0.7]), xtol=1e-12, method=method)

    value, slope = ckad.jvp(point, (1.0,), (1.0,))
    x = float(optimize.fixed_point(np.cos, 0.5, xtol=1e-14))
    np.testing.assert_allclose(value, x, rtol=1e-11)
    np.testing.assert_allclose(slope, np.cos(x) / (1 + np.sin(x)), rtol=1e-11)
    with pytest.raises(RaisedError, match=r"test_implicit\.py.*has not converged"):
        fixed_point(lambda x: x + 1.0, 0.5, maxiter=7, method=method)


@pytest.mark.parametrize("method", ["BFGS", "Newton-CG"])
def test_minima(method: str) -> None:
    def rosenbrock(x: Any, p: Any) -> Any:
        return (p[0] - x[0]) ** 2 + p[1] * (x[1] - x[0] ** 2) ** 2 + p[2] * x[1]

    p = np.array([1.1, 100.0, 0.3])
    theirs = optimize.minimize(rosenbrock, [-1.2, 1.0], (p,), method="BFGS", tol=1e-7)

    def lowest(p: Any) -> Any:
        found = minimize(rosenbrock, [-1.2, 1.0], (p,), method, tol=1e-9)
        return found.x, found.fun, found.success

    x, value, success = ckad.jit(lowest)(p)
    assert success
    np.testing.assert_allclose(x, theirs.x, rtol=1e-4)
    assert value <= theirs.fun + 1e-12
    # the stationary point is known: x1 = x0² - p2 / (2 p1), and x0 (1 + p2) = p0
    exact = [2 / 1.69 * 1.1 + 1 / 1.3, 0.3 / (2 * 100.0**2), -1.1 / 1.69 - 2 * 1.1**2 / 1.3**3]
    exact[0] = 1 / 1.3 + 2 * p[0] / 1.3**2
    exact[2] -= 1 / 200.0
    np.testing.assert_allclose(ckad.grad(lambda p: np.sum(lowest(p)[0]))(p), exact, rtol=1e-6)
    np.testing.assert_allclose(ckad.grad(lambda p: lowest(p)[1])(p)[2], x[1], rtol=1e-7)


def test_what_has_not_converged_says_so_and_has_no_derivative() -> None:
    def none(a: Any) -> Any:
        return root(lambda x: x**2 + a, 1.3)

    plain = none(1.0)
    assert (plain.success, plain.status) == (False, 5)
    assert "not making good progress" in plain.message
    assert plain.nit > 1
    assert root(np.log, -1.0).status == 6
    few = root(lambda x: np.exp(x) - 1e5, 0.0, options={"maxiter": 2})
    assert (few.status, few.nit, few["success"]) == (2, 2, False)
    assert minimize(lambda x: -np.sum(x), np.zeros(2), options={"maxiter": 3}).status == 1
    assert np.isfinite(ckad.jit(lambda a: none(a).x)(1.0))
    with pytest.raises(RaisedError, match=r"test_implicit\.py.*has not converged"):
        ckad.grad(lambda a: none(a).x[0])(1.0)
    with pytest.raises(RaisedError, match=r"test_implicit\.py.*has not converged"):
        root(lambda x: x**2 + 1.0, 1.3, raises=True)

    def guarded(a: Any) -> Any:  # log of the start, -1, has no derivative either
        found = root(lambda x: np.log(x * a) + np.sqrt(x - a), -1.0)
        return found.x[0] if found.success else 3.0 * a

    assert ckad.value_and_grad(guarded)(1.0) == (3.0, 3.0)


def test_a_singular_jacobian_is_named() -> None:
    def both(a: Any) -> Any:
        return root(lambda x: np.array([x[0] + x[1] - a, x[0] + x[1] - a]), np.ones(2)).x[0]

    with pytest.raises(np.linalg.LinAlgError, match=r"test_implicit\.py.*Singular matrix"):
        ckad.grad(both)(1.0)

    def double(a: Any) -> Any:  # the iteration ends in the root, where dx/da is infinite
        return root(lambda x: (x - a) ** 3, 1.0).x[0]

    with pytest.raises(np.linalg.LinAlgError, match=r"test_implicit\.py.*Singular matrix"):
        ckad.grad(double)(1.0)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: root(lambda x: x[:1], [1.0, 2.0]), ValueError, "returns shape"),
        (lambda: root(np.sin, 1.0, method="hybr"), ValueError, "'newton'"),
        (lambda: root(np.sin, 1.0, options={"xtl": 1.0}), TypeError, "no option xtl"),
        (lambda: root(np.sin, 1.0, tol=-1.0), ValueError, "must be positive"),
        (lambda: root(np.sin, 1j), TypeError, "real numbers"),
        (lambda: root(np.sin, 1.0, linear_solver="lu"), ValueError, "linear_solver"),
        (lambda: fixed_point(np.cos, 1.0, method="x"), ValueError, "del2"),
        (lambda: minimize(np.sum, np.ones(2), bounds=[(0, 1)]), ValueError, "1 pairs"),
        (lambda: minimize(np.sin, np.ones(2)), ValueError, "one number"),
        (lambda: minimize(np.sum, np.ones(2), method="SLSQP"), ValueError, "SLSQP"),
    ],
)
def test_what_is_asked_for_is_checked(
    call: Callable[[], Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=rf"test_implicit\.py(.|\n)*{says}"):
        call()


@pytest.mark.slow
def test_large_systems_make_no_matrix() -> None:
    b = np.linspace(0.0, 1.0, 1500)

    def size(p: Any) -> Any:
        found = root(lambda u: u + p * u**3 + 0.2 * np.roll(u, 1) - b, 0.0 * b, method="krylov")
        return np.sum(found.x**2)

    p = np.array([0.5])
    value, slope = ckad.value_and_grad(lambda p: size(p[0]))(p)
    assert value == pytest.approx(size(0.5), rel=1e-10)
    np.testing.assert_allclose(slope, differences(lambda p: size(p[0]), p), rtol=1e-7)
    compiled = ckad.value_and_grad(lambda p: size(p[0]), engine="native").compiled(p)
    assert not any(row.type.size > 40 * 1500 for row in rows(compiled.tape))


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
def test_batches_and_nests() -> None:
    batch = np.stack([P, 1.1 * P, 0.9 * P])
    np.testing.assert_allclose(ckad.vmap(curve)(batch), [curve(p) for p in batch], rtol=1e-12)
    slopes = ckad.grad(lambda batch: np.sum(ckad.vmap(curve)(batch)[:, 0]))(batch)
    each = [ckad.grad(lambda p: curve(p)[0])(p) for p in batch]
    np.testing.assert_allclose(slopes, each, rtol=1e-11)

    def nested(a: Any) -> Any:
        return root(lambda x: root(lambda y: y**2 - x * a, 1.0).x - 2.0, 1.0).x[0]

    assert ckad.value_and_grad(nested)(2.0) == pytest.approx((2.0, -1.0), rel=1e-10)


def test_the_solvers_are_attributes() -> None:
    assert ckad.optimize.root is root
    assert {"optimize", "integrate", "stencil"} <= {*dir(ckad)}
    with pytest.raises(AttributeError, match="optimise"):
        ckad.optimise


@pytest.mark.slow
def test_the_solvers_are_loaded_when_they_are_asked_for() -> None:
    code = (
        "import sys, ckad\n"
        "assert 'ckad.integrate' not in sys.modules and 'ckad.optimize' not in sys.modules\n"
        "print(ckad.optimize.root.__name__, ckad.integrate.solve_ivp.__name__)\n"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert made.stdout == "root solve_ivp\n", made.stderr


def test_a_start_that_is_the_solution_to_rounding_has_converged() -> None:
    """No step makes the residual smaller, and the step is rounding: whatever the tolerance."""

    def solved(p: Any) -> Any:
        return root(lambda x: x**3 + p[0] * x - p[1], 0.5, tol=1e-14)

    found = ckad.jit(lambda p: solved(p).success, engine="vm")
    rng = np.random.default_rng(0)
    assert all(found(p) for p in 0.3 + rng.random((40, 2)))


RATE = 0.5


def test_numbers_around_a_function_change_and_its_program_stays(monkeypatch):
    made, compiled = [], call._compile
    monkeypatch.setattr(call, "_compile", lambda *given: made.append(given) or compiled(*given))
    u = np.array([1.0, 2.0])
    for step in (0.1, 0.2, 0.3):  # implicit Euler, of which also the rates change
        rates, old = np.array([1.0, 3.0]) * step, u

        def slope(z):
            return -RATE * rates * z  # noqa: B023

        u = root(lambda z: z - old - step * slope(z), u).x  # noqa: B023
        np.testing.assert_allclose(u, old / (1 + step * RATE * rates), rtol=1e-12)
    assert len(made) == 1


def test_numbers_around_a_function_may_have_to_be_known():
    written = np.zeros(1)

    def counted(z):
        return z - float(f"{kept:.1f}")

    def writes(z):
        written[0] = z[0]
        return z - 1.0

    for kept in (1.0, 2.0):
        assert root(counted, np.zeros(1)).x == kept
    with pytest.raises(UnrecordableError, match="writes into an array"):
        root(writes, np.zeros(1))
