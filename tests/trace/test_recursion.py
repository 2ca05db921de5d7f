"""Functions that call themselves: as often as a number says that the loop around knows."""

import numpy as np
import pytest

import ckad
from ckad.errors import UnrecordableError
from ckad.trace.arguments import take_apart
from ckad.trace.memory import known
from ckad.trace.record import record
from ckad.trace.source.names import closures


def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)


def legendre(n, x):
    if n < 2:
        return x if n == 1 else 1.0
    return ((2 * n - 1) * x * legendre(n - 1, x) - (n - 1) * legendre(n - 2, x)) / n


def spline(i, k, u, t):
    if k == 0:
        return 1.0 if t[i] <= u < t[i + 1] else 0.0
    left = right = 0.0
    if t[i + k] != t[i]:
        left = (u - t[i]) / (t[i + k] - t[i]) * spline(i, k - 1, u, t)
    if t[i + k + 1] != t[i + 1]:
        right = (t[i + k + 1] - u) / (t[i + k + 1] - t[i + 1]) * spline(i + 1, k - 1, u, t)
    return left + right


def exponential(x):
    s = 0.0
    for n in range(8):
        s = s + x**n / factorial(n)
    return s


def polynomials(x):
    s = 0.0
    for n in range(7):
        s += legendre(n, x) / (n + 1)
    return s


def splines(x):
    t, s = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0]), 0.0
    for j in range(3):
        for i in range(4):
            s = s + spline(i, 2, 0.5 * j + 0.1 * x, t) * (i + 1)
    return s


def kept(x):
    known = {}

    def fibonacci(n):
        if n not in known:
            known[n] = x if n < 2 else fibonacci(n - 1) + 0.5 * fibonacci(n - 2)
        return known[n]

    s = 0.0
    for n in range(10):
        s = s + fibonacci(n)
    return s


@pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning")
@pytest.mark.parametrize("program", [exponential, polynomials, splines, kept])
def test_as_in_python(program):
    value, gradient = ckad.value_and_grad(program)(1.3)
    assert value == pytest.approx(program(1.3), rel=1e-13)
    difference = (program(1.3 + 1e-6) - program(1.3 - 1e-6)) / 2e-6
    assert gradient == pytest.approx(difference, rel=1e-7)


def test_without_an_end_that_is_known():
    def halved(x):
        return x if x < 0.1 else halved(0.5 * x)

    with pytest.raises(ckad.errors.UnrecordableError, match="deeper than can be recorded"):
        ckad.grad(halved)(1.3)


def by_donors(x):
    """Areas of a drainage tree, from its leaves on: heights decide who drains where."""
    n = 20
    h = x * np.random.RandomState(2).rand(n)
    receiver = np.arange(n)
    for k in range(n - 1):
        if h[k + 1] < h[k]:
            receiver[k] = k + 1
    donors = [[] for _ in range(n)]
    for k in range(n):
        if receiver[k] != k:
            donors[receiver[k]].append(k)

    def add(k, donors, order):
        order.append(k)
        for d in donors[k]:
            add(d, donors, order)

    order = []
    for k in range(n):
        if receiver[k] == k:
            add(k, donors, order)
    area = np.ones(n)
    for k in reversed(order):
        if receiver[k] != k:
            area[receiver[k]] += area[k] * h[k]
    return np.sum(area)


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
def test_loops_that_call_their_function_are_given_up_soon(monkeypatch):
    calls, bodies = [], []
    check, apart = closures._check_recursion, known.apart
    monkeypatch.setattr(
        closures, "_check_recursion", lambda *args: (calls.append(1), check(*args))[1]
    )
    monkeypatch.setattr(known, "apart", lambda tape: (bodies.append(1), apart(tape))[1])
    value, gradient = ckad.value_and_grad(by_donors)(1.3)
    assert value == pytest.approx(by_donors(1.3), rel=1e-13)
    difference = (by_donors(1.3 + 1e-6) - by_donors(1.3 - 1e-6)) / 2e-6
    assert gradient == pytest.approx(difference, rel=1e-7)
    assert len(calls) < 500
    assert len(bodies) < 40


def test_what_is_found_to_have_no_end_is_followed_no_further(monkeypatch):
    def visit(v):
        s = v
        for k in range(6):
            if v * k > 0.3:
                s = s + visit(0.5 * v)
        return s

    def searched(x):
        total = 0.0
        for t in range(8):
            total = total + visit(x + t)
        return total

    def counted(*about):
        calls.append(about)
        return check(*about)

    check, calls = closures._check_recursion, []
    monkeypatch.setattr(closures, "_check_recursion", counted)
    with pytest.raises(UnrecordableError, match="deeper than can be recorded"):
        record(searched, take_apart((0.7,)))
    assert len(calls) < 150  # 269 if it is followed as deep each time
