"""A few eigenvalues and singular values of sparse matrices, and systems by solvers of any name."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import ckad
from ckad.errors import UnsupportedFunctionError

N = 8
D = np.linspace(-1.3, 2.0, N) ** 3
WANTED = [{"which": w} for w in ("LM", "SM", "LA", "SA", "BE")] + [{"sigma": 0.4}]


def symmetric(d):
    return sp.diags([d, 0.3 * np.ones(N - 1), 0.3 * np.ones(N - 1)], [0, 1, -1], format="csc")


def oblong(d):
    return sp.diags([d, 0.4 * np.ones(N)], [0, 1], shape=(N, N + 1), format="csr")


@pytest.mark.parametrize("options", WANTED, ids=str)
def test_some_eigenvalues(options):
    def values(d):
        e, v = sla.eigsh(symmetric(d), k=4, **options)
        if options == {"which": "BE"}:
            return e, v * v
        return e, v * v, sla.eigsh(symmetric(d), 4, return_eigenvectors=False, **options)

    for mine, theirs in zip(ckad.jit(values)(D), values(D), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-10)
    ckad.testing.check_grads(lambda d: values(d), (D,), order=1)


@pytest.mark.parametrize("which", ["LM", "SM"])
def test_some_singular_values(which):
    def low_rank(d):
        u, s, vh = sla.svds(oblong(d), k=3, which=which)
        return (u * s) @ vh, s, sla.svds(oblong(d), 2, which=which, return_singular_vectors=False)

    u, s, vh = np.linalg.svd(oblong(D).toarray(), full_matrices=False)
    at = slice(None, 3) if which == "LM" else slice(-3, None)
    product, values, two = ckad.jit(low_rank)(D)
    np.testing.assert_allclose(product, (u[:, at] * s[at]) @ vh[at], atol=1e-12)
    np.testing.assert_allclose(values, np.sort(s[at]), atol=1e-12)
    assert two.shape == (2,)
    if which == "LM":
        np.testing.assert_allclose(values, sla.svds(oblong(D), 3)[1], atol=1e-10)
    ckad.testing.check_grads(ckad.jit(lambda d: low_rank(d)), (D,), order=1)


@pytest.mark.parametrize("name", "minres bicg cgs qmr tfqmr lgmres gcrotmk".split())
def test_solvers_give_the_solution(name):
    def solved(d, b):
        x, info = getattr(sla, name)(symmetric(d), b, rtol=1e-12)
        return x * (1 + info)

    d, b = 3.0 + D**2, np.cos(np.arange(N))
    np.testing.assert_allclose(ckad.jit(solved)(d, b), solved(d, b), rtol=1e-9)
    ckad.testing.check_grads(lambda d, b: solved(d, b), (d, b), order=1)


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("name", ["lsqr", "lsmr"])
def test_least_squares(name, engine):
    solver, tight = getattr(sla, name), {"atol": 1e-15, "btol": 1e-15}
    tight["maxiter" if name == "lsmr" else "iter_lim"] = 300

    def solved(d, b, damp):
        first, *_rest = solver(oblong(d).T, b, **tight)  # more rows than unknowns
        shortest = solver(oblong(d), first, **tight)[0]
        by_known = solver(oblong(D), np.cos(b[1:]), damp, **tight)[0]
        return first, shortest, by_known, solver(oblong(d).toarray(), first, damp=0.1, **tight)[0]

    given = 3.0 + D**2, np.cos(np.arange(N + 1.0)), 0.4
    for mine, theirs in zip(ckad.jit(solved, engine=engine)(*given), solved(*given), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9)
    ckad.testing.check_grads(lambda *v: solved(*v), given, order=1, engine=engine)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_in_a_loop_on_both_engines(engine):
    def ground(d):
        total = 0.0
        for _ in range(3):
            e, v = sla.eigsh(symmetric(d), k=1, which="SA")
            d = d + 0.1 * v[:, 0] ** 2
            total = total + e[0] + sla.minres(symmetric(d + 5.0), d, rtol=1e-13)[0][0]
        return total

    ckad.testing.check_grads(lambda d: ground(d), (D,), order=2, engine=engine)


def test_what_is_refused():
    known = sla.aslinearoperator(symmetric(D))
    for refused in (
        lambda d: sla.eigsh(symmetric(d), 2, M=symmetric(D)),
        lambda d: sla.eigsh(symmetric(d), 2, sigma=0.0, which="LA"),
        lambda d: sla.cgs(symmetric(d), D, maxiter=3),
        lambda d: sla.minres(symmetric(d), D, shift=0.3),
        lambda d: sla.lsqr(symmetric(d), D, x0=D),
        lambda d: sla.lsmr(symmetric(d), D)[1] * 1.0,
        lambda d: sla.lsqr(symmetric(d), D)[3] < 1e-6,
        lambda d: sla.lsqr(known, d),
        lambda d: sla.svds(symmetric(d), 2, return_singular_vectors="u"),
    ):
        with pytest.raises(UnsupportedFunctionError, match="has no rule for"):
            ckad.jit(refused)(D)
    with pytest.raises(ValueError, match="must be between"):
        ckad.jit(lambda d: sla.eigsh(symmetric(d), N))(D)
