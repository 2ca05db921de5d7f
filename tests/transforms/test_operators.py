"""Operators for SciPy, Gauss-Newton products, Taylor tests, and transformations of each other."""

import re
from functools import cache

import numpy as np
import pytest
from scipy.sparse.linalg import cg, lsmr, lsqr, svds

import ckad
from ckad.errors import BudgetError, DifferentiationError, GradientCheckError, RecomputeWarning
from ckad.testing import taylor_test

rng = np.random.default_rng(9)
X, V = rng.uniform(0.2, 1.0, 6), rng.normal(size=6)
VM = {"engine": "vm"}


def waves(x):
    for _ in range(5):
        x = x + 0.1 * np.sin(np.roll(x, 1)) * x
    return x[:4] * x[5]


def misfit(x):
    return np.sum(waves(x) ** 2)


def entropy(y):
    return np.sum(y * np.log(y))


JACOBIAN = ckad.jacobian(waves, **VM)(X)


def test_an_operator_is_the_jacobian():
    J = ckad.linear_operator(waves, X, **VM)
    assert J.shape == (4, 6)
    assert J.dtype == np.float64
    np.testing.assert_allclose(J @ np.eye(6), JACOBIAN, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(J.T @ np.eye(4), JACOBIAN.T, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(J @ V, JACOBIAN @ V, rtol=1e-13)
    np.testing.assert_allclose(J.H @ V[:4], JACOBIAN.T @ V[:4], rtol=1e-13)
    assert (J @ np.zeros((6, 0))).shape == (4, 0)
    right = JACOBIAN @ V
    for solve in (lsqr, lsmr):
        found = solve(J, right, atol=1e-14, btol=1e-14)[0]
        np.testing.assert_allclose(JACOBIAN @ found, right, rtol=1e-9)
    expected = np.linalg.svd(JACOBIAN, compute_uv=False)[:2]
    np.testing.assert_allclose(sorted(svds(J, k=2)[1])[::-1], expected, rtol=1e-9)


def test_how_many_directions_a_budget_holds_is_found_once(monkeypatch):
    def spread(u):
        for _ in range(200):
            u = u + 0.1 * np.sin(np.roll(u, 1))
        return u

    u, directions = np.linspace(0.0, 1.0, 50), rng.normal(size=(50, 8))
    with pytest.raises(BudgetError) as least:  # of one direction
        ckad.linear_operator(spread, u, memory=1, **VM).rmatvec(directions[:, 0])
    assert "no rule" not in str(least.value)  # SciPy calls ckad, and not ckad SciPy
    bytes_of_one = int(re.search(r"at least ([\d,]+)", str(least.value))[1].replace(",", ""))
    J = ckad.linear_operator(spread, u, memory=bytes_of_one + 2_000, **VM)
    first = J.rmatmat(directions)
    np.testing.assert_allclose(
        first, ckad.jacobian(spread, **VM)(u).T @ directions, rtol=1e-11, atol=1e-9
    )

    def again(*given):
        raise AssertionError("a program is planned again")

    monkeypatch.setattr("ckad.transforms.call.compile_tape", again)
    np.testing.assert_array_equal(J.rmatmat(directions), first)


def test_a_budget_that_directions_leave_no_states_of_holds_fewer(monkeypatch):
    def spread(u):
        for _ in range(500):
            u = u + 0.1 * (np.roll(u, 1) - np.roll(u, -1)) * u
        return u

    u, directions = np.linspace(0.2, 1.0, 100), rng.normal(size=(100, 8))
    of_budget = ckad.linear_operator(spread, u, memory=21_500, **VM)
    found = of_budget.rmatmat(directions)  # a warning that steps run often would be an error
    expected = ckad.linear_operator(spread, u, **VM).rmatmat(directions)
    np.testing.assert_array_equal(found, expected)
    monkeypatch.setattr("ckad.transforms.lanes.ENOUGH", np.inf)
    ckad.clear_caches()
    with pytest.warns(RecomputeWarning, match="computed 250 times"):
        ckad.linear_operator(spread, u, memory=21_500, **VM).rmatmat(directions)


def test_of_a_gradient_it_is_the_hessian_within_its_budget():
    H = ckad.linear_operator(ckad.grad(misfit, memory="32 KiB", schedule="revolve"), X)
    dense = ckad.hessian(misfit, **VM)(X)
    np.testing.assert_allclose(H @ np.eye(6), dense, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(H.T @ V, dense @ V, rtol=1e-11)
    regular = ckad.linear_operator(ckad.grad(lambda x: misfit(x) + 50 * x @ x), X, **VM)
    found, info = cg(regular, V, rtol=1e-12)
    assert info == 0
    np.testing.assert_allclose(found, np.linalg.solve(dense + 100 * np.eye(6), V), rtol=1e-9)


def test_gauss_newton():
    weights = np.diag(1 / waves(X))
    cases = ((None, np.eye(4)), (entropy, weights))
    for loss, middle in cases:
        expected = JACOBIAN.T @ middle @ JACOBIAN @ V
        for options in (VM, {"memory": "32 KiB", "schedule": "revolve"}):
            found = ckad.gauss_newton(waves, (X,), (V,), loss, **options)
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_gauss_newton_of_several_arrays():
    def parts(x, a):
        return {"y": x * a, "n": np.floor(x), "s": np.sum(x**2)}

    def stacked(z):
        return np.append(z[:6] * z[6], np.sum(z[:6] ** 2))

    dense = ckad.jacobian(stacked, **VM)(np.append(X, 2.0))
    found = ckad.gauss_newton(parts, (X, 2.0), (V, 1.0), **VM)
    expected = dense.T @ dense @ np.append(V, 1.0)
    np.testing.assert_allclose(np.append(*found), expected, rtol=1e-12)


def test_taylor(capsys):
    rates = taylor_test(lambda x, t: misfit(x) * np.sin(t), (X, 0.3), **VM)
    np.testing.assert_allclose(rates, [1, 2, 3], atol=0.05)
    assert "<v, H v>" in capsys.readouterr().out
    quadratic = taylor_test(lambda x: x @ x, (X,), verbose=False, **VM)
    assert quadratic[2] == np.inf
    np.testing.assert_allclose(quadratic[:2], [1, 2], atol=0.05)


def test_taylor_finds_a_derivative_that_is_slightly_wrong(capsys):
    @ckad.custom_jvp
    def sine(x):
        return np.sin(x)

    sine.defjvp(
        lambda primals, tangents: (np.sin(primals[0]), 1.0005 * np.cos(primals[0]) * tangents[0])
    )
    with pytest.raises(GradientCheckError, match=r"the gradient is wrong(.|\n)*rate"):
        taylor_test(lambda x: np.sum(sine(x)), (X,), order=1, **VM)
    with pytest.raises(ValueError, match="order=3"):
        taylor_test(misfit, (X,), order=3)


# --- transformations of each other ---------------------------------------------------------------


def with_grad(x):
    return x - 0.1 * ckad.grad(misfit)(x)


def with_value_and_grad(x):
    value, gradient = ckad.value_and_grad(misfit)(x)
    return x - 0.1 * gradient + 0.01 * value


def with_jacobian(x):
    return x + 0.1 * ckad.jacobian(waves)(x)[:, :4].sum() * x


def with_sparse_jacobian(x):
    return x - 0.1 * (ckad.jacobian(waves, sparse=True)(x).T @ x[:4])


def with_hessian(x):
    return x - np.linalg.solve(ckad.hessian(misfit)(x) + 9 * np.eye(6), x)


def with_hvp(x):
    return x - 0.1 * ckad.hvp(misfit, (x,), (x,))


def with_gauss_newton(x):
    return x - 0.1 * ckad.gauss_newton(waves, (x,), (x,))


def with_jvp_of_gradient(x):
    return x - 0.1 * ckad.jvp(ckad.grad(misfit), (x,), (x,))[1]


def with_vjp(x):
    return x - 0.1 * ckad.vjp(waves, x)[1](x[:4])[0]


STEPS = [
    with_grad, with_value_and_grad, with_jacobian, with_sparse_jacobian, with_hessian, with_hvp,
    with_gauss_newton, with_jvp_of_gradient, with_vjp,
]  # fmt: skip


@pytest.mark.parametrize(
    "step",
    [
        with_gauss_newton,
        with_jvp_of_gradient,
        with_sparse_jacobian,
        *(pytest.param(s, marks=pytest.mark.slow) for s in STEPS),
    ],
)
def test_the_gradient_of_a_loop_that_takes_derivatives(step):
    def objective(x):
        for _ in range(2):
            x = step(x)
        return np.sum(x**2)

    plain = ckad.jit(objective, **VM)
    h = 1e-5
    quotient = (plain(X + h * V) - plain(X - h * V)) / (2 * h)
    np.testing.assert_allclose(ckad.grad(objective, **VM)(X) @ V, quotient, rtol=1e-7)


def test_derivatives_of_derivatives():
    H, both = ckad.hessian(misfit, **VM)(X), np.stack([X, 2 * X])
    g, one = ckad.grad(misfit, **VM), {"rtol": 1e-11, "atol": 1e-13}
    gradient, change = ckad.jvp(g, (X,), (V,))
    np.testing.assert_allclose(gradient, g(X), **one)
    np.testing.assert_allclose(change, H @ V, **one)
    (value, gradient), (slope, change) = ckad.jvp(ckad.value_and_grad(misfit, **VM), (X,), (V,))
    np.testing.assert_allclose([value, slope], [misfit(X), g(X) @ V], **one)
    np.testing.assert_allclose(change, H @ V, **one)
    along = ckad.grad(lambda x: ckad.jvp(misfit, (x,), (V,))[1], **VM)
    np.testing.assert_allclose(along(X), H @ V, **one)
    np.testing.assert_allclose(ckad.vmap(g)(both)[0], g(X), **one)
    found = ckad.jacobian(g, sparse=True, **VM)(X).toarray()
    np.testing.assert_allclose(found, H, **one)
    found = ckad.jacobian(lambda x: ckad.vmap(waves)(x), sparse=True, **VM)(both).toarray()
    np.testing.assert_allclose(found[:4, :6], JACOBIAN, **one)
    assert not found[:4, 6:].any()


def by_while(x):
    return ckad.while_loop(lambda c: c[0] < 3.0, lambda c: (c[0] + 1.0, np.cos(c[1])), (0.0, x))[1]


def by_scan(x):
    return ckad.scan(lambda c, u: (c * np.cos(u * c), c), x, np.full((3, 6), 0.3))[0]


@pytest.mark.parametrize("step", [by_while, by_scan])
def test_sparse_derivatives_of_loops(step):
    def total(x):
        return np.sum(step(x) ** 2)

    J, H = ckad.jacobian(step, sparse=True, **VM)(X), ckad.hessian(total, sparse=True, **VM)(X)
    np.testing.assert_allclose(J.toarray(), ckad.jacobian(step, **VM)(X), rtol=1e-13)
    np.testing.assert_allclose(H.toarray(), ckad.hessian(total, **VM)(X), rtol=1e-12)
    assert J.nnz == H.nnz == 6


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda x: ckad.grad(lambda x: np.sum(ckad.linear_operator(waves, x) @ x))(x), "for SciPy"),
        (lambda x: ckad.linear_operator(lambda x: (x, x), x), "one real array"),
        (lambda x: ckad.linear_operator(waves, x, **VM) @ (x + 1j), "is real"),
        (lambda x: ckad.gauss_newton(waves, (x,), (x[:2],)), "shape"),
        (lambda x: ckad.gauss_newton(waves, (x,), (x,), np.sin), "float scalar"),
        (lambda x: ckad.gauss_newton(np.argmax, (x,), (x,)), "no floats"),
    ],
)
def test_what_is_refused(what, said):
    with pytest.raises(DifferentiationError, match=said):
        what(X)


