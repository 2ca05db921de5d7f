"""Lists in loops that nothing bounds before they run, and loops over what is found then."""

import numpy as np
import pytest

import ckad
from ckad.errors import RaisedError


def adaptive(rate):
    t, y, h = 0.0, 1.0, 0.1
    ts, ys, hs = [t], [y], []
    while t < 5.0:
        k1 = -rate * y
        k2 = -rate * (y + h * k1)
        error = abs(h * (k2 - k1) / 2)
        if error < 1e-3:
            t += h
            y += h * (k1 + k2) / 2
            ts.append(t)
            ys.append(y)
        hs.append(h)
        h = min(h * min(2.0, 0.9 * (1e-3 / (error + 1e-16)) ** 0.5), 5.0 - t + 1e-9)
    return np.sum(np.array(ys) * np.array(ts)) + ys[-1] + sum(ys) / len(ys) + max(hs)


def newton_with_history(a):
    x, history = 1.0, []
    while True:
        new = 0.5 * (x + a / x)
        history.append(abs(new - x))
        if history[-1] < 1e-12 or (len(history) > 1 and history[-1] > history[-2]):
            break
        x = new
    return x + sum(history)


def spikes(drive):
    v, weight = np.linspace(0.0, 0.9, 12), 0.1 * np.cos(np.arange(12.0))
    fired, rates = [], 0.0
    for step in range(30):
        hit = np.where(v > 1.0)[0]
        for n in hit:
            fired.append((step, n))
            rates = rates + v[n] * (n + 1)
        v[hit] = 0.0
        v += 0.1 * (drive - v) + weight * len(hit)
    return rates + np.sum(v)


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("program", [adaptive, newton_with_history, spikes])
def test_like_python(program, engine):
    value, slope = ckad.value_and_grad(program, engine=engine)(1.3)
    assert value == pytest.approx(program(1.3), rel=1e-13)
    h = 1e-6
    differences = (program(1.3 + h) - program(1.3 - h)) / (2 * h)
    assert slope == pytest.approx(differences, rel=1e-6)


def test_more_items_than_assumed_stop_the_program():
    def halved(x):
        xs = []
        while x > 1e-3:
            x = x * 0.9999
            xs.append(x)
        return sum(xs)

    with pytest.raises(RaisedError, match="more items than were assumed at step 8192"):
        ckad.grad(halved, engine="vm")(1.0)


def test_a_bound_gives_the_space():
    def halved(x):
        xs = []
        for _ in range(30_000):
            if x <= 1e-1:
                break
            x = x * 0.9999
            xs.append(x)
        return sum(xs) + xs[-1]

    assert ckad.jit(halved, engine="vm")(1.0) == pytest.approx(halved(1.0), rel=1e-12)
