"""Stiff steps with Jacobians of few elements: read off the program, told, or given."""

import numpy as np
import pytest
from scipy import sparse

import ckad
from ckad.errors import RaisedError
from ckad.integrate import solve_ivp
from ckad.integrate.stiff import linear
from ckad.integrate.stiff.patterned import Banded, General

from .test_stiff import slow

SIDE = 10


def laplacian(a):
    return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a


def gray_scott(t, w, spread, feed):
    u, v = w.reshape(2, SIDE, SIDE)
    made = u * v * v
    of_u = spread * laplacian(u) - made + feed * (1 - u)
    of_v = 0.5 * spread * laplacian(v) + made - (feed + 0.06) * v
    return np.stack([of_u, of_v]).reshape(-1)


def start():
    x = np.arange(SIDE) / SIDE
    v = 0.25 * np.exp(-30 * ((x - 0.5) ** 2 + (x[:, np.newaxis] - 0.4) ** 2))
    return np.stack([1 - v, v]).ravel()


PATTERN = ckad.sparsity(lambda w: gray_scott(0.0, w, 1.0, 0.04))(start()).matrix
P = np.array([20.0, 0.04])


def end(p, method, **options):
    about = {"args": (p[0], p[1]), "rtol": 1e-6, "atol": 1e-8, **options}
    return np.sum(solve_ivp(gray_scott, (0.0, 5.0), start(), method, **about).y[:, -1] ** 2)


@pytest.fixture(scope="module")
def expected():
    """By an explicit method, to tighter tolerances."""
    tight = {"rtol": 1e-9, "atol": 1e-11}
    return ckad.value_and_grad(lambda p: end(p, "DOP853", **tight))(P)


@pytest.mark.parametrize(
    "method",
    ["Rodas5P", *[pytest.param(m, marks=slow) for m in ("Kvaerno5", "KenCarp4", "BDF")]],
)
def test_a_plane_of_two_species(method, expected):
    value, gradient = ckad.value_and_grad(lambda p: end(p, method))(P)
    np.testing.assert_allclose(value, expected[0], rtol=1e-6)
    np.testing.assert_allclose(gradient, expected[1], rtol=2e-4)


@slow
@pytest.mark.parametrize("method", ["Rodas5P", "Kvaerno5", "BDF"])
def test_by_dense_factors_it_is_the_same(method, monkeypatch):
    """Also under a small budget, and by a pattern or a sparse Jacobian that a user gives."""

    def jac(t, w, spread, feed):
        found = ckad.jacobian(lambda w: gray_scott(t, w, spread, feed), sparse=True)(w)
        return sparse.csr_array(found)

    sparser = ckad.value_and_grad(lambda p: end(p, method))(P)
    small = ckad.value_and_grad(lambda p: end(p, method), memory="6 MiB")(P)
    assert sparser[0] == small[0]
    np.testing.assert_array_equal(sparser[1], small[1])
    others = [{"jac_sparsity": PATTERN}]
    if method != "Rodas5P":
        others.append({"jac": jac})
    found = [ckad.value_and_grad(lambda p, of=of: end(p, method, **of))(P) for of in others]
    monkeypatch.setattr(linear, "patterned", lambda elements: None)
    found.append(ckad.value_and_grad(lambda p: end(p, method, max_step=99.0))(P))
    for value, gradient in found:
        np.testing.assert_allclose(value, sparser[0], rtol=1e-12)
        np.testing.assert_allclose(gradient, sparser[1], rtol=1e-8)


def test_a_pattern_that_lacks_elements():
    lacking = PATTERN.multiply(
        sparse.csr_array(abs(np.subtract.outer(*[range(2 * SIDE * SIDE)] * 2)) < SIDE * (SIDE - 1))
    )
    run = ckad.jit(lambda p: end(p, "Rodas5P", jac_sparsity=lacking))
    with pytest.raises(RaisedError, match="fun depends on more than jac_sparsity= tells"):
        run(P)


def chosen(fun, n, **options):
    """What solves the systems of a problem."""
    kinds = []

    def run(y):
        asked = linear.Problem(fun, 0.0, 1.0, y, None)
        given = {"jac": None, "jac_sparsity": None, **options}
        kinds.append(type(linear.systems(asked, fun, args=(), **given)))
        return y

    ckad.jit(run)(np.ones(n))
    return kinds[0]


def test_what_solves_the_systems():
    def line(t, y):
        return np.roll(y, 1) * 0.0 + y[:1] * y if len(y) < 3 else np.diff(y, prepend=0.0) * y

    def plane(t, y):
        return laplacian(y.reshape(20, 20)).reshape(-1)

    assert chosen(line, 20) is linear.Dense
    assert chosen(line, 60) is Banded
    assert chosen(plane, 400) is General
    assert chosen(lambda t, y: y * np.sum(y), 400) is linear.Dense
    assert chosen(plane, 400, jac_sparsity=np.ones((400, 400))) is linear.Dense
    assert chosen(plane, 400, jac=sparse.eye_array(400)) is Banded
    assert chosen(plane, 400, jac=np.eye(400)) is linear.Dense


@pytest.mark.slow
def test_members_of_a_batch():
    """Each with its own steps."""
    rates = np.array([[20.0, 0.04], [10.0, 0.03]])
    together = ckad.vmap(ckad.grad(lambda p: end(p, "Rodas5P")))(rates)
    alone = [ckad.grad(lambda p: end(p, "Rodas5P"))(p) for p in rates]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
