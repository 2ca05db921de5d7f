"""Matrices that have no inverse, no factor, or a derivative all the same; Cholesky's reverse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as sl

import ckad

LA = np.linalg
ENGINES = ("vm", "native")
R = np.random.default_rng(5)


def cofactors(a):
    """The derivatives of a determinant."""
    n = len(a)
    minors = [[np.delete(np.delete(a, i, 0), j, 1) for j in range(n)] for i in range(n)]
    return np.array([[(-1) ** (i + j) * LA.det(minors[i][j]) for j in range(n)] for i in range(n)])


def of_rank(n, rank, make=lambda *shape: R.standard_normal(shape)):
    return make(n, rank) @ make(rank, n)


# --- what stops ----------------------------------------------------------------------------------

STOPPED = {
    "solve": (lambda a: np.sum(LA.solve(a, np.ones(a.shape[-1]))), "Singular matrix"),
    "inv": (lambda a: np.sum(LA.inv(a)), "Singular matrix"),
    "one of a stack": (lambda a: np.sum(LA.inv(np.stack([a, a - 7.0 * np.eye(len(a))]))), "Sing"),
    "power": (lambda a: np.sum(LA.matrix_power(a, -2)), "Singular matrix"),
    "triangle": (lambda a: np.sum(sl.solve_triangular(0 * a, np.ones(len(a)))), "Singular matrix"),
    "cholesky": (lambda a: np.sum(LA.cholesky(-a @ a.T)), "not positive definite"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [1, 2, 4, 5])
@pytest.mark.parametrize("name", STOPPED)
def test_a_small_matrix_stops_the_program_as_a_large_one_does(name, n, engine):
    function, said = STOPPED[name]
    a = np.round(4 * R.standard_normal((n, n)))
    a[-1] = 2 * a[0] if n == 2 else 0.0  # exactly singular however it is rounded
    with pytest.raises(LA.LinAlgError):
        function(a)
    with pytest.raises(LA.LinAlgError, match=rf"(?s)test_singular\.py:\d+.*{said}"):
        ckad.value_and_grad(function, engine=engine)(a)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_step_is_named_and_other_branches_are_not_looked_at(engine):
    def steps(a, x):
        for k in range(5):
            x = LA.solve(a - np.where(k == 3, a, 0.0 * a), x)
        return np.sum(x)

    def guarded(a, x):
        for _ in range(5):
            if x[0] > 100.0:
                x = LA.solve(0.0 * a, x)
            x = x + 0.1 * np.sin(x)
        return np.sum(x)

    a, x = np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([1.0, -2.0])
    with pytest.raises(LA.LinAlgError, match=r"test_singular\.py:\d+: Singular matrix at step 3"):
        ckad.value_and_grad(steps, 1, engine=engine)(a, x)
    value, gradient = ckad.value_and_grad(guarded, 1, engine=engine)(a, x)
    assert value == pytest.approx(guarded(a, x), rel=1e-14)
    assert np.all(np.isfinite(gradient))


def test_numpy_finds_the_same_matrices_singular():
    """Small whole numbers: by two rows always, by three nearly always, in both engines alike."""
    for n, least in ((2, 200), (3, 170)):
        inverses = [ckad.jit(lambda a: LA.inv(a), engine=engine) for engine in ENGINES]
        same = 0
        for _ in range(200):
            a = R.integers(-9, 10, (n, n)).astype(float)
            a[1] = a[0] * R.integers(1, 8) if R.random() < 0.8 else a[1]
            found = [stops(function, a) for function in (LA.inv, *inverses)]
            assert found[1] == found[2]
            same += found[0] == found[1]
        assert same >= least


def stops(function, a):
    try:
        function(a)
    except LA.LinAlgError:
        return True
    return False


# --- determinants --------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [2, 4, 6])
def test_a_singular_matrix_has_a_slogdet_but_no_derivative_of_it(n, engine):
    a = np.round(4 * R.standard_normal((n, n)))
    a[-1] = 0.0
    assert tuple(ckad.jit(lambda x: LA.slogdet(x), engine=engine)(a)) == (0.0, -np.inf)
    with pytest.raises(LA.LinAlgError, match=r"test_singular\.py:\d+: Singular matrix"):
        ckad.grad(lambda x: LA.slogdet(x)[1], engine=engine)(a)
    with pytest.raises(LA.LinAlgError, match="Singular matrix"):
        ckad.jvp(lambda x: LA.slogdet(x)[1], (a,), (a,), engine=engine)
    regular = a + np.diag(R.uniform(20.0, 30.0, n))
    found = ckad.grad(lambda x: LA.slogdet(x)[1], engine=engine)(regular)
    np.testing.assert_allclose(found, LA.inv(regular).T, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [4, 7])
def test_determinants_have_derivatives_at_any_rank(n, engine):
    gradient = ckad.grad(lambda x: LA.det(x), engine=engine)
    holes = R.integers(-3, 4, (n, n)).astype(float)
    holes[1], holes[:, 2] = 0.0, 0.0
    for a in (of_rank(n, n), of_rank(n, n - 1), of_rank(n, n - 2), holes, np.zeros((n, n))):
        scale = LA.norm(a) ** (n - 1)
        np.testing.assert_allclose(gradient(a), cofactors(a), rtol=0, atol=1e-13 * scale)
    z = of_rank(n, n - 1, lambda *shape: R.standard_normal(shape) + 1j * R.standard_normal(shape))
    found = ckad.grad(lambda x: np.real(LA.det(x)), engine=engine)(z)
    np.testing.assert_allclose(found, cofactors(z), atol=1e-12 * LA.norm(z) ** (n - 1))


def test_determinants_of_stacks_have_first_and_second_derivatives():
    a, d = R.standard_normal((2, 3, 5, 5))

    def slope(x):
        return np.sum(ckad.grad(lambda v: np.sum(LA.det(v) ** 2))(x) * d)

    _, forward = ckad.jvp(slope, (a,), (d,))
    assert np.sum(ckad.grad(slope)(a) * d) == pytest.approx(forward, rel=1e-10)
    h = 1e-6
    assert forward == pytest.approx((slope(a + h * d) - slope(a - h * d)) / (2 * h), rel=1e-5)


# --- Cholesky's reverse --------------------------------------------------------------------------


def rooted(x):
    return LA.cholesky(x @ np.swapaxes(x, -1, -2) / x.shape[-1] + np.eye(x.shape[-1]))


@pytest.mark.parametrize("n", [5, 16, 17, 40, 150, 300])
def test_the_reverse_of_cholesky_is_the_transpose_of_the_forward_mode(n):
    """Sizes on both sides of those at which it is cut in halves, and into strips."""
    a, d, w = R.standard_normal((3, n, n))

    def loss(x):
        return np.sum(np.sin(rooted(x)) * w)

    gradient = ckad.grad(loss)(a)
    _, forward = ckad.jvp(loss, (a,), (d,))
    assert np.sum(gradient * d) == pytest.approx(forward, rel=1e-10)
    h = 1e-6
    assert forward == pytest.approx((loss(a + h * d) - loss(a - h * d)) / (2 * h), rel=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_second_derivatives_of_cholesky(engine):
    a, d, w = R.standard_normal((3, 2, 18, 18))

    def slope(x):
        return np.sum(ckad.grad(lambda v: np.sum(np.sin(rooted(v)) * w), engine=engine)(x) * d)

    _, forward = ckad.jvp(slope, (a,), (d,), engine=engine)
    assert np.sum(ckad.grad(slope, engine=engine)(a) * d) == pytest.approx(forward, rel=1e-9)
    h = 1e-5
    assert forward == pytest.approx((slope(a + h * d) - slope(a - h * d)) / (2 * h), rel=1e-5)


def test_budgets_do_not_change_the_bits_of_factors():
    def steps(a, x):
        for _ in range(20):
            x = np.tanh(rooted(a + np.outer(x, x)) @ x)
        return np.sum(x * x)

    a, x = R.standard_normal((20, 20)), R.standard_normal(20)
    value, gradients = ckad.value_and_grad(steps, (0, 1), engine="native")(a, x)
    assert value == pytest.approx(steps(a, x), rel=1e-11)
    for budget in ("60 KB", "120 KB"):
        again = ckad.value_and_grad(steps, (0, 1), engine="native", memory=budget)(a, x)
        assert again[0] == value
        for one, other in zip(gradients, again[1], strict=True):
            np.testing.assert_array_equal(one, other)
