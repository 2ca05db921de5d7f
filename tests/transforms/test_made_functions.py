"""What transformations return, in the places where functions stand: pickled, in classes."""

import copy
import pickle

import numpy as np
import pytest

import ckad
from ckad.errors import TraceError

X = np.array([1.0, 2.0, 3.0])


def cubes(x):
    return np.sum(x**3)


def pairs(x):
    return x[1:] * x[:-1]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize(
    "made",
    [
        ckad.grad(cubes, engine="vm"),
        ckad.jit(cubes, engine="vm"),
        ckad.vmap(np.square, engine="vm"),
        ckad.hessian(cubes, engine="vm"),
        ckad.jacobian(pairs, mode="rev", sparsity=np.ones((2, 3)), engine="vm"),
        ckad.sparsity(pairs),
    ],
    ids=repr,
)
def test_they_are_pickled_and_copied(made, copied):
    found, expected = copied(made)(X), made(X)
    assert repr(copied(made)) == repr(made)
    if not isinstance(expected, np.ndarray):
        assert str(found) == str(expected)
    else:
        np.testing.assert_array_equal(found, expected)


class Model:
    def __init__(self, k):
        self.k = k

    def loss(self, x):
        return self.k * np.sum(x**3)

    slope = ckad.grad(loss, 1, engine="vm")
    curvature = ckad.hessian(loss, 1, engine="vm")

    @ckad.jit
    def step(self, x):
        return self.k * x

    def total(self, x):
        return np.sum(self.step(x) ** 2)


def test_in_a_class_they_are_methods():
    model = Model(2.0)
    assert np.allclose(model.slope(X), 6 * X**2)
    assert np.allclose(model.curvature(X), np.diag(12 * X))
    assert np.allclose(ckad.grad(model.total, engine="vm")(X), 8 * X)
    model.k = 3.0
    assert np.allclose(model.step(X), 3 * X)
    assert np.allclose(ckad.grad(model.total, engine="vm")(X), 18 * X)
    assert np.allclose(Model.step(Model(5.0), X), 5 * X)


@pytest.mark.parametrize("one", [np.int64(1), np.array([1])[0]])
def test_positions_of_arguments_may_be_numpy_s(one):
    def scaled(a, x):
        return a * np.sum(x**2)

    assert np.allclose(ckad.grad(scaled, one, engine="vm")(2.0, X), 4 * X)
    by_x, by_a = ckad.grad(scaled, [one, 0], engine="vm")(2.0, X)
    assert np.allclose(by_x, 4 * X)
    assert np.isclose(by_a, 14.0)
    assert np.allclose(ckad.hessian(scaled, one, engine="vm")(2.0, X), 4 * np.eye(3))


async def awaited(x):
    return x


def test_a_coroutine_that_is_refused_is_closed():
    with pytest.raises(TraceError, match="returns a coroutine"):  # and no warning
        ckad.jit(awaited)(X)
