"""The routines alone, against SciPy; and the factors that are kept."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import ckad
from ckad.rules.routines import sparse, sparse_solve, sparse_triangular
from ckad.rules.routines.dense.banded import banded, banded_lu
from ckad.rules.routines.sparse import packed

RNG = np.random.default_rng(0)


def _diagonals(a, below, above):
    found = np.zeros((below + above + 1, a.shape[1]))
    coo = a.tocoo()
    found[above + coo.row - coo.col, coo.col] = coo.data
    return found


def _where(a):
    return packed(a.indptr), packed(a.indices)


@pytest.mark.parametrize("shape", [(7, 5), (1, 1), (0, 3), (3, 0), (4, 9)])
@pytest.mark.parametrize("k", [1, 3])
def test_products(shape, k):
    m, n = shape
    a = sp.random(m, n, 0.4, random_state=0, format="csr")
    a.sort_indices()
    x, y = RNG.normal(size=(n, k)), RNG.normal(size=(m, k))
    of_x = sparse.dot.run((0, m, n), a.data, x, *_where(a))
    of_y = sparse.dot.run((1, m, n), a.data, y, *_where(a))
    elements = sparse.sampled.run((m, n, a.nnz), y, x, *_where(a))
    np.testing.assert_array_equal(of_x, a @ x)
    np.testing.assert_allclose(of_y, a.T @ y, rtol=1e-14)
    np.testing.assert_allclose(elements, (y @ x.T)[a.nonzero()], rtol=1e-13)


@pytest.mark.parametrize("offsets", [[-1, 0, 1], [-2, -1, 0, 1, 3], [0], [-8, 0]])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("transposed", [0, 1])
def test_solutions(offsets, k, transposed):
    n = 9
    parts = [RNG.normal(size=n - abs(o)) + 4 * (o == 0) for o in offsets]
    a = sp.diags(parts, offsets).tocsr()
    b = RNG.normal(size=(n, k))
    expected = np.linalg.solve(a.toarray().T if transposed else a.toarray(), b)
    bands = max(0, -min(offsets)), max(0, *offsets)
    factors = banded_lu.run(bands, _diagonals(a, *bands)[None])
    found = (
        banded.run((*bands, transposed, 0), factors, b[None])[0],
        sparse_solve.solve.run((transposed, 0, n), a.data, b, *_where(a)),
    )
    for x in found:
        np.testing.assert_allclose(x, expected, rtol=1e-10)
    for lower in (0, 1):
        half = (sp.tril(a) if lower else sp.triu(a)).tocsr()
        half.sort_indices()
        x = sparse_triangular.triangular.run((transposed, lower, 0, n), half.data, b, *_where(half))
        dense = half.toarray().T if transposed else half.toarray()
        np.testing.assert_allclose(x, np.linalg.solve(dense, b), rtol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 40])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("transposed", [0, 1])
def test_rows_of_three_diagonals_are_exchanged(n, k, transposed):
    diagonals = RNG.normal(size=(2, 3, n)) * np.array([[1.0], [0.1], [1.0]])
    b = RNG.normal(size=(2, n, k))
    found = banded.run((1, 1, transposed, 0), banded_lu.run((1, 1), diagonals), b)
    for d, right, x in zip(diagonals, b, found, strict=True):
        a = np.diag(d[0, 1:], 1) + np.diag(d[1]) + np.diag(d[2, :-1], -1)
        expected = np.linalg.solve(a.T if transposed else a, right)
        np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_a_band_that_a_loop_does_not_change_is_factored_once():
    def heat(diagonals, u):
        for _ in range(20):
            u = scipy.linalg.solve_banded((1, 1), diagonals, u)
        return np.sum(u**2)

    diagonals = np.array([[-1.0], [3.0], [-1.5]]) * np.ones(6)
    compiled = ckad.value_and_grad(heat, (0, 1)).compiled(diagonals, np.arange(6.0))
    rows = [line for line in str(compiled.tape).splitlines() if "banded_lu" in line]
    assert len(rows) == 1
    assert not rows[0].startswith(" ")


def test_factors_are_kept_by_their_exact_numbers_and_in_bounds(monkeypatch):
    kept = sparse_solve.Factors()
    a = (sp.random(30, 30, 0.1, random_state=1) + 5 * sp.eye(30)).tocsr()
    first = kept.of(30, a.data, *_where(a))
    assert kept.of(30, a.data.copy(), *_where(a)) is first
    other = a.data.copy()
    other[7] = np.nextafter(other[7], 9.0)
    assert kept.of(30, other, *_where(a)) is not first
    monkeypatch.setattr(sparse_solve, "MOST_FACTORS", 2)
    for scale in (2.0, 3.0, 4.0):
        kept.of(30, scale * a.data, *_where(a))
    assert len(kept._kept) == 2
    again = kept.of(30, a.data, *_where(a))
    b = RNG.normal(size=30)
    assert again is not first
    assert again.solve(b).tobytes() == first.solve(b).tobytes()
