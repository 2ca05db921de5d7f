"""``collections.Counter`` and its kin in loops and branches, put back as they were."""

from __future__ import annotations

import copy
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

import ckad

X = np.random.default_rng(0).uniform(0.0, 1.0, 40)


def counted(c, x):
    total = 0.0
    for k in range(len(x)):
        if x[k] > 0.7:
            c["high"] += 1
            total += x[k]
        else:
            c["low"] += 1
    c["low"] += 2
    return total * c["high"] + x[0] * c["low"]


MAKERS = {
    "Counter": lambda: Counter({"high": 0, "low": 0}),
    "OrderedDict": lambda: OrderedDict(high=0, low=0),
    "defaultdict": lambda: defaultdict(int, {"high": 0, "low": 0}),
    "an empty Counter": Counter,
}


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_a_loop_counts(make):
    def program(x):
        return counted(make(), x)

    value, gradient = ckad.value_and_grad(program, engine="vm")(X)
    np.testing.assert_allclose(value, program(X), rtol=1e-12)
    direction, h = np.cos(np.arange(len(X))), 1e-6
    slope = (program(X + h * direction) - program(X - h * direction)) / (2 * h)
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-6)


def test_a_counter_of_words_that_a_traced_condition_chooses():
    def program(x):
        c, state = Counter({"up": 0, "down": 0}), "up"
        for k in range(1, len(x)):
            state = "up" if x[k] > x[k - 1] else "down"
            c[state] += 1
        return x[0] * c["up"] + x[1] * c["down"] + sum(c.values())

    value, gradient = ckad.value_and_grad(program, engine="vm")(X)
    assert value == pytest.approx(program(X))
    assert gradient[0] + gradient[1] == len(X) - 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, Counter, lambda c: c.copy()])
def test_a_copy_of_a_counter(copied):
    def program(x):
        c = Counter({"up": 2, "down": 0})
        for k in range(len(x)):
            c["down"] += 1 if x[k] > 0.5 else 2
        other = copied(c)
        other["up"] += 3
        return x[0] * other["up"] + x[1] * (other["down"] + c["up"])

    assert ckad.value_and_grad(program, engine="vm")(X)[0] == pytest.approx(program(X))