def _long(x, scale):
    for _ in range(400):
        x = x + 0.01 * scale * np.sin(np.roll(x, 1)) * x
    return np.sum(x**2) * scale


_X, _V, _S = np.linspace(-1.0, 1.0, 6), np.cos(np.arange(6.0)), 0.7
_GRADIENT = ckad.grad(_long, engine="vm")


@cache
def _full():
    return ckad.hessian(_long, engine="vm")(_X, _S)


@cache
def _mixed():
    return ckad.jvp(_GRADIENT, (_X, _S), (0.0 * _X, 1.0))[1]


@pytest.mark.parametrize(
    ("derivative", "expected"),
    [
        (lambda g, o: ckad.jacobian(g, **o)(_X, _S), _full),
        (lambda g, o: ckad.jacobian(g, 1, **o)(_X, _S), _mixed),
        (lambda g, o: ckad.vjp(g, _X, _S, **o)[1](_V)[0], lambda: _full() @ _V),
        (lambda g, o: ckad.vjp(g, _X, _S, **o)[1](_V)[1], lambda: _mixed() @ _V),
        (lambda g, o: ckad.linear_operator(_alone(g), _X, **o) @ _V, lambda: _full() @ _V),
    ],
    ids=["jacobian", "mixed", "vjp", "vjp_second", "linear_operator"],
)
def test_derivatives_of_gradients_are_within_the_budget(derivative, expected):
    budget = {"memory": "30 KB"}  # all steps take 60
    assert np.allclose(derivative(_GRADIENT, budget), expected(), rtol=1e-10)
    with pytest.raises(BudgetError):
        derivative(_GRADIENT, {"memory": 1000})


