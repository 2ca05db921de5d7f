"""Derivatives of eigenvectors and singular vectors where values are equal: right, or named."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

LA = np.linalg
R = np.random.default_rng(7)
N = 5
WEIGHTS, CHANGE = R.standard_normal((2, N, N))
DOUBLE = np.array([1.0, 1.0, 2.0, 3.0, 4.0])


def orthogonal(n=N):
    return LA.qr(R.standard_normal((n, n)))[0]


def symmetric(values):
    q = orthogonal()
    a = (q * values) @ q.T
    return (a + a.T) / 2


def general(values):
    g = R.standard_normal((N, N))
    return LA.solve(g, values[:, None] * g)


SYMMETRIC, SQUARE, GENERAL = (
    symmetric(DOUBLE),
    orthogonal() * DOUBLE @ orthogonal(),
    general(DOUBLE),
)
COMPLEX = orthogonal() * np.exp(1j * np.arange(N))
HERMITIAN = (COMPLEX * DOUBLE) @ COMPLEX.conj().T
NO_VECTORS = [
    ("eigenvalues", lambda a: np.sum(LA.eigh(a)[1] * WEIGHTS), SYMMETRIC),
    ("eigenvalues", lambda a: np.sum(LA.eigh(a)[1] * WEIGHTS), np.eye(N)),
    ("eigenvalues", lambda a: np.sum(np.abs(LA.eigh(a)[1]) * WEIGHTS), HERMITIAN),
    ("eigenvalues", lambda a: np.sum(np.abs(LA.eig(a)[1]) * WEIGHTS), GENERAL),
    ("singular values", lambda a: np.sum(LA.svd(a)[0] * WEIGHTS), SQUARE),
    ("singular values", lambda a: np.sum(LA.svd(a)[2] * WEIGHTS), SQUARE),
    ("singular value is zero", lambda a: np.sum(LA.svd(a, False)[0] * WEIGHTS[:, :3]),
     SQUARE[:, :2] @ np.ones((2, 3)) + np.outer(SQUARE[0], [1.0, 2.0, 3.0])),
]  # fmt: skip
#: What such a function gives is not that of a basis: it would be there, but is not found.
NOT_FOUND = [
    lambda a: np.sum((LA.eigh(a)[1] * LA.eigh(a)[0]) @ LA.eigh(a)[1].T * WEIGHTS),
    lambda a: np.sum(LA.eigh(a)[1][:, :2] @ LA.eigh(a)[1][:, :2].T * WEIGHTS),
]


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize(("said", "function", "matrix"), NO_VECTORS)
def test_vectors_of_equal_values_are_named_in_reverse_and_nan_forward(
    said, function, matrix, engine
):
    with pytest.raises(LA.LinAlgError, match=rf"(?s)test_equal_values\.py:\d+: .*{said}"):
        ckad.grad(function, engine=engine)(matrix)
    change = R.standard_normal(matrix.shape).astype(matrix.dtype)
    _, tangent = ckad.jvp(function, (matrix,), (change,), engine=engine)
    assert np.isnan(tangent)
    assert np.isfinite(function(matrix))


@pytest.mark.parametrize("function", NOT_FOUND)
def test_functions_that_hide_a_basis_are_named(function):
    with pytest.raises(LA.LinAlgError, match="equal to rounding"):
        ckad.grad(function)(SYMMETRIC)


SIMPLE = [
    (lambda a: np.sum(LA.eigh(a)[1][:, 3] ** 2 * WEIGHTS[0]), SYMMETRIC),
    (lambda a: np.sum(LA.eigh(a)[0] ** 3), SYMMETRIC),
    (lambda a: np.sum(LA.eigh(a)[0] ** 3), HERMITIAN),
    (lambda a: np.sum(np.abs(LA.eigh(a)[1][:, 3]) ** 2 * WEIGHTS[0]), HERMITIAN),
    (lambda a: np.sum(LA.svd(a)[0][:, 0] ** 2 * LA.svd(a)[2][1] ** 2 * WEIGHTS[0]), SQUARE),
    (lambda a: np.sum(LA.svd(a)[1] ** 3), SQUARE),
    (lambda a: np.real(np.sum(LA.eig(a)[0] ** 3)), GENERAL),
    (lambda a: np.sum(np.abs(LA.pinv(a) * WEIGHTS[:, :5])), SQUARE),
]


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize(("function", "matrix"), SIMPLE)
def test_what_does_not_ask_for_them_is_right(function, matrix, engine):
    change = symmetric(DOUBLE) if np.allclose(matrix, matrix.conj().T) else CHANGE
    h = 1e-5
    by_differences = (function(matrix + h * change) - function(matrix - h * change)) / (2 * h)
    gradient = ckad.grad(function, engine=engine)(matrix)
    found = np.real(np.sum(gradient * change))
    assert found == pytest.approx(by_differences, rel=1e-7, abs=1e-7)
    _, tangent = ckad.jvp(function, (matrix,), (change.astype(matrix.dtype),), engine=engine)
    assert tangent == pytest.approx(found, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("function", [
    lambda a: np.real(LA.eig(a)[0][0]),
    lambda a: np.sum(np.abs(LA.eig(a)[1]) * WEIGHTS[:2, :2]),
])  # fmt: skip
def test_defective_matrices_are_named(function):
    a = np.array([[1.0, 1.0], [0.0, 1.0]])
    with pytest.raises(LA.LinAlgError, match="fewer than rows"):
        ckad.grad(function)(a)
    with pytest.raises(LA.LinAlgError, match="fewer than rows"):
        ckad.jvp(function, (a,), (CHANGE[:2, :2],))


def test_values_that_differ_by_more_than_rounding_have_derivatives():
    a = np.diag([1.0, 1.0 + 1e-7, 3.0])
    weights = WEIGHTS[:3, :3]
    gradient = ckad.grad(lambda x: np.sum(LA.eigh(x)[1] * weights))(a)
    v, w = LA.eigh(a)[1], LA.eigh(a)[0]
    inner = v.T @ weights
    np.fill_diagonal(inner, 0.0)
    whole = v @ (inner / (w - w[:, None] + np.eye(3))) @ v.T
    lower = np.tril(whole + whole.T, -1)
    np.testing.assert_allclose(gradient, lower + 0.5 * np.diag(np.diag(whole + whole.T)), rtol=1e-6)


def test_zero_matrices_have_eigenvalues_of_which_all_are_equal():
    np.testing.assert_allclose(
        ckad.grad(lambda a: np.sum(LA.eigvalsh(a)))(np.zeros((3, 3))), np.eye(3), atol=1e-15
    )
    with pytest.raises(LA.LinAlgError, match="equal to rounding"):
        ckad.grad(lambda a: np.sum(LA.eigh(a)[1] * WEIGHTS[:3, :3]))(np.zeros((3, 3)))


def test_a_loop_names_the_step():
    def program(a):
        total = 0.0
        for _ in range(30):
            total = total + np.sum(LA.eigh(a)[1] * WEIGHTS)
            a = a + 0.5 * np.eye(N)
        return total

    with pytest.raises(LA.LinAlgError, match=r"equal to rounding.* at step 29"):
        ckad.grad(program)(SYMMETRIC)


def test_second_derivatives_of_quotients():
    def function(a):
        w, v = LA.eigh(a)
        u, s, _ = LA.svd(a[:, :3], False)
        return np.sum(v**2 * WEIGHTS) + np.sum(w**3) + np.sum(u**2 * s * WEIGHTS[:, :3])

    ckad.testing.check_grads(function, (symmetric(np.arange(1.0, 6.0)),), order=2)
