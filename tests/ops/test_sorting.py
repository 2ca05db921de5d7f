"""Rows longer than a network sorts: by a routine, in both engines as NumPy's stable sort."""

import numpy as np
import pytest

import ckad
from ckad.testing import check_grads

RNG = np.random.default_rng(5)
ROWS = {
    "distinct": RNG.normal(size=(3, 100)),
    "equal": RNG.integers(0, 9, size=(4, 77)).astype(float),
    "some are NaN": np.where(RNG.random((4, 60)) < 0.3, np.nan, RNG.normal(size=(4, 60))),
    "all are NaN": np.full((2, 20), np.nan),
    "zeros of both signs": np.array([[0.0, -0.0] * 20]),
    "infinite": np.where(RNG.random((2, 33)) < 0.3, -np.inf, np.inf),
    "float32": RNG.normal(size=(2, 17)).astype(np.float32),
    "integers beyond float64": 2**60 + RNG.integers(0, 9, size=(2, 3, 40)),
    "truth values": RNG.integers(0, 2, size=(3, 50)).astype(bool),
    "none": np.zeros((0, 30)),
}


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("name", ROWS)
def test_places_are_those_of_a_stable_sort(name, engine):
    x = ROWS[name]
    places, values = ckad.jit(lambda y: (np.argsort(y), np.sort(y)), engine=engine)(x)
    assert np.array_equal(places, np.argsort(x, kind="stable"))
    assert values.dtype == x.dtype
    assert values.tobytes() == np.take_along_axis(x, places, -1).tobytes()


def test_derivatives_go_where_elements_came_from():
    weights = np.arange(20.0)

    def ranked(x):
        for _ in range(5):
            x = x - 1e-6 * np.sort(x, axis=0)[::-1] * weights[:, None]
        return np.sum(np.sort(x, axis=None) ** 2 * np.arange(40)) + np.sum(np.median(x, 0))

    x = RNG.permutation(40).reshape(20, 2) / 10.0
    value, gradient = ckad.value_and_grad(ranked)(x)
    np.testing.assert_allclose(value, ranked(x), rtol=1e-13)
    check_grads(ranked, (x,))
    assert ckad.grad(ranked, memory="20 KB")(x).tobytes() == gradient.tobytes()


def test_a_row_of_a_tape_whatever_the_length():
    few, many = (len(ckad.trace(np.sort)(np.zeros(n))) for n in (100, 10_000))
    assert few == many < 30
