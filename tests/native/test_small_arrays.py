"""Elements of small arrays, which lie in registers, are put where NumPy puts them."""

import numpy as np
import pytest

import ckad
from ckad.engines.native.values.registers import SMALL, places

DTYPES = [np.float64, np.float32, np.int64, np.bool_]


def puzzle(seed):
    """Parts of three arrays one after the other, with zeros between, turned and put together."""
    random = np.random.default_rng(seed)
    shapes = [(int(n), 3) for n in random.integers(1, 9, 3)]
    dtype = DTYPES[seed % len(DTYPES)]
    arrays = [random.integers(-9, 9, s).astype(dtype) for s in shapes]
    steps = random.integers(1, 4, 6)
    before = int(random.integers(0, 5))

    def moved(x, y, z):
        columns = np.concatenate([a[:: int(s), k % 3] for k, (a, s) in enumerate(
            zip((x, y, z, x, z, y), steps, strict=True))])  # fmt: skip
        padded = np.concatenate([np.zeros(before, dtype), columns, np.zeros(1, dtype), x[0]])
        stacked = np.stack([padded[:6], padded[-6:], np.roll(padded, 2)[:6]], 1)
        return stacked.T, stacked.ravel()[::-1], padded

    return moved, arrays


@pytest.mark.parametrize("seed", range(12))
def test_elements_from_several_parts(seed):
    moved, arrays = puzzle(seed)
    expected = moved(*arrays)
    found = ckad.jit(moved, engine="native")(*arrays)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert sum(len({p for p, _ in places(x.size)}) for x in expected) > 3
    assert all(x.size <= SMALL for x in expected)


def test_eight_lanes_of_three_numbers():
    """Directions side by side, whose numbers a step takes apart and puts together again."""

    def step(x):
        a, b, c = x[0], x[1], x[2]
        for _ in range(9):
            a, b, c = np.stack([0.9 * b - a * c, a + 0.1 * c, b * c - 0.2])
        return np.stack([a, b, c])

    x, directions = np.array([0.3, 0.5, -0.2]), np.random.default_rng(0).normal(size=(3, 8))
    operator = ckad.linear_operator(step, x, engine="native")
    alone = [operator @ v for v in directions.T]
    np.testing.assert_array_equal(operator @ directions, np.stack(alone, 1))
