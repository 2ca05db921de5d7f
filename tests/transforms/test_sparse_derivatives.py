"""Sparse Jacobians and Hessians: the elements of dense ones, from a few products."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import ckad
from ckad.errors import DifferentiationError
from ckad.passes import pipeline
from ckad.patterns import taken_apart
from ckad.transforms import call as calls
from ckad.transforms.sparse import recipe
from ckad.transforms.sparse.colouring import columns_coloured, n_colours, symmetric_coloured

rng = np.random.default_rng(3)


def tridiagonal(x):
    y = -2.0 * x
    y[1:] += x[:-1] ** 2
    y[:-1] += np.sin(x[1:]) * x[:-1]
    return y


def chain(x):
    return np.sum((x[1:] - x[:-1] ** 2) ** 2) + np.sum(np.cos(x))


def star(x):
    return x[0] ** 2 * np.sum(x[1:] ** 3)


@pytest.mark.parametrize("n", [3, 17, 1000])
def test_a_tridiagonal_jacobian_takes_three_seeds(n, monkeypatch):
    seeds = []
    wanted = pipeline.pushforwards

    def noted(*about, **options):
        seeds.append(about[3])
        return wanted(*about, **options)

    monkeypatch.setattr(pipeline, "pushforwards", noted)
    ckad.clear_caches()
    x = rng.normal(size=n)
    found = ckad.jacobian(tridiagonal, sparse=True, mode="fwd", engine="vm")(x)
    assert isinstance(found, sp.csr_array)
    assert set(seeds) == {3}
    main, low, high = -2.0 + np.append(np.sin(x[1:]), 0.0), 2 * x[:-1], np.cos(x[1:]) * x[:-1]
    assert found.nnz == 3 * n - 2
    expected = sp.diags_array([low, main, high], offsets=[-1, 0, 1]).toarray()
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("mode", ["fwd", "rev", "auto"])
def test_modes_agree_and_auto_takes_the_fewer(mode):
    def long_rows(x):  # one row with all columns: two cotangents are enough, n tangents are not
        return np.concatenate([[np.sum(x**2)], x[:5] ** 3])

    x = rng.normal(size=9)
    found = ckad.jacobian(long_rows, mode=mode, sparse=True, engine="vm")(x)
    np.testing.assert_allclose(found.toarray(), ckad.jacobian(long_rows)(x), rtol=1e-14)
    assert ckad.sparsity(long_rows)(x).colours == (9, 2)
    made = recipe.recipe_of(calls.Call(long_rows, (x,), {}), (0,), mode)
    assert (made.mode, len(made.seeds)) == {"fwd": ("fwd", 9)}.get(mode, ("rev", 2))


def test_pattern_and_colours_are_found_once_per_program(monkeypatch):
    found = []
    wanted = recipe.columns_coloured
    monkeypatch.setattr(recipe, "columns_coloured", lambda *p: found.append(p) or wanted(*p))
    derivative = ckad.jacobian(tridiagonal, sparse=True, mode="fwd", engine="vm")
    first, second = derivative(np.ones(31)), derivative(np.full(31, 2.0))
    assert len(found) == 1
    first.data[:], first.indices[:] = 0.0, 0  # what users do with one is not seen in the other
    third = derivative(np.full(31, 2.0))
    np.testing.assert_array_equal(second.toarray(), third.toarray())


def test_hessians():
    x = rng.normal(size=14)
    for fun, colours in ((chain, 3), (star, 2)):
        found = ckad.hessian(fun, sparse=True, engine="vm")(x)
        dense = ckad.hessian(fun, engine="vm")(x)
        np.testing.assert_allclose(found.toarray(), dense, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(found.toarray(), found.toarray().T)
        assert n_colours(symmetric_coloured(taken_apart(found)[1])) <= colours + 1
    assert len(recipe.recipe_of(calls.Call(star, (x,), {}), (0,), "sym", second=True).seeds) == 2


def test_a_hessian_through_a_loop_within_a_budget():
    def energy(x):
        y = x
        for _ in range(40):
            y = y - 0.1 * np.sin(y) * y
        return np.sum(y[1:] * y[:-1])

    x = rng.normal(size=8)
    found = ckad.hessian(energy, sparse=True, schedule="revolve", memory="64 KiB")(x)
    np.testing.assert_allclose(found.toarray(), ckad.hessian(energy)(x), rtol=1e-11, atol=1e-13)
    assert found.nnz == 3 * 8 - 2


@pytest.mark.parametrize("seed", range(20))
def test_colours_are_valid(seed):
    own = np.random.default_rng(seed)
    n = int(own.integers(1, 40))
    matrix = (own.random((n, n)) < own.uniform(0.02, 0.3)).astype(float)
    pattern = taken_apart(sp.csr_array(matrix))[1]
    colours = columns_coloured(pattern, (n,))
    seeds = np.eye(n_colours(colours))[colours]
    assert np.all(matrix @ seeds <= 1)  # of one colour, a row has one at most
    both = matrix + matrix.T + np.diag(own.random(n) < 0.5)
    values = np.triu(own.normal(size=(n, n)))
    values = (values + values.T) * (both > 0)
    made = recipe._symmetric(taken_apart(sp.csr_array(both > 0))[1], np.dtype(float))
    found = made.pattern.csr(made.elements(made.seeds @ values))
    np.testing.assert_allclose(found.toarray(), values, rtol=0, atol=1e-15)


def test_a_grid_is_coloured_as_a_grid():
    def laplacian(u):
        inner = u[1:-1, 1:-1]
        return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner * inner

    assert ckad.sparsity(laplacian)(np.ones((10, 12))).colours[0] == 5


def five(u):
    return u * u + sum(np.roll(u, by, axis) for by in (1, -1) for axis in (0, 1))


def nine(u):
    return u * u + sum(np.roll(u, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1))


def two_species(w):
    return np.stack([five(w[0]) * w[1], five(w[1]) + w[0]])


@pytest.mark.parametrize(
    ("fun", "shape", "most"),
    [
        (five, (20, 25), 5),  # lattices fit
        (nine, (20, 30), 10),  # ten, in which 20 and 30 fit; greedily there are 17
        (two_species, (2, 24, 24), 6),  # of both, the second one's half a period on
        (five, (31, 37), 9),  # the ends of a periodic grid do not meet in any of them
        (nine, (40, 41), 14),
    ],
)
def test_a_periodic_grid_takes_few_colours(fun, shape, most):
    u = np.random.default_rng(0).normal(size=shape)
    assert min(ckad.sparsity(fun)(u).colours) <= most
    found = ckad.jacobian(fun, sparse=True)(u)
    v = np.random.default_rng(1).normal(size=shape)
    _, expected = ckad.jvp(fun, (u,), (v,))
    np.testing.assert_allclose(found @ v.ravel(), expected.ravel(), rtol=1e-12, atol=1e-12)
    w = np.random.default_rng(2).normal(size=found.shape[0])
    (expected,) = ckad.vjp(fun, u)[1](w.reshape(np.shape(fun(u))))
    np.testing.assert_allclose(found.T @ w, expected.ravel(), rtol=1e-12, atol=1e-12)


def test_a_given_pattern():
    x = rng.normal(size=6)
    for given in (sp.eye(6, format="coo"), np.eye(6), ckad.sparsity(np.sin)(x)):
        found = ckad.jacobian(np.sin, sparsity=given, engine="vm")(x)
        np.testing.assert_array_equal(found.diagonal(), np.cos(x))
        assert found.nnz == 6
    upper = np.triu(np.ones((6, 6))) - np.triu(np.ones((6, 6)), 2)
    found = ckad.hessian(chain, sparsity=upper, engine="vm")(x)
    np.testing.assert_allclose(found.toarray(), ckad.hessian(chain)(x), rtol=1e-12)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda x: ckad.jacobian(np.sin, sparsity=np.ones((2, 2)))(x), r"shape \(2, 2\).*\(6, 6\)"),
        (lambda x: ckad.jacobian(np.sin, sparsity="dense")(x), "is not 0 where"),
        (lambda x: ckad.jacobian(lambda x: (x, x), sparse=True)(x), "one real array"),
        (lambda x: ckad.jacobian(lambda x: x["a"], sparse=True)({"a": x, "b": x}), "2 arrays"),
        (lambda x: ckad.jacobian(np.sin, sparse=True)(x + 1j), "complex"),
        (lambda x: ckad.jacobian(np.sin, sparse=True)(np.arange(3)), "int64"),
        (lambda x: ckad.jacobian(np.cumsum, sparse=True)(np.ones(50_000)), "is not sparse"),
        (lambda x: ckad.vmap(ckad.jacobian(np.sin, sparse=True))(x.reshape(2, 3)), "sparse matrix"),
        (lambda x: ckad.sparsity(np.sin, order=3)(x), "order=3"),
    ],
)
def test_what_is_refused(what, said):
    with pytest.raises(DifferentiationError, match=said):
        what(np.ones(6))


def test_empty_and_scalar():
    assert ckad.jacobian(lambda x: np.floor(x), sparse=True)(np.ones(4)).nnz == 0
    found = ckad.jacobian(lambda t: t * np.array([1.0, 2.0]), sparse=True)(3.0)
    np.testing.assert_array_equal(found.toarray(), [[1.0], [2.0]])
    assert ckad.jacobian(np.sin, sparse=True)(np.ones(0)).shape == (0, 0)


def test_a_large_pattern_is_shown_in_blocks():
    shown = str(ckad.sparsity(tridiagonal)(np.ones(480)))
    assert "480 x 480, 1,438 elements (0.624 %), at most 3 in a row, 3 in a column" in shown
    assert "3 seeds by columns, 3 by rows" in shown
    assert "a character per 10 x 10 elements" in shown
    assert len(shown.splitlines()) == 51


def test_colours_of_a_hessian_are_the_products_that_it_takes():
    def arrow(x):
        return np.sum(x**4) + x[0] ** 2 * np.sum(x[1:] ** 2)

    assert ckad.sparsity(arrow, order=2)(np.ones(50)).colours == (2, 2)


def test_the_first_sparse_matrix_of_a_process_has_its_methods():
    text = (
        "import numpy as np, ckad\n"
        "first = ckad.jacobian(lambda x: x[1:] * x[:-1], sparse=True)\n"
        "print(ckad.jit(lambda x: first(x).toarray(), engine='vm')(np.ones(3)).tolist())\n"
    )
    command = [sys.executable, "-c", text]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.stdout == "[[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]\n", told.stderr
