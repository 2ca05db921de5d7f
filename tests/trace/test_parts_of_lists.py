"""Parts of lists whose length traced numbers decide, also from the end backwards."""

from __future__ import annotations

import numpy as np
import pytest

import ckad


def rewards(p):
    found = []
    for t in range(60):
        found.append(p[0] + 0.1 * t)
        if p[0] * t > 9.0:
            break
    return found


def discounted(p):
    total, before = 0.0, []
    for reward in rewards(p)[::-1]:
        total = reward + p[1] * total
        before.insert(0, total)
    return before[0] + 10.0 * before[1] + 100.0 * before[-1]


def horner(items, p):
    total = 0.0
    for item in items:
        total = total * p[1] + item
    return total


PARTS = [
    slice(None, None, -1),
    slice(-2, None, -1),
    slice(5, None, -1),
    slice(None, -4, -1),
    slice(None, 3, -1),
    slice(3, 1, -1),
    slice(1, 3, -1),
]


@pytest.mark.parametrize("part", PARTS)
def test_backwards(part):
    def program(p):
        found = rewards(p)[part]
        return horner(found, p) + len(found)

    for p in (np.array([0.7, 0.9]), np.array([2.0, 0.9])):
        assert np.isclose(ckad.jit(program, engine="vm")(p), program(p), rtol=1e-13)
    ckad.testing.check_grads(program, (np.array([0.73, 0.9]),))


def test_discounted_sums_from_the_end():
    p = np.array([0.7, 0.9])
    assert np.isclose(ckad.jit(discounted, engine="vm")(p), discounted(p), rtol=1e-13)


def test_the_ends_of_what_is_turned():
    def program(p):
        found = rewards(p)
        turned = found[::-1]
        turned.append(p[1])
        found.append(3.0 * p[1])
        return turned[0] + 10.0 * turned[-2] + 100.0 * turned[-1] + 1000.0 * found[-1]

    p = np.array([0.7, 0.9])
    assert np.isclose(ckad.jit(program, engine="vm")(p), program(p), rtol=1e-13)