def _alone(gradient):
    return ckad.grad(lambda x: gradient.fun(x, _S), engine="vm")


@ckad.custom_vjp
def _damped(x):
    return x * 1.0


_damped.defvjp(lambda x: (x * 1.0, x), lambda x, ct: (ct * np.cumsum(x),))


def test_a_gradient_by_a_user_s_rules_need_not_be_that_of_a_function():
    slope = ckad.grad(lambda x: np.sum(_damped(x) ** 3), engine="vm")
    x, v = np.array([0.3, 0.5, 0.8]), np.array([0.5, -1.0, 2.0])
    expected = ckad.jacobian(lambda x: slope(x), engine="vm")(x)
    assert not np.allclose(expected, expected.T)
    assert np.allclose(ckad.jacobian(slope, engine="vm")(x), expected)
    assert np.allclose(ckad.jacobian(slope, sparse=True, engine="vm")(x).toarray(), expected)
    assert np.allclose(ckad.vjp(slope, x, engine="vm")[1](v)[0], v @ expected)
    assert np.allclose(ckad.linearize(slope, x, engine="vm")[1](v), expected @ v)
    assert np.allclose(ckad.jvp(slope, (x,), (v,), engine="vm")[1], expected @ v)
    operator = ckad.linear_operator(slope, x, engine="vm")
    assert np.allclose(operator @ v, expected @ v)
    assert np.allclose(operator.T @ v, expected.T @ v)
