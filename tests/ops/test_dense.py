"""Linear algebra by LAPACK: values, both modes, second order, loops, and what is no result."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as sl

import ckad
from ckad.errors import RaisedError, UnsupportedFunctionError
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of

LA = np.linalg
R = np.random.default_rng(0)
SIZES = (1, 3, 12)


def real(*shape):
    return R.standard_normal(shape)


def full(*shape):
    return real(*shape) + 1j * real(*shape)


def near_one(n, make=real):
    return make(n, n) + 3 * n * np.eye(n)


def symmetric(a):
    return a + np.swapaxes(a, -1, -2).conj()


def positive(a):
    return a @ np.swapaxes(a, -1, -2).conj() + np.eye(a.shape[-1])


def without_phase(u, s, v):
    return np.abs(u), s, np.abs(v)


#: name -> the function, and its arguments for matrices of n rows
CASES = {
    "solve": (LA.solve, lambda n: (near_one(n), real(n))),
    "one matrix, many sides": (LA.solve, lambda n: (near_one(n), real(2, n, 2))),
    "complex solve": (LA.solve, lambda n: (near_one(n, full), full(n))),
    "real and complex": (LA.solve, lambda n: (near_one(n), full(n, 2))),
    "inv": (LA.inv, lambda n: (near_one(n, full),)),
    "det": (LA.det, lambda n: (real(2, n, n) / np.sqrt(n),)),
    "complex det": (LA.det, lambda n: (full(2, n, n) / np.sqrt(n),)),
    "slogdet": (LA.slogdet, lambda n: (real(2, n, n),)),
    "complex slogdet": (LA.slogdet, lambda n: (full(n, n),)),
    "cholesky": (lambda a: LA.cholesky(positive(a)), lambda n: (real(n, n),)),
    "complex cholesky": (lambda a: LA.cholesky(positive(a)), lambda n: (full(2, n, n),)),
    "qr": (LA.qr, lambda n: (real(2, n + 2, n),)),
    "wide qr": (LA.qr, lambda n: (real(n, n + 2),)),
    "complex qr": (LA.qr, lambda n: (full(n + 2, n),)),
    "eigh": (LA.eigh, lambda n: (real(2, n, n),)),
    "upper eigh": (lambda a: LA.eigh(a, "U"), lambda n: (real(n, n),)),
    "eigvalsh": (LA.eigvalsh, lambda n: (full(n, n),)),
    "complex eigh": (lambda a: np.abs(LA.eigh(a)[1]), lambda n: (full(n, n),)),
    "eig": (LA.eig, lambda n: (full(2, n, n),)),
    "eigvals": (lambda a: LA.eigvals(a + 0j), lambda n: (real(n, n),)),
    "real eig": (lambda a: tuple(np.abs(x) for x in LA.eig(a)), lambda n: (real(2, n, n),)),
    "svd": (lambda a: LA.svd(a, False), lambda n: (real(2, n + 2, n),)),
    "wide svd": (lambda a: LA.svd(a, False), lambda n: (real(n, n + 1),)),
    "full svd": (LA.svd, lambda n: (real(n + 1, n),)),
    "complex svd": (lambda a: without_phase(*LA.svd(a, False)), lambda n: (full(n + 2, n),)),
    "svdvals": (LA.svdvals, lambda n: (full(n, n + 1),)),
    "pinv": (LA.pinv, lambda n: (real(2, n + 2, n),)),
    "complex pinv": (LA.pinv, lambda n: (full(n, n + 1),)),
    "lstsq": (lambda a, b: LA.lstsq(a, b)[:2], lambda n: (real(n + 3, n), real(n + 3, 2))),
    "wide lstsq": (lambda a, b: LA.lstsq(a, b)[0], lambda n: (real(n, n + 2), real(n))),
    "cond": (LA.cond, lambda n: (real(n, n),)),
    "norm 2": (lambda a: LA.norm(a, 2), lambda n: (real(n, n + 1),)),
    "norm nuc": (lambda a: LA.norm(a, "nuc", (2, 0)), lambda n: (real(n, 2, n + 1),)),
    "triangular": (
        lambda a, b: sl.solve_triangular(a, b, 1, lower=True, unit_diagonal=True),
        lambda n: (real(n, n) / n, real(n, 2)),
    ),
    "complex triangular": (
        lambda a, b: sl.solve_triangular(a, b, "T"),
        lambda n: (near_one(n, full), full(n)),
    ),
    "cho_solve": (
        lambda a, b: sl.cho_solve(sl.cho_factor(positive(a)), b),
        lambda n: (full(n, n), full(n, 2)),
    ),
    "assumed positive": (
        lambda a, b: sl.solve(positive(a), b, assume_a="pos"),
        lambda n: (real(n, n), real(n)),
    ),
    "assumed symmetric": (
        lambda a, b: sl.solve(symmetric(a), b, assume_a="sym"),
        lambda n: (near_one(n), real(n)),
    ),
    "lu": (lambda a: sl.lu(a), lambda n: (real(n, n),)),
    "lu_solve": (
        lambda a, b: sl.lu_solve(sl.lu_factor(a), b, 1),
        lambda n: (near_one(n), real(n)),
    ),
    "tridiagonal": (
        lambda a, b: sl.solve_banded((1, 1), a, b),
        lambda n: (real(3, n) + np.array([[0], [6], [0]]), real(n, 2)),
    ),
    "banded": (
        lambda a, b: sl.solve_banded((2, 1), a, b),
        lambda n: (real(4, n) + np.array([[0], [9], [0], [0]]), real(n)),
    ),
    "solveh_banded": (
        lambda a, b: sl.solveh_banded(a, b),
        lambda n: (real(2, n + 1) + np.array([[0], [9]]), real(n + 1)),
    ),
    "toeplitz": (
        lambda c, b: sl.solve_toeplitz(c, b),
        lambda n: (real(n) + 3 * n * np.eye(n)[0], real(n)),
    ),
    "made of vectors": (
        lambda c: (sl.circulant(c), sl.hankel(c, c), sl.block_diag(sl.toeplitz(c, c), c)),
        lambda n: (real(n),),
    ),
    "generalised": (
        lambda a, b: sl.eigvalsh(symmetric(a), positive(b)),
        lambda n: (real(n, n), real(n, n)),
    ),
    "wide polar": (lambda a: sl.polar(a), lambda n: (real(n, n + 1),)),
    "complex polar": (lambda a: sl.polar(a, "left"), lambda n: (full(n + 2, n),)),
    "ldl": (lambda a: sl.ldl(a), lambda n: (real(n, n),)),
    "upper ldl": (lambda a: sl.ldl(symmetric(a), False), lambda n: (full(n, n),)),
    "complex ldl": (lambda a: sl.ldl(a, hermitian=False), lambda n: (full(n, n),)),
    "pivoted qr": (
        lambda a: sl.qr(a, mode="economic", pivoting=True),
        lambda n: (real(n + 2, n),),
    ),
    "wide pivoted qr": (lambda a: sl.qr(a, pivoting=True), lambda n: (full(n, n + 2),)),
    "qr_multiply": (lambda a, c: sl.qr_multiply(a, c), lambda n: (real(n + 2, n), real(3, n + 2))),
    "left qr_multiply": (
        lambda a, c: sl.qr_multiply(a, c, "left", pivoting=True, conjugate=True),
        lambda n: (full(n + 2, n), full(n)),
    ),
    "orth": (lambda a: sl.orth(a), lambda n: (real(n + 2, n),)),
    "hessenberg": (lambda a: sl.hessenberg(a, calc_q=True), lambda n: (real(n, n),)),
    "cholesky_banded": (
        lambda a: sl.cholesky_banded(a, lower=True),
        lambda n: (real(3, n + 3) + np.array([[9], [0], [0]]),),
    ),
    "cho_solve_banded": (
        lambda a, b: sl.cho_solve_banded((sl.cholesky_banded(a + [[0], [9]]), False), b),
        lambda n: (full(2, n + 1) * np.array([[1], [0]]), full(n + 1, 2)),
    ),
    "signm": (lambda a: sl.signm(a), lambda n: (real(n, n),)),
    "complex signm": (lambda a: sl.signm(a), lambda n: (full(2, n, n),)),
    "fractional power": (
        lambda a: sl.fractional_matrix_power(positive(a), 1.7),
        lambda n: (real(n, n) / n,),
    ),
    "expm": (lambda a: sl.expm(a), lambda n: (real(n, n),)),
    "complex expm": (lambda a: sl.expm(a), lambda n: (full(2, n, n),)),
    "sqrtm": (lambda a: sl.sqrtm(positive(a)), lambda n: (real(n, n),)),
    "complex sqrtm": (lambda a: sl.sqrtm(positive(a)), lambda n: (full(n, n),)),
    "logm": (lambda a: sl.logm(positive(a)), lambda n: (real(n, n) / (2 * n),)),
    "sylvester": (
        lambda a, b, q: sl.solve_sylvester(a, b, q),
        lambda n: (near_one(n, full), near_one(2, full), full(n, 2)),
    ),
    "one-matrix sylvester": (
        lambda a, q: sl.solve_sylvester(a, a, q),
        lambda n: (near_one(n), real(n, n)),
    ),
    "lyapunov": (
        lambda a, q: sl.solve_continuous_lyapunov(a, q),
        lambda n: (near_one(n), real(n, n)),
    ),
    "riccati": (
        lambda a, b, q: sl.solve_continuous_are(a, b, positive(q), np.eye(2)),
        lambda n: (real(n, n), real(n, 2), real(n, n)),
    ),
    "discrete riccati": (
        lambda a, b, r: sl.solve_discrete_are(a, b, np.eye(len(a)), positive(r)),
        lambda n: (real(n, n) / n, real(n, 2), real(2, 2)),
    ),
    "discrete lyapunov": (
        lambda a, q: sl.solve_discrete_lyapunov(a, q),
        lambda n: (real(n, n) / (3 * n), real(n, n)),
    ),
}


def numbers(x):
    """All real and imaginary parts of a result, one after the other."""
    parts = []
    for v in x if isinstance(x, tuple) else (x,):
        halves = [np.real(v), np.imag(v)] if np.iscomplexobj(v) else [v]
        parts += [np.reshape(h, (-1,)) for h in halves]
    return np.concatenate(parts)


def direction(x):
    return full(*x.shape) if x.dtype.kind == "c" else real(*x.shape)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_right(name, n):
    function, arguments = CASES[name]
    xs = arguments(n)
    expected = numbers(function(*xs))
    weights = R.standard_normal(expected.size)

    def loss(*args):
        return np.sum(numbers(function(*args)) * weights)

    for engine in ("vm", "native"):
        found = ckad.jit(lambda *args: numbers(function(*args)), engine=engine)(*xs)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    along = [direction(x) for x in xs]
    gradients = ckad.grad(loss, tuple(range(len(xs))))(*xs)
    reverse = sum(np.sum(g * d).real for g, d in zip(gradients, along, strict=True))
    _, forward = ckad.jvp(loss, xs, tuple(along))
    assert reverse == pytest.approx(forward, rel=1e-9, abs=1e-10)
    h = 1e-6
    ends = [loss(*(x + s * d for x, d in zip(xs, along, strict=True))) for s in (h, -h)]
    assert forward == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-4, abs=1e-5)


def test_riccatis_equation_without_a_solution_stops_the_program():
    def trace(x):
        b = np.array([[1.0], [0.0]])  # nothing steers the second, which grows
        return np.trace(sl.solve_continuous_are(np.diag([1.0, x]), b, np.eye(2), np.eye(1)))

    with pytest.raises(RaisedError, match="raises an error"):
        ckad.grad(trace)(0.7)


SECOND = (
    "inv det slogdet cholesky qr eigh eig svd pinv triangular lu tridiagonal expm sqrtm sylvester "
    "polar ldl hessenberg cholesky_banded signm"
)


@pytest.mark.parametrize("name", [k for k in CASES if k.split()[-1] in SECOND.split()])
def test_second_derivatives_are_right(name):
    function, arguments = CASES[name]
    xs = arguments(3)
    along = [direction(x) for x in xs]
    weights = R.standard_normal(numbers(function(*xs)).size)
    every = tuple(range(len(xs)))

    def loss(*args):
        return np.sum(numbers(function(*args)) * weights)

    def slope(*args):
        pairs = zip(ckad.grad(loss, every)(*args), along, strict=True)
        return np.real(sum(np.sum(g * d) for g, d in pairs))

    _, forward = ckad.jvp(slope, xs, tuple(along))
    gradients = ckad.grad(slope, every)(*xs)
    reverse = sum(np.sum(g * d).real for g, d in zip(gradients, along, strict=True))
    assert reverse == pytest.approx(forward, rel=1e-8, abs=1e-8)
    h = 1e-5
    ends = [slope(*(x + s * d for x, d in zip(xs, along, strict=True))) for s in (h, -h)]
    assert forward == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-4, abs=1e-4)


# --- inside of programs --------------------------------------------------------------------------


def relaxed(a, x):
    """Several routines in a loop, one of them of a matrix that the loop does not change."""
    for _ in range(12):
        x = LA.solve(a, x) + 0.1 * LA.eigh(np.outer(x, x) + a + a.T)[0]
        if x[0] > 0:
            x = x - 0.01 * LA.svdvals(a * x[1])
    return np.sum(x**2)


def until_small(a, x):
    steps = 0
    while steps < 40:
        x = sl.cho_solve(sl.cho_factor(positive(a)), x)
        steps += 1
        if np.sum(x * x) < 1e-3:
            break
    return np.sum(x)


def equations(a, x):
    """Sylvester's equation with one matrix that stays and one that changes."""
    for _ in range(12):
        found = sl.solve_sylvester(a + 3 * np.eye(10), positive(a * x), np.outer(x, np.sin(x)))
        x = 0.5 * x + found @ x
    return np.sum(x**2)


