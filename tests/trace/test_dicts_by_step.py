"""Dicts keyed by the number of a step: recorded once where the keys can be followed, else right."""

import contextlib
import warnings

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, BudgetError

N = 9


def letters(x):
    """A recurrent network by hand, and the reverse of it."""
    inputs, targets = [k % 3 for k in range(N)], [(2 * k + 1) % 3 for k in range(N)]
    w = 0.3 * np.outer(x, x)
    xs, hs, ps = {}, {}, {}
    hs[-1] = np.zeros((3, 1))
    loss = 0
    for t in range(len(inputs)):
        xs[t] = np.zeros((3, 1))
        xs[t][inputs[t]] = 1
        hs[t] = np.tanh(np.dot(w, xs[t]) + w @ hs[t - 1])
        ps[t] = np.exp(hs[t]) / np.sum(np.exp(hs[t]))
        loss += -np.log(ps[t][targets[t], 0])
    dw, dhnext = np.zeros_like(w), np.zeros_like(hs[0])
    for t in reversed(range(len(inputs))):
        dy = np.copy(ps[t])
        dy[targets[t]] -= 1
        dhraw = (1 - hs[t] * hs[t]) * (dy + dhnext)
        dw += dhraw @ xs[t].T + dhraw @ hs[t - 1].T
        dhnext = w.T @ dhraw
    return loss + np.sum(dw**2) + np.sum(hs[len(inputs) - 1])


def ahead(x):
    """The next key from the present one; the new array is written into afterwards."""
    T = {0: x * 1.0}
    for n in range(N):
        T[n + 1] = T[n].copy()
        T[n + 1][1:-1] = T[n][1:-1] + 0.1 * (T[n][2:] - 2 * T[n][1:-1] + T[n][:-2])
    return sum(np.sum(T[k] ** 2) * (k + 1) for k in sorted(T.keys())) + len(T)


def downwards(x):
    p = {}
    p[N] = x**2
    for k in range(N - 1, -1, -1):
        p[k] = 0.9 * np.sin(p[k + 1]) + x
    total = 0.0
    for key, value in p.items():
        total += np.sum(value) * (key + 1)
    return total


def two_before(x):
    f = {0: 1.0, 1: np.sum(x)}
    for i in range(2, N):
        f[i] = 0.4 * f[i - 1] + 0.2 * f[i - 2] * x[0]
    return sum(f.values()) + f[N - 1] * f[4]


def strided(x):
    d = {0: x * 1.0}
    for k in range(5, 60, 5):
        d[k] = np.tanh(d[k - 5]) + 0.1
    total = 0.0
    for k in range(0, 60, 10):
        total += np.sum(d[k] * x)
    return total


class Net:
    def __init__(self, x):
        self.x, self.h, self.c = x, {}, {}

    def forward(self, n):
        self.h[-1] = self.x
        for t in range(n):
            self.c[t] = (self.h[t - 1] * 2.0, t * 0.1)
            self.h[t] = np.sin(self.c[t][0] + self.c[t][1])
        return self.h[n - 1]

    def backward(self, n):
        d = np.zeros_like(self.x)
        for t in reversed(range(n)):
            d = (1.0 + d) * np.cos(self.c[t][0]) * self.h[t - 1]
        return d


def in_methods(x):
    net = Net(x)
    return np.sum(net.forward(N)) + np.sum(net.backward(N) ** 2)


def epochs(x):
    """Dicts made anew in each step of an outer loop."""
    w = x * 1.0
    for _ in range(6):
        h = {-1: np.zeros(3)}
        for t in range(5):
            h[t] = np.tanh(w + 0.5 * h[t - 1])
        for t in range(5):
            w = w - 0.05 * h[t] * h[t - 1]
    return np.sum(w**2)


def filled_in_a_nest(x):
    """A dict from outside of two loops, filled again in each step of the outer one."""
    h, total = {-1: x * 1.0}, 0.0
    for k in range(6):
        for t in range(5):
            h[t] = np.cos(h[t - 1] + 0.1 * k)
        total = total + np.sum(h[4]) + h[2][0]
    return total + np.sum(h[3])


def several(x):
    """Two keys in a step, one of them known; a number beside arrays."""
    a = {"unused": 1.0}
    d, e = {-2: x, -1: 2 * x}, {0: 0.0}
    for t in range(N):
        d[t] = 0.5 * d[t - 1] + 0.3 * d[t - 2] * x
        e[t + 1] = e[t] + d[t][1] ** 2
        d[20] = d[t]
    return np.sum(d[20]) + e[N] + a["unused"] + len(d)


def carried_on(x):
    """Filled in one loop, overwritten in the next, then read in order."""
    u = {}
    for k in range(N):
        u[k] = x * (k + 1)
    for k in range(1, N - 1):
        u[k] = 0.5 * (u[k - 1] + u[k + 1])
    return np.sum(np.array([u[k] for k in u]) * np.arange(N)[:, None])


ONCE = [letters, ahead, downwards, two_before, strided, in_methods, epochs, filled_in_a_nest]
ONCE += [several, carried_on]


# --- what is written out: right all the same -----------------------------------------------------


