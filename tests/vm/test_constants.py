"""Constants of few elements are written into the cells together."""

import numpy as np

import ckad
from ckad.engines.vm.program import FEW, cells_of

KINDS = [
    np.array([np.nan, -0.0, np.inf, 1e-310]),
    np.array([0.1, -2.5], np.float32),
    np.array([-1, 2**62]),
    np.array([True, False, True]),
    np.float64(0.25).reshape(()),
]


def test_cells_hold_what_arrays_do():
    for array in KINDS:
        cells = cells_of(array)
        shown = cells.view(np.float64) if array.dtype.kind == "f" else cells
        assert cells.shape == (array.size,)
        assert np.array_equal(shown, array.ravel(), equal_nan=True)
        assert np.array_equal(np.signbit(shown), np.signbit(np.asarray(array.ravel(), shown.dtype)))


def test_many_constants_of_all_kinds():
    weights = np.random.default_rng(0).normal(size=40)
    long, places = np.linspace(0, 1, FEW + 1), np.array([3, 0, 2])

    def f(x):
        total = np.float32(0.5) * x[0]
        for k in range(40):
            total = total + weights[k] * x[k % 4] ** 2
        return (
            total + np.sum(x[places] * places) + np.sum(long * x[1]) + np.sum(x[KINDS[3].nonzero()])
        )

    x = np.array([0.3, -1.2, 2.0, 0.7])
    value, gradient = ckad.value_and_grad(f, engine="vm")(x)
    assert np.isclose(value, f(x), rtol=1e-14)
    of_squares = [2 * x[k] * np.sum(weights[k::4]) for k in range(4)]
    others = [0.5 + 0 + 1, np.sum(long), 2 + 1, 3]
    assert np.allclose(gradient, np.add(of_squares, others), rtol=1e-13)