@pytest.mark.parametrize("program", [relaxed, until_small, equations])
@pytest.mark.parametrize("engine", ["vm", "native"])
def test_budgets_do_not_change_bits(program, engine):
    a, x = near_one(10) / 10, real(10)
    value, gradients = ckad.value_and_grad(program, (0, 1), engine=engine)(a, x)
    assert value == pytest.approx(program(a, x), rel=1e-9)
    for budget in ("65 KB", "100 KB"):
        again = ckad.value_and_grad(program, (0, 1), engine=engine, memory=budget)(a, x)
        assert again[0] == value
        for g, other in zip(gradients, again[1], strict=True):
            np.testing.assert_array_equal(g, other)
    d = real(10)
    h = 1e-6
    slope = (program(a, x + h * d) - program(a, x - h * d)) / (2 * h)
    assert gradients[1] @ d == pytest.approx(slope, rel=1e-4)


# --- what is no result ---------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize(
    ("function", "matrix", "said"),
    [
        (lambda a: np.sum(LA.inv(a)), np.ones((12, 12)), "Singular matrix"),
        (lambda a: np.sum(LA.inv(a)), np.ones((3, 3)) + 0j, "Singular matrix"),
        (lambda a: np.sum(LA.cholesky(a)), -np.eye(12), "not positive definite"),
        (lambda a: np.sum(LA.eigvalsh(a)), np.full((3, 3), np.nan), "did not converge"),
        (lambda a: np.sum(LA.svdvals(a)), np.full((3, 3), np.nan), "did not converge"),
        (lambda a: np.sum(sl.solve_banded((1, 1), a, np.ones(4))), np.zeros((3, 4)), "singular"),
        (lambda a: np.sum(sl.sqrtm(a)), -np.eye(3), "is complex"),
        (lambda a: np.sum(sl.logm(a)), np.diag([1.0, 0.0, 2.0]), "it has no logarithm"),
        (lambda a: np.sum(sl.orth(a)), np.ones((3, 3)), "Singular matrix"),
        (lambda a: np.sum(sl.cholesky_banded(a)), np.ones((2, 4)), "not positive definite"),
        (lambda a: np.sum(sl.solve_sylvester(a, -a, a)), np.eye(3), "add up to zero"),
    ],
)
def test_what_fails_is_named_with_its_line(function, matrix, said, engine):
    with pytest.raises(LA.LinAlgError, match=rf"(?s)test_dense\.py:\d+.*{said}"):
        ckad.jit(lambda a: np.real(function(a)), engine=engine)(matrix)


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize(
    ("function", "matrix"),
    [
        (lambda a: LA.qr(a)[0], np.array([[1.0, 1, 1], [0, 0, 1], [0, 0, 2]])),
        (lambda a: LA.qr(a)[1], np.ones((4, 2))),
        (lambda a: sl.polar(a)[1], np.ones((3, 3))),
        (lambda a: sl.ldl(a)[0], np.ones((3, 3))),
        (lambda a: sl.hessenberg(a), np.eye(4)),
        (lambda a: sl.signm(a), np.array([[0.0, 1.0], [-1.0, 0.0]])),
    ],
)
def test_values_without_derivatives(function, matrix, engine):
    found = ckad.jit(function, engine=engine)(matrix)
    np.testing.assert_allclose(found, function(matrix), rtol=1e-12, atol=1e-12)
    with pytest.raises(LA.LinAlgError, match="Singular matrix"):
        ckad.grad(lambda a: np.sum(function(a)), engine=engine)(matrix)


