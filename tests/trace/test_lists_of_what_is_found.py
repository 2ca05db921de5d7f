"""Lists made of, or made longer by, as many items as are only known when the program runs."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

from .idioms import check_number

AT = 0.6


def neurons(w):
    fired_at, which, v = [], [], np.array([0.1, 0.5, 0.9])
    for k in range(40):
        v = v + 0.05 * w * (1.5 - v)
        fired = np.where(v > 1.0)[0]
        which.extend(fired)
        fired_at.extend([k * w] * len(fired))
        v[fired] = 0.0
    return np.sum(v) + len(which) + sum(fired_at) + w * np.sum(np.array(which))


def a_mask_in_straight_code(w):
    v, found = np.array([0.1, 0.5, 0.9]) * w, [w]
    found.extend(v[v > 0.2])
    found += list(v[v < 0.4])
    return sum(found) * len(found) + found[-1]


def lists_of_places(w):
    found, v = [], np.array([0.1, 0.5, 0.9])
    for k in range(20):
        v = v + 0.05 * w * (1.5 - v)
        if np.any(v > 1.0):
            found += list(np.flatnonzero(v > 1.0))
        found.extend((v > 1.2).nonzero()[0].tolist())
        found.extend([i * w + k for i in np.where(v > 1.3)[0]])
    return np.sum(np.array(found)) * w


def kept_by_a_comprehension(w):
    found, v = [0.5], np.array([0.1, 0.5, 0.9])
    for _ in range(10):
        v = v + 0.1 * w
        found.extend([x * w for x in v if x > 1.0])
    return sum(found)


def as_many_as_are_counted(w):
    v = np.array([0.1, 0.5, 0.9]) * w
    n = len(np.where(v > 0.2)[0])
    return sum([0.5, w] * n) + len(n * [w])


def the_best_by_a_key(w):
    v = np.array([0.2, 0.5, 0.9, 1.6, 1.3]) * w
    last = max((x for x in v if x < 0.8), key=lambda x: abs(x - 0.7))
    first = min([k for k in range(5) if v[k] > 0.2], key=lambda k: (v[k] - 0.75) ** 2)
    of_equal = max(filter(lambda x: x > 0.2, v), key=lambda x: 1)
    small = min([x for x in v[:2] if x > 0.2], key=lambda x: 1 / (x - 0.2))
    none = max((x for x in v if x > 9.0), key=lambda x: -x, default=w)
    return last * 3 + first * w + of_equal * 7 + small * 11 + none


PROGRAMS = [
    *(neurons, a_mask_in_straight_code, lists_of_places, kept_by_a_comprehension),
    *(as_many_as_are_counted, the_best_by_a_key),
]


@pytest.mark.filterwarnings("error::ckad.errors.UnrolledLoopWarning")
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_value_and_gradient(f):
    check_number(f, AT, rel=1e-13, memory="300 kB")


def test_an_array_is_added_to_a_list_as_to_an_array():
    def f(w):
        found = []
        for k in range(6):
            if w * k > 1.0:
                found.append(w)
        found += np.ones(4) * w
        return np.sum(found)

    assert f(AT) == 4 * 2 * AT
    with pytest.raises(ckad.errors.CkadError):
        ckad.grad(f, engine="vm")(AT)


def test_a_tuple_is_repeated_as_often_as_is_counted_in_the_call():
    def f(w):
        n = len(np.where(np.array([0.1, 0.5]) * w > 0.2)[0])
        return sum((w, 1.0) * n)

    check_number(f, AT)
    check_number(f, 10.0 * AT)


def test_the_best_by_a_key_of_nothing():
    def f(w):
        return max((x for x in np.array([0.1, 0.5]) * w if x > 9.0), key=lambda x: -x)

    with pytest.raises(ckad.errors.RaisedError, match="raises an error"):
        ckad.grad(f, engine="vm")(AT)
