"""Programs that call SciPy's own roots, minima and fits: what they give while they are recorded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.optimize import brentq, curve_fit, fsolve, least_squares, minimize_scalar, newton

import ckad
from ckad.errors import RaisedError, SolverWarning, UnrecordableError

M = np.linspace(0.1, 6.0, 7)


def _grad(f):
    return ckad.grad(f, engine="vm")


def slope(f, x, h=1e-5):
    return (f(x + h) - f(x - h)) / (2.0 * h)


def orbits(e):
    """In a loop, of each element of an array, in brackets, with and without derivatives."""
    total = 0.0
    for m in M:
        at = (lambda x, m: x - e * np.sin(x) - m), m, (lambda x, m: 1.0 - e * np.cos(x))
        total += np.cos(newton(*at, args=(m,)))
    total += np.sum(np.sin(newton(lambda x: x - e * np.sin(x) - M, M)))
    for bend in (None, lambda x, m: e * np.sin(x)):
        total += np.sum(np.sin(newton(at[0], M, at[2], args=(M,), fprime2=bend)))
    x = 0.5
    for _ in range(20):
        x = brentq(lambda z, x=x: z - x - 0.1 * (e - z**3), -5.0, 5.0)
    for name in ("bisect", "ridder", "brenth"):
        total += getattr(optimize, name)(lambda x: x**3 - e, 0, 4)
    found = optimize.root_scalar(lambda x: (x**3 - e, 3 * x**2), x0=1.2, fprime=True)
    return total + x + found.root + newton(lambda x: x**2 - e, 1.0)


def test_roots_of_one_unknown_are_scipys():
    value, gradient = ckad.value_and_grad(orbits, engine="vm")(0.3)
    assert value == pytest.approx(orbits(0.3), rel=1e-13)
    assert gradient == pytest.approx(slope(orbits, 0.3), rel=1e-6)


@pytest.mark.parametrize("ask", [optimize.toms748, optimize.root_scalar])
def test_another_method_in_a_bracket_is_named(ask):
    def cube_root(a):
        if ask is optimize.toms748:
            return ask(lambda x: x**3 - a, 0.0, 3.0)
        return ask(lambda x: x**3 - a, bracket=(0.0, 3.0), method="toms748").root

    with pytest.warns(SolverWarning, match="toms748 is recorded with Brent"):
        value, gradient = ckad.value_and_grad(cube_root, engine="vm")(2.0)
    assert value == pytest.approx(cube_root(2.0), abs=4e-12)
    assert gradient == pytest.approx(value / 6.0, rel=1e-11)


def implicit_heat(k):
    def residual(u, old):
        r = np.zeros_like(u)
        r[1:-1] = u[1:-1] - old[1:-1] - 0.05 * k * (u[2:] - 2 * u[1:-1] + u[:-2])
        r[1:-1] += 0.05 * u[1:-1] ** 3
        r[0], r[-1] = u[0] - 1.0, u[-1]
        return r

    u = np.zeros(4)
    u[0] = 1.0
    for _ in range(10):
        u, told, status, _ = fsolve(residual, u, args=(u.copy(),), full_output=True)
    return np.sum(u**2) + np.sum(told["fvec"] ** 2) + status


def test_fsolve_makes_minpacks_steps(capfd):
    """A start from which Newton's method alone goes elsewhere: the steps end where SciPy's do."""

    def far(k):
        wave = fsolve(lambda x: [np.sin(3 * x[0]) + 0.1 * x[0] - k, x[1] ** 3 - x[0] - k], [1.4, 3])
        return wave[0] + wave[1]

    for program in (implicit_heat, far):
        value, gradient = ckad.value_and_grad(program, engine="vm")(0.5)
        assert value == pytest.approx(program(0.5), rel=1e-9)
        assert gradient == pytest.approx(slope(program, 0.5), rel=1e-6)
    assert "Traceback" not in capfd.readouterr().err  # MINPACK prints what a function raises


def test_minima_and_fits():
    t = np.linspace(0.0, 3.0, 15)

    def model(t, a, b):
        return a * np.exp(-b * t)

    def fitted(a):
        y = 2.0 * np.exp(-a * t) + 0.05 * np.cos(9.0 * t)
        best, covariance = curve_fit(model, t, y)
        same = least_squares(lambda p: model(t, *p) - y, [1.0, 1.0])
        within = minimize_scalar(lambda x: np.cosh(x - a) + 0.1 * x**2, bounds=(-3, 3))
        lowest = minimize_scalar(lambda x: np.cosh(x - a) + 0.1 * x**2)
        return best[1] + covariance[0, 0] + same.x[1] + same.cost + within.fun + lowest.x

    value, gradient = ckad.value_and_grad(fitted, engine="vm")(0.9)
    assert value == pytest.approx(fitted(0.9), rel=1e-7)
    assert gradient == pytest.approx(slope(fitted, 0.9, 1e-3), rel=1e-4)


@pytest.mark.parametrize("find", [optimize.brent, optimize.golden])
def test_minima_in_brackets_have_the_slope_of_the_minimum(find):
    def lowest(a):
        at = find(lambda x, a: np.cosh(x - a) + 0.1 * x**2, args=(a,), brack=(0.0, 1.0))
        return at**2 + find(lambda x: (x - a) ** 2)

    value, gradient = ckad.value_and_grad(lowest, engine="vm")(0.9)
    assert value == pytest.approx(lowest(0.9), rel=1e-6)
    assert gradient == pytest.approx(slope(lowest, 0.9, 1e-3), rel=1e-4)
    with pytest.raises(UnrecordableError, match="full_output"):
        _grad(lambda a: find(lambda x: (x - a) ** 2, full_output=True)[0])(0.9)


def test_newton_says_of_which_elements_it_has_found_the_root():
    def found(a):
        said = newton(lambda x: x**3 - a * M, M, full_output=True)
        return np.sum(said.root) + np.sum(said.converged) + np.sum(said.zero_der)

    assert _grad(found)(1.5) == pytest.approx(slope(found, 1.5), rel=1e-6)


def test_minimize_says_that_it_is_another_method():
    def lowest(a):
        return optimize.minimize(lambda x: (x[0] - a) ** 2 + np.cosh(x[1]), [1.0, 1.0]).x[0]

    with pytest.warns(SolverWarning, match="ckad's own BFGS"):
        assert _grad(lowest)(0.5) == pytest.approx(1.0, rel=1e-6)


def test_a_minimum_within_bounds():
    def lowest(a):
        found = optimize.minimize(
            lambda x: (x[0] - a) ** 2 + (x[1] - x[0]) ** 2, [0.5, 0.5], bounds=[(0, 1), (0.2, 0.4)]
        )
        return found.x[0]

    with pytest.warns(SolverWarning, match="ckad's own L-BFGS-B"):
        assert _grad(lowest)(0.7) == pytest.approx(0.5, rel=1e-6)


def test_linear_problems_under_bounds():
    rng = np.random.default_rng(0)
    matrix, b = rng.normal(size=(8, 5)), rng.normal(size=8)

    def solved(p):
        total = 0.0
        for k in range(6):
            x, left = optimize.nnls(p[0] * matrix + 0.1 * k, b + p[1] * k)
            total += np.sum(x * np.arange(5)) + left
        found = optimize.lsq_linear(matrix, b * p[0], (-0.2 * p[1], 0.3))
        return total + np.sum(found.x) + found.cost + found.active_mask @ np.arange(5.0)

    p = np.array([1.0, 0.7])
    held = optimize.lsq_linear(matrix, b, (-0.14, 0.3)).active_mask
    assert set(held) == {-1, 0, 1}
    np.testing.assert_allclose(ckad.jit(solved)(p), solved(p), rtol=1e-9)
    ckad.testing.check_grads(solved, (p,))
    with pytest.raises((RaisedError, np.linalg.LinAlgError)):  # the shortest of many solutions
        ckad.jit(lambda b: optimize.lsq_linear(matrix[:3], b).x)(b[:3])
    with pytest.raises(UnrecordableError, match=r"linprog is not recorded\. Find with SciPy"):
        ckad.grad(lambda c: optimize.linprog([c, 1.0]).fun)(1.0)


def test_where_there_is_no_root_the_program_ends():
    with pytest.raises(RaisedError):
        _grad(lambda a: brentq(lambda x: x**2 + a, 0.0, 1.0))(0.5)

    def at_a_bound(a):
        return minimize_scalar(lambda x: a * x, bounds=(0.0, 1.0), method="bounded").x

    with pytest.raises(RaisedError):
        _grad(at_a_bound)(0.5)


@pytest.mark.filterwarnings("ignore:The iteration is not making good progress")
def test_a_step_on_the_level_of_rounding_is_that_of_minpack():
    """Where two values are equal the matrix of slopes becomes zero, which MINPACK replaces."""

    def program(c):
        return fsolve(lambda x: x**3 + x - c, 0.5, xtol=1e-13)[0]

    solve = ckad.jit(program, engine="native")
    for c in np.linspace(0.2, 1.2, 60)[45:50]:
        assert solve(c) == pytest.approx(program(c), abs=1e-12)


def quartic(x, a):
    return (x[0] - a) ** 2 + 0.5 * x[0] ** 4


def with_slope(x, a):
    return quartic(x, a), np.array([2.0 * (x[0] - a) + 2.0 * x[0] ** 3])


def cubic(x, a):
    return x**3 + x - a


TIGHT = {"gtol": 1e-10, "disp": False}
FORMER = {
    "fmin": lambda a: optimize.fmin(quartic, [0.3], (a,), 1e-9, 1e-12, disp=0)[0],
    "fmin_bfgs": lambda a: optimize.fmin_bfgs(quartic, [0.3], args=(a,), **TIGHT)[0],
    "fmin_cg": lambda a: optimize.fmin_cg(quartic, [0.3], args=(a,), **TIGHT)[0],
    "fmin_l_bfgs_b": lambda a: optimize.fmin_l_bfgs_b(
        with_slope, [0.3], args=(a,), pgtol=1e-10, factr=1.0, bounds=[(0.0, 2.0)]
    )[0][0],
    "broyden1": lambda a: optimize.broyden1(lambda x: cubic(x, a), np.array([0.3]), f_tol=1e-12)[0],
    "newton_krylov": lambda a: optimize.newton_krylov(lambda x: cubic(x, a), [0.3], f_tol=1e-12)[0],
    "lm": lambda a: optimize.root(cubic, [0.3], (a,), method="lm", tol=1e-12).x[0],
    "krylov": lambda a: optimize.root(cubic, [0.3], (a,), method="krylov", tol=1e-12).x[0],
}


@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
@pytest.mark.parametrize("name", FORMER)
def test_functions_and_methods_with_another_in_their_place(name):
    program = FORMER[name]
    value, gradient = ckad.value_and_grad(program, engine="vm")(0.7)
    assert value == pytest.approx(program(0.7), rel=1e-6)
    curved = name.startswith("fmin")
    slope = 2.0 / (2.0 + 6.0 * value**2) if curved else 1.0 / (3.0 * value**2 + 1.0)
    assert gradient == pytest.approx(slope, rel=1e-8)


def test_what_these_tell_beside_the_minimum_is_refused():
    with pytest.raises(UnrecordableError, match="fmin with full_output="):
        ckad.grad(lambda a: optimize.fmin(quartic, [0.3], (a,), full_output=True)[1])(0.7)


@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
def test_fields_that_a_result_has_not_are_named_with_a_remedy():
    with pytest.raises(AttributeError, match=r"no hess_inv\. np.linalg.inv\(ckad.hessian"):
        ckad.grad(lambda a: optimize.minimize(quartic, [0.3], (a,)).hess_inv[0, 0])(0.7)


@pytest.mark.parametrize("shape", [(5,), (3, 2)])
def test_rosenbrocks_function(shape):
    x = np.linspace(-1.0, 1.5, np.prod(shape)).reshape(shape)
    for of_scipy in (optimize.rosen, optimize.rosen_der):
        np.testing.assert_allclose(ckad.jit(of_scipy, engine="vm")(x), of_scipy(x), rtol=1e-14)
    total = _grad(lambda x: np.sum(optimize.rosen(x)))
    np.testing.assert_allclose(total(x), optimize.rosen_der(x), rtol=1e-12)
    if len(shape) == 1:
        found = ckad.jacobian(optimize.rosen_der, engine="vm")(x)
        np.testing.assert_allclose(found, optimize.rosen_hess(x), rtol=1e-12)