def test_qr_of_a_square_matrix_whose_last_column_alone_depends_on_others_has_derivatives():
    a, change = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]), real(3, 3)

    def squares(x):
        return np.sum(LA.qr(x)[1] ** 2 * np.arange(1, 10).reshape(3, 3))

    h = 1e-6
    slope = (squares(a + h * change) - squares(a - h * change)) / (2 * h)
    assert np.sum(ckad.grad(squares)(a) * change) == pytest.approx(slope, rel=1e-6)


def test_determinants_of_singular_matrices_have_derivatives():
    a = real(12, 12)
    a[3] = a[5] + a[7]
    gradient = ckad.grad(lambda x: LA.det(x))(a)
    minor = np.delete(np.delete(a, 3, 0), 2, 1)
    assert gradient[3, 2] == pytest.approx(-LA.det(minor), rel=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision_stays(dtype):
    a = near_one(10).astype(dtype)
    assert ckad.jit(lambda x: LA.inv(x))(a).dtype == dtype
    u, s, v = ckad.jit(lambda x: LA.svd(x))(a)
    assert (u.dtype, s.dtype, v.dtype) == (dtype, np.float32, dtype)
    np.testing.assert_allclose((u * s) @ v, a, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3), (1, 1)])
def test_small_and_empty_matrices(shape):
    a = real(*shape)
    for function in (LA.eigvalsh, LA.svdvals, LA.cholesky, LA.pinv):
        x = positive(a)
        found = ckad.jit(lambda v, f=function: f(v))(x)
        np.testing.assert_allclose(found, function(x), rtol=1e-12)


