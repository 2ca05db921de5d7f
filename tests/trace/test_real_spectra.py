"""Eigenvalues that are real in NumPy: ellipses of covariances, plotted or computed with."""

import math

import numpy as np
import pytest
import scipy.linalg

import ckad
from ckad.errors import RaisedError

from .idioms import check


def ellipse(P):
    values, vectors = np.linalg.eig(P)
    big, small = (0, 1) if values[0] >= values[1] else (1, 0)
    a, b = math.sqrt(values[big]), math.sqrt(values[small])
    return a, b, math.atan2(vectors[1, big], vectors[0, big])


def filtered(a, b):
    P, total = np.eye(2), 0.0
    for k in range(6):
        F = np.array([[1.0, a * 0.1], [0.05 * k, b]])
        P = F @ P @ F.T + np.diag([0.1, 0.2])
        long, short, angle = ellipse(P)
        total += long * short + math.cos(angle) ** 2
    return total


def largest(a, b):
    values, vectors = np.linalg.eig(np.array([[2.0 + a, b], [b, 1.0]]))
    big = np.argmax(values)
    angle = math.degrees(np.arctan2(vectors[1, big], vectors[0, big]))
    return float(values[big]) * max(values) + min(list(values)) + angle**2 * 1e-3


@pytest.mark.parametrize("function", [filtered, largest])
def test_real_eigenvalues(function):
    check(function, 0.8, 0.7)


def test_complex_eigenvalues_stop_where_real_ones_are_needed():
    def turned(a):
        return math.sqrt(np.linalg.eigvals(np.array([[2.0, 1.0], [a, 2.0]]))[0])

    assert ckad.value_and_grad(turned)(0.25)[0] == pytest.approx(turned(0.25))
    with pytest.raises(RaisedError, match=r"math\.sqrt"):
        ckad.grad(turned)(-0.25)


def components(X):
    values, vectors = np.linalg.eig(np.cov(X.T))
    order = np.argsort(values)[::-1]
    seen = (X - X.mean(axis=0)) @ vectors[:, order][:, :1]
    return np.sum(seen**4) + values[order[0]] / np.sum(values)


def rotations(a):
    total = 0.0
    for k in range(5):
        values = np.linalg.eigvals(np.array([[0.0, 1.0], [-a, 0.9 - 0.5 * k]]))
        total = total + np.max(values.real) + np.sum(np.abs(values.imag))
    return total


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_eigenvalues_are_real_where_no_imaginary_part_is_left(engine):
    X = np.random.default_rng(2).normal(size=(9, 3)) * [1.0, 2.0, 3.0]
    value, gradient = ckad.value_and_grad(components, engine=engine)(X)
    assert value == pytest.approx(components(X), rel=1e-12)
    step = 1e-6 * np.eye(9, 3, -2)
    slope = (components(X + step) - components(X - step)) / 2e-6
    assert np.sum(gradient * step) / 1e-6 == pytest.approx(slope, rel=1e-6)


def test_the_kind_of_eigenvalues_is_that_of_each_call():
    f = ckad.jit(lambda a: np.linalg.eig(np.array([[0.0, 1.0], [a, 0.0]])))
    for a in (2.0, -2.0, 3.0):
        expected = np.linalg.eig(np.array([[0.0, 1.0], [a, 0.0]]))
        for x, y in zip(f(a), expected, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, rtol=1e-14)
    check(rotations, 0.5)  # real in some steps, complex in others
    assert ckad.jit(np.roots)(np.array([1.0, 3.0, 1.0])).dtype == float
    values, vectors = ckad.jit(scipy.linalg.eig)(np.array([[2.0, 1.0], [1.0, 0.0]]))
    assert (values.dtype, vectors.dtype) == (complex, float)


def test_a_program_that_was_recorded_for_real_eigenvalues_says_so():
    pulled = ckad.optimize.root(  # its iterations have one recording
        lambda x: x - 1.5 + 0.1 * np.linalg.eigvals(np.array([[0.0, 1.0], [x[0], 0.0]])).real[:1],
        np.array([2.0]),
    )
    assert abs(pulled.x[0] - 1.5 + 0.1 * np.sqrt(pulled.x[0])) < 1e-8


TURNING = np.array([[0.0, 1.0, 0.0], [-1.0, 0.1, 0.3], [0.2, 0.1, 0.4]])


def frequencies(A):
    return np.sum(np.linalg.eigvals(A).imag ** 2)


def by_kind(A):
    return np.sum(A**2) if np.iscomplexobj(np.linalg.eigvals(A)) else np.sum(A)


def turning_of_vectors(A):
    vectors = np.linalg.eig(A)[1]
    return np.sum(vectors.imag**2)