def missing_at_first(x):
    h = {}
    for t in range(N):
        h[t] = np.sin(h[t - 1]) if t > 0 else x * 2.0
    return np.sum(h[N - 1])


def under_a_condition(x):
    h, last = {0: x * 1.0}, 0
    for t in range(1, N):
        if t % 3:
            h[t] = np.sin(h[last])
            last = t
    return np.sum(h[last]) + len(h)


def other_shapes(x):
    h = {0: x[:1] * 1.0}
    for t in range(1, 6):
        h[t] = np.append(h[t - 1], x[0])
    return np.sum(h[5] ** 2)


def same_array(x):
    """One array under all keys, changed after it was put there."""
    h, u = {}, x * 1.0
    for t in range(N):
        h[t] = u
        u *= 1.1
    return np.sum(h[0]) + np.sum(h[3])


def changed_later(x):
    """An item is changed in a later step than its own."""
    h = {k: x * (k + 1.0) for k in range(N)}
    first = h[0]
    for t in range(1, N):
        h[t][0] = h[t - 1][0] * 0.5 + x[1]
        h[t] += 0.1
    return sum(np.sum(h[k]) for k in h) + np.sum(first)


def kept_by_a_name(x):
    """The array of an older step, whose key gets another one."""
    h, old = {0: x * 1.0, 1: x * 2.0}, x
    for t in range(N):
        old = h[0]
        h[0] = np.sin(h[1]) + t
        h[1] = old * 0.9
    return np.sum(old) + np.sum(h[0] * h[1])


def looked_into(x):
    h = {}
    total = 0.0
    for t in range(N):
        h[t] = np.sin(x + t)
        total += len(h) * np.sum(h[t])
        if t - 3 in h:
            total += np.sum(h[t - 3])
    return total


def until_small(x):
    h, t = {0: x * 1.0}, 0
    while np.sum(h[t]) > 0.1:
        h[t + 1] = 0.5 * h[t]
        t += 1
        if t > 20:
            break
    return np.sum(h[t])


def deleted(x):
    h = {0: x * 1.0}
    for t in range(N):
        h[t + 1] = np.cos(h[t])
        del h[t]
    return np.sum(h[N]) + len(h)


def written_after(x):
    """Items are written into after the loop, by their dict and by the names that show them."""
    T, last = {0: x * 1.0}, x
    for n in range(N):
        last = np.sin(T[n]) + 0.5
        T[n + 1] = last
    first = T[0]
    T[N][0] = 3.0
    first[1] = x[2]
    total = np.sum(T[N] ** 2) + np.sum(T[0])
    for n in range(1, N):
        T[0] = T[n] * x
        total = total + np.sum(T[0])
    return total + np.sum(first) + T[4][1] * T[N][0]


ONCE.append(written_after)
ELSE = [missing_at_first, under_a_condition, other_shapes, same_array, changed_later]
ELSE += [kept_by_a_name, looked_into, deleted]
X = np.array([0.4, 0.9, 0.7])
D = np.array([0.3, -0.8, 0.5])


def slope(f):
    h = 1e-5
    return (f(X + h * D) - f(X - h * D)) / (2 * h)


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize("f", ONCE + ELSE, ids=lambda f: f.__name__)
def test_value_and_gradient(f, engine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, gradient = ckad.value_and_grad(f, engine=engine)(X)
    np.testing.assert_allclose(found, f(X.copy()), rtol=1e-13)
    np.testing.assert_allclose(np.sum(gradient * D), slope(f), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("f", ONCE, ids=lambda f: f.__name__)
def test_is_recorded_once(f):
    assert "written out" not in str(ckad.explain(f, X))


@pytest.mark.parametrize("f", ONCE, ids=lambda f: f.__name__)
def test_same_bits_under_a_budget(f):
    free, bits = ckad.grad(f, engine="vm")(X), set()
    for memory in (2_000, 4_000, 8_000, 16_000, 32_000, 64_000):
        with contextlib.suppress(BudgetError):
            bits.add(ckad.grad(f, engine="vm", memory=memory)(X).tobytes())
    assert bits == {free.tobytes()}


def test_a_key_that_is_not_there():
    def f(x):
        h = {0: x}
        for t in range(N):
            h[t + 2] = h[t] * 2.0
        return np.sum(h[4])

    with pytest.raises((KeyError, ckad.CkadError)):
        ckad.grad(f)(X)


def test_two_names_of_one_array():
    def f(x):
        h, last = {0: x * 1.0}, x
        for t in range(N):
            last = np.sin(h[t])
            h[t + 1] = last
        h[N][0] = 2.0
        return np.sum(last)

    with pytest.raises(AliasError):
        ckad.grad(f)(X)


def test_a_dict_from_outside_is_as_it_was():
    known = {k: float(k) for k in range(N)}

    def f(x):
        total = 0.0
        for k in range(N):
            total += known[k] * np.sum(x) ** 2
        return total

    slope_now = ckad.grad(f)(X)
    np.testing.assert_allclose(slope_now, 2 * 36 * np.sum(X) * np.ones(3), rtol=1e-14)
    assert known == {k: float(k) for k in range(N)}
    known[2] = 12.0
    np.testing.assert_allclose(ckad.grad(f)(X), 2 * 46 * np.sum(X) * np.ones(3), rtol=1e-14)