@pytest.mark.parametrize("n", [3, 12])
@pytest.mark.parametrize("trans", [0, 1])
def test_factors_that_scipy_has_made(n, trans):
    a, b = real(n, n), real(n)
    factors = sl.lu_factor(a)
    value, gradient = ckad.value_and_grad(lambda x: np.sum(sl.lu_solve(factors, x, trans)))(b)
    inverse = LA.inv(a.T if trans else a)
    np.testing.assert_allclose(value, np.sum(inverse @ b))
    np.testing.assert_allclose(gradient, np.sum(inverse, 0))


def test_the_exchanges_of_rows_are_scipys():
    def by_pivots(a):
        lu, exchanges = sl.lu_factor(a)
        return np.prod(np.diag(lu)) * (-1) ** np.sum(exchanges != np.arange(len(a)))

    stack = real(6, 12, 12)
    for a in stack:
        found = ckad.jit(lambda x: sl.lu_factor(x)[1])(a)
        np.testing.assert_array_equal(found, sl.lu_factor(a)[1])
        value, gradient = ckad.value_and_grad(by_pivots)(a)
        np.testing.assert_allclose(value, LA.det(a))
        np.testing.assert_allclose(gradient, LA.det(a) * LA.inv(a).T)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_exchanges_that_are_no_rows(engine):
    solve = ckad.jit(lambda p, x: sl.lu_solve((np.eye(3), p), x), engine=engine)
    np.testing.assert_array_equal(solve(np.array([2, 2, 2]), np.arange(3.0)), [2.0, 0.0, 1.0])
    for wrong in ([0, 3, 2], [0, -1, 2]):
        with pytest.raises(ValueError, match=r"(?s)which rows are exchanged.*test_dense\.py:\d+"):
            solve(np.array(wrong), np.ones(3))


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_least_squares_of_an_ill_conditioned_square_matrix(engine):
    """As ``solve`` gives it: what a matrix of full rank leaves over is all rounding."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(8, 8)))[0] for _ in "ab")
    a = 1e4 * (left * np.logspace(0, -9, 8)) @ right
    b, change = rng.normal(size=8), rng.normal(size=(8, 8))
    weights = right[-1]

    def by_least_squares(t):
        return np.sum(weights * np.linalg.lstsq(a + t * change, b, rcond=None)[0])

    def by_elimination(t):
        return np.sum(weights * np.linalg.solve(a + t * change, b))

    want = ckad.grad(by_elimination)(0.0)
    got = ckad.grad(by_least_squares, engine=engine)(0.0)
    moved = ckad.jvp(by_least_squares, (0.0,), (1.0,), engine=engine)[1]
    np.testing.assert_allclose([got, moved], want, rtol=1e-5)


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("kind", [float, complex])
def test_no_eigenvalues_of_what_is_not_finite(engine, kind):
    values = ckad.jit(lambda a: np.abs(LA.eigvals(a)), engine=engine)
    for wrong in (np.nan, -np.inf):
        a = np.diag([1.0, wrong, 2.0]).astype(kind)
        with pytest.raises(LA.LinAlgError, match="must not contain infs or NaNs"):
            values(a)


@pytest.mark.parametrize(
    ("function", "n_calls"),
    [
        (lambda a: np.sum(np.abs(LA.eigvals(a)) ** 3), 2),
        (lambda a: sum(np.sum(np.abs(x) ** 2) for x in sl.lu(a)), 3),
        (lambda a: np.sum(np.abs(sl.solve_sylvester(a, a @ a, a)) ** 2), 4),
    ],
    ids=["eigenvalues", "factors", "sylvester"],
)
@pytest.mark.parametrize("kind", [float, complex])
def test_no_gradient_calls_python(function, n_calls, kind):
    a = (real(2, 5, 5) if kind is float else full(2, 5, 5))[:1].reshape(5, 5)
    gradient = ckad.value_and_grad(function, engine="native")
    calls = [row for row in gradient.compiled(a).tape.rows if row.op is Op.CALL]
    assert len(calls) == n_calls
    assert all(routine_of(row).compiled for row in calls)


@pytest.mark.parametrize("function", [sl.lu, sl.lu_factor])
def test_factors_of_what_is_not_square_are_refused(function):
    for shape in ((2, 3), (4, 3, 2)):
        with pytest.raises(UnsupportedFunctionError, match=r"LU factors of .* not square"):
            ckad.jit(function)(np.ones(shape))


@pytest.mark.parametrize("kind", [float, complex])
def test_factors_of_what_is_not_finite_are_refused(kind):
    factors = ckad.jit(sl.lu)
    np.testing.assert_allclose(factors(np.ones((3, 3), kind))[2], sl.lu(np.ones((3, 3)))[2])
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            factors(np.diag([1.0, wrong, 2.0]).astype(kind))


@pytest.mark.parametrize(
    ("function", "remedy"),
    [(sl.null_space, "pinv"), (sl.schur, "eigh"), (lambda a: sl.qz(a, a), "eigh")],
)
def test_what_is_one_of_many_is_refused_with_what_to_write(function, remedy):
    with pytest.raises(UnsupportedFunctionError, match=rf"(?s)test_dense\.py:\d+.*{remedy}"):
        ckad.jit(lambda a: function(a))(np.eye(3))
