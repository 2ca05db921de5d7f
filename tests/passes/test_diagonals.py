"""Sparse Jacobians of shifts and elementwise ops come without seeds, and are the dense ones."""

import numpy as np
import pytest

import ckad
from ckad.transforms.sparse import recipe

rng = np.random.default_rng(16)
INDEX = np.array([3, 3, 0, 7, 11, 2])


def front(u):
    out = u * (1.0 - u) * (u - 0.2)
    out[1:-1] += 0.3 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return out


def laplacian(a):
    return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a


def species(w):
    u, v = w[0], w[1]
    r = u * v * v
    return np.stack([0.16 * laplacian(u) - r, 0.08 * laplacian(v) + r - 0.1 * v])


def written(w):
    out = np.empty_like(w)
    out[0] = laplacian(w[0]) * w[1]
    out[1, 1:, ::2] = w[1, :-1, ::2] - w[0, 1:, ::2] ** 2
    out[1, 0], out[1, 1:, 1::2] = 1.0, np.sin(w[0, :-1, 1::2])
    return out


def upwind(u):
    flux = np.where(u > 0.5, u * np.roll(u, 1), np.minimum(u, 0.4) * np.roll(u, -1) ** 2)
    return u.T[::-1] * 2.0 + (flux - np.roll(flux, 1, 1)).T


def gathered(u):
    return np.concatenate([u[INDEX] * np.arange(6.0), np.exp(u[::-1]) / (1 + u**2), [u[0] * u[3]]])


def twice(u):
    return laplacian(u**3 - u - laplacian(u))


def linear(u):
    return np.concatenate([3.0 * u, 2.0 * u[:3]])


def spread(u):
    return np.tile(u[:2], (3, 1)) * u[2]


def repeated(u):  # at the ends several terms are one element
    wide = np.pad(u**2, 2, mode="edge")
    return wide[4:] * wide[1:-3] + wide[2:-2] * wide[:-4]


CASES = {
    front: (9,), species: (2, 5, 7), written: (2, 4, 6), upwind: (4, 4), gathered: (12,),
    twice: (6, 7), linear: (5,), spread: (4,), repeated: (6,),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("fun", CASES, ids=lambda f: f.__name__)
def test_terms_are_the_elements_of_the_dense_jacobian(fun, engine):
    ckad.clear_caches()
    jacobian = ckad.jacobian(fun, sparse=True, engine=engine)
    points = rng.uniform(0.2, 0.9, (2, *CASES[fun]))
    jacobian(points[0]).data[:] = np.nan  # what is returned is the caller's own
    found = jacobian(points[1])
    assert [r.mode for r in recipe._recipes.values()] == ["terms"]
    assert found.has_sorted_indices
    dense = ckad.jacobian(fun, engine=engine)(points[1]).reshape(found.shape)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-14, atol=1e-15)
    by_seeds = ckad.jacobian(fun, sparse=True, mode="fwd", engine=engine)(points[1])
    np.testing.assert_array_equal(found.indices, by_seeds.indices)
    np.testing.assert_array_equal(found.indptr, by_seeds.indptr)


def summed(u):
    return u * np.sum(u[:2]) + np.cumsum(u)


def stepped(u):
    for _ in range(30):
        u = u + 0.1 * np.roll(u, 1)
    return u


def chosen_by_numbers(u):
    return u[np.argsort(u)] ** 2


def rooted(u):  # of a root by its square: what is under it is differentiated
    return np.sqrt((u - u[0]) ** 2) ** 2


@pytest.mark.parametrize("fun", [summed, stepped, chosen_by_numbers, rooted])
def test_other_programs_take_seeds(fun):
    ckad.clear_caches()
    x = rng.uniform(0.2, 0.9, 6)
    found = ckad.jacobian(fun, sparse=True, engine="vm")(x)
    assert {r.mode for r in recipe._recipes.values()} <= {"fwd", "rev"}
    dense = ckad.jacobian(fun, engine="vm")(x)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-13, atol=1e-15)


def test_terms_within_other_derivatives_and_of_float32():
    def loss(u):
        return np.sum((ckad.jacobian(front, sparse=True)(u) @ u) ** 2)

    def mirrored(u):
        return np.sum((ckad.jacobian(repeated, sparse=True)(u) @ u) ** 2)

    x = rng.uniform(0.2, 0.9, 9)
    ckad.testing.check_grads(loss, (x,), engine="vm")
    ckad.testing.check_grads(mirrored, (x,), engine="vm")
    found = ckad.jacobian(front, sparse=True)(x.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), ckad.jacobian(front)(x), rtol=2e-5, atol=1e-6)