def in_steps(A):
    total = 0.0
    for k in range(3):
        total = total + np.max(np.abs(np.imag(np.linalg.eigvals(A * (k - 1.0)))))
    return total


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("function", [frequencies, by_kind, turning_of_vectors, in_steps])
def test_only_an_imaginary_part_or_the_kind_is_read(function, engine):
    """Of real numbers either is known without the numbers."""
    f = ckad.value_and_grad(function, engine=engine)
    for A in (TURNING, TURNING + np.diag([2.0, 0.0], -1), TURNING):
        value, gradient = f(A)
        assert value == pytest.approx(function(A), rel=1e-12)
        step = 1e-6 * np.eye(3, k=-1)
        slope = (function(A + step) - function(A - step)) / 2e-6
        assert np.sum(gradient * step) / 1e-6 == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("function", [frequencies, by_kind])
def test_derivatives_without_the_value_stop_as_it_does(function):
    def flat(x):
        return function(x.reshape(3, 3))

    def row(x):
        return np.array([flat(x), x[0]])

    def nested(x):
        return ckad.jit(lambda x: ckad.grad(flat)(x) * 1.0, engine="vm")(x)

    def slopes(x, of=flat):
        return np.array([of(x + step) - of(x - step) for step in 1e-5 * np.eye(9)]) / 2e-5

    v = np.linspace(-1.0, 1.0, 9)
    gradient = ckad.grad(flat, engine="vm")
    for A in (TURNING, TURNING + np.diag([2.0, 0.0], -1), TURNING):
        x = A.ravel()
        by_rows = ckad.jacobian(row, sparse=True, engine="vm")(x).toarray()[0]
        for found in (ckad.jacobian(flat, engine="vm")(x), by_rows, nested(x)):
            np.testing.assert_allclose(found, slopes(x), atol=1e-7)
        second = slopes(x, gradient) @ v
        np.testing.assert_allclose(ckad.hvp(flat, (x,), (v,), engine="vm"), second, atol=1e-5)
        for sparse in (False, True):
            found = ckad.hessian(flat, sparse=sparse, engine="vm")(x) @ v
            np.testing.assert_allclose(found, second, atol=1e-5)
        np.testing.assert_allclose(ckad.jacobian(gradient)(x) @ v, second, atol=1e-5)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_result_of_bools_alone_depends_on_the_checks(engine):
    def turns(A):
        return np.iscomplexobj(np.linalg.eigvals(A))

    def holds(a):
        if a < 0.0:
            raise ValueError
        return True

    turns_fast, holds_fast = (ckad.jit(f, engine=engine) for f in (turns, holds))
    for A in (TURNING, np.eye(3), TURNING):
        assert turns_fast(A) == turns(A)
    assert holds_fast(1.0)
    with pytest.raises(RaisedError):
        holds_fast(-1.0)


SHEAR = np.array([[2.0, 1.0, 0.1], [0.3, 1.5, 0.2], [0.0, 0.4, 1.0]])


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_calls_with_complex_eigenvalues_are_at_hand_until_they_are_real(engine):
    def spectrum(a, k):
        return np.linalg.eig(a + k * np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0] * 3]))

    def size(a, k):
        values = spectrum(a, k)[0]
        return np.sum(np.abs(values) ** 2) + (values.dtype == np.complex128)

    found, gradient = ckad.jit(spectrum, engine=engine), ckad.value_and_grad(size, engine=engine)

    def check(k):
        values, vectors = spectrum(SHEAR, k)
        assert [x.dtype for x in found(SHEAR, k)] == [values.dtype, vectors.dtype]
        np.testing.assert_allclose(found(SHEAR, k)[0], values, rtol=1e-12)
        value, slope = gradient(SHEAR, k)
        np.testing.assert_allclose(value, size(SHEAR, k), rtol=1e-12)
        np.testing.assert_array_equal(slope, ckad.grad(lambda a: size(a, k), engine=engine)(SHEAR))

    ckad.clear_caches()
    for k in [2.0] * 12 + [0.0, 2.5] * 3 + [0.1] * 12 + [3.0, 0.0]:
        check(k)
    for _ in range(12):
        found(SHEAR, 2.0)
        gradient(SHEAR, 2.0)
    assert found._calls.ready
    assert gradient._calls.ready


def test_real_and_complex_eigenvalues_in_one_program():
    def sizes(a, b):
        return np.sum(np.abs(np.linalg.eigvals(a)) + np.abs(np.linalg.eigvals(b)))

    turned = SHEAR - 3.0 * SHEAR.T
    gradient = ckad.value_and_grad(sizes)
    for a, b in [(SHEAR, turned), (turned, SHEAR), (SHEAR, SHEAR), (turned, turned)] * 2:
        np.testing.assert_allclose(gradient(a, b)[0], sizes(a, b), rtol=1e-12)
