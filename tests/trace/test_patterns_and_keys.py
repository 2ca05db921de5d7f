"""Sequences and mappings as patterns, order by several keys, repeated places, clips."""

import numpy as np
import pytest

import ckad

from .idioms import check


def matched(message, scale):
    match message:
        case [a, b]:
            return a * b
        case (a, *rest, last):
            return a + sum(rest) - last
        case {"op": "shift", "by": k, **other}:
            return 3.0 * k + len(other)
        case {"op": word}:
            return scale * len(word)
        case [*_]:
            return 7.0 * scale
        case _:
            return scale


def dispatched(a, b):
    total = 0.0
    for k in range(4):
        for message in ([a, b], (a, k, b, a * b), {"op": "shift", "by": a * k, "z": 1},
                        {"op": "none"}, [a], "ab", {}):  # fmt: skip
            total += matched(message, a + k)
    return total


def test_sequences_and_mappings_are_patterns():
    check(dispatched, 1.5, 0.7)


def by_keys(x):
    groups = np.arange(x.size) % 3
    order = np.lexsort((x, groups))
    down = np.lexsort((np.round(x), -x))
    planes = np.lexsort((np.stack([x, x[::-1]]), np.stack([groups, -groups])))
    turned = np.sort(np.exp(1j * x))
    weights = np.arange(x.size)
    return np.sum(x[order] * weights) + x[down] @ x[order] + np.sum(x[planes] @ weights) + np.sum(
        np.angle(turned) * weights
    )  # fmt: skip


def test_order_by_several_keys():
    check(by_keys, np.random.default_rng(4).normal(size=7))


@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum, np.multiply])
def test_numbers_are_put_at_traced_places_one_after_the_other(ufunc):
    def put(x):
        places = x.astype(int)
        rows, table, counts = np.ones((4, 2)), np.full((4, 3), 1.5), np.arange(4)
        ufunc.at(rows, places, np.stack([x, x * x], 1))
        ufunc.at(table, (places, places % 3), x)
        ufunc.at(counts, places, 2)
        return np.sum(np.log(rows)) + table.ravel() @ np.arange(12) + counts @ counts

    check(put, np.random.default_rng(0).uniform(0.5, 4.0, size=9))


def test_bounds_of_short_integers():
    image = np.array([3, 200, 7], dtype=np.uint8)
    for low, high in ((-1, 100), (-1, 100.5), (4.5, 300), (0, np.float32(9.5)), (5, 256)):
        found = ckad.jit(lambda x: np.clip(x, low, high))(image)  # noqa: B023
        assert found.dtype == np.clip(image, low, high).dtype
        np.testing.assert_array_equal(found, np.clip(image, low, high))
