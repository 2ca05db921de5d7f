"""Loops over generators, which run the body of the loop where the generator yields."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import UnrecordableError

Function = Callable[[Any], Any]
AT = 0.37


def diffused(u, s):
    u = u.copy()
    u[1:-1] += s * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def frames(u, s, n):
    for _ in range(n):
        u = diffused(u, s)
        yield u


def start():
    return np.linspace(0, 1, 6) ** 2


def endless(s):
    x = 1.0
    while True:
        x = x * s
        yield x


def summed(s):
    total = 0.0
    for u in frames(start(), s, 12):
        total = total + np.sum(u**2)
    return total


def enumerated(s):
    total = 0.0
    for k, u in enumerate(frames(start(), s, 12), 1):
        if k % 2:
            continue
        total += k * u[2]
        if total > 2:
            break
    else:
        total *= 2
    return total * k


def reduced(s):
    sums = sum(np.sum(u) for u in frames(start(), s, 12))
    return sums + max(u[1] for u in frames(start(), s, 12))


def listed(s):
    films = list(frames(start(), s, 12))
    return np.mean(films) + films[-1][2] + films[3][1]


def left_by_break(s):
    total = 0.0
    for x in endless(s):
        total += x
        if x < 0.01:
            break
    return total


def left_by_return(s):
    for x in endless(s):
        if x < 0.01:
            return x * 3


def zipped(s):
    total = 0.0
    for k, x in zip(range(7), endless(s), strict=False):
        total += k * x
    for x, k in zip(endless(s), range(7), strict=False):
        total += k * x
    for x, w in zip(frames(start(), s, 9), [1.0, s, 2.0], strict=False):
        total += w * x[1]
    return total


def zipped_asks_the_generator_first(s):
    u, v = start(), start()

    def moved(a):
        for _ in range(9):
            a[1:-1] += s * (a[2:] - a[1:-1])
            yield a[1]

    total = 0.0
    for x, k in zip(moved(u), range(5), strict=False):
        total += k * x
    for k, x in zip(range(5), moved(v), strict=False):
        total += k * x
    return total + u[2] + 10 * v[3]


def delegated(s):
    def several(n):
        for k in range(n):
            yield s**k
        yield from few(n)
        yield from range(3)

    def few(n):
        if n > 3:
            return
        yield 7 * s

    total = 0.0
    for x in several(6):
        total = 0.5 * total + x
        if total > 100:
            break
    return total + sum(several(2))


class Counting:
    def __init__(self, s, n):
        self.s, self.n, self.x = s, n, 1.0

    def __iter__(self):
        for _ in range(self.n):
            self.x = self.x * self.s
            yield self.x


def of_a_class(s):
    items, total = Counting(s, 8), 0.0
    for x in items:
        total += x * x
    return total * items.x


def sliced(s):
    total = 0.0
    for x in itertools.islice(endless(s), 9):
        total += x**2
    return total


@contextmanager
def scaled(a, s):
    a *= s
    yield a
    a /= s


def context_of_a_function(s):
    u = np.ones(4)
    t = 0.0
    for _k in range(6):
        u = u * 1.1
        with scaled(u, s) as w:
            t += np.sum(w**2)
            w[0] = t * 0.01
    return t + np.sum(u)


def context_of_a_closure(s):
    log = np.zeros(3)

    @contextmanager
    def phase(i):
        log[i] += s
        try:
            yield i + 1
        finally:
            log[i] *= 2

    x = s
    for k in range(5):
        with phase(k % 3) as j:
            x = x * 0.9 + j
            if x > 2.5:
                x = x - s
    return x + np.sum(log)


class Sim:
    def __init__(self, s):
        self.u = s * np.ones(3)
        self.t = 0.0

    def run(self, n):
        while self.t < n - 0.5:
            self.u = 0.9 * self.u + 0.1 * np.sin(self.u)
            self.t += 1.0
            yield self.t, self.u

    def frames(self, n):
        yield from self.run(n)


def of_a_method(s):
    tot = 0.0
    for t, u in Sim(s).frames(9):
        tot += t * np.sum(u)
    return tot


def arrays_swapped_by_name(s):  # in place and swap
    def gen():
        u = s * np.arange(5.0)
        v = np.zeros(5)
        for _k in range(7):
            v[1:-1] = 0.5 * (u[:-2] + u[2:])
            v[0] = s
            u, v = v, u
            yield u

    tot = 0.0
    for u in gen():
        tot = tot * 0.5 + u[2] ** 2
    return tot + u[1]


def branches_on_both_sides(s):  # traced branch inside gen & consumer
    def gen(x):
        for k in range(9):
            if x > 1.05:
                x = x * 0.5
            else:
                x = x + s
            if k % 2 == 0:
                yield x
            else:
                yield x * 2

    tot = 0.0
    for k, x in enumerate(gen(0.3)):
        if x > 1.2:
            continue
        tot += k * x
        if tot > 8:
            break
    return tot * x


def yields_under_a_traced_condition(s):
    def gen(x):
        for k in range(9):
            x = x * s + k
            if x > 5:
                yield x

    tot = 0.0
    for x in gen(1.0):
        tot += x
    return tot


def nested(s):
    def inner(n, x):
        for k in range(n):
            yield x * k

    def outer():
        for k in range(5):
            for y in inner(6, s + k):
                yield y**2

    t = 0.0
    for y in outer():
        t = t * 0.99 + y
    return t


def while_of_the_generator(s):
    def gen():
        x = s
        while x < 10:
            x = x * 1.3
            yield x

    t = 0.0
    for x in gen():
        t += x**2
    return t


def views(s):
    def chunks(a, n):
        for i in range(0, len(a), n):
            yield a[i : i + n]

    a = s * np.arange(12.0)
    t = 0.0
    for c in chunks(a, 3):
        t = t * 0.5 + np.prod(c + 1)
        c[0] = t
    return np.sum(a) * t


def pairs(s):
    def pairs(n):
        for i in range(n):
            for j in range(i + 1, n):
                yield i, j

    x = s * np.arange(6.0) ** 1.1
    f = np.zeros(6)
    for _n in range(6):
        for i, j in pairs(6):
            d = x[i] - x[j]
            f[i] -= d * 0.1
            f[j] += d * 0.1
        x = x + 0.01 * f
    return np.sum(x**2)


def in_a_loop_with_else(s):
    def gen():
        for k in range(6):
            yield s * k

    tot = 0.0
    for m in range(7):
        for y in gen():
            tot = 0.9 * tot + y * m
            if tot > 4:
                break
        else:
            tot += 1
    return tot


def first_match(s):
    def gen(n):
        x = s
        for _k in range(n):
            x = x * 0.9 + 0.1
            yield x

    for x in gen(9):
        last = x
        if x > 0.8:
            return x * 2
    return last


def into_lists(s):
    def gen():
        x = s
        for _k in range(8):
            x = x * 0.7 + 0.3
            yield x

    xs = [x**2 for x in gen()]
    return (
        sum(xs) + len(xs) + np.sum(np.array(list(gen()))) + max(gen()) + dict(enumerate(gen()))[3]
    )


PROGRAMS: list[Function] = [
    *(summed, enumerated, reduced, listed, left_by_break, left_by_return, zipped, delegated),
    *(zipped_asks_the_generator_first, of_a_class, sliced),
    *(
        of_a_method,
        arrays_swapped_by_name,
        yields_under_a_traced_condition,
        nested,
        while_of_the_generator,
        views,
        pairs,
        in_a_loop_with_else,
        first_match,
        into_lists,
        context_of_a_function,
        context_of_a_closure,
        branches_on_both_sides,
    ),
]
every_program = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)


@pytest.mark.filterwarnings("error::ckad.errors.UnrolledLoopWarning")
@every_program
def test_value_and_derivatives(f: Function) -> None:
    value, gradient = ckad.value_and_grad(f, engine="vm")(AT)
    assert value == pytest.approx(f(AT), rel=1e-13)
    assert gradient == pytest.approx((f(AT + 1e-7) - f(AT - 1e-7)) / 2e-7, rel=1e-6)
    assert ckad.jvp(f, (AT,), (1.0,), engine="vm")[1] == pytest.approx(gradient, rel=1e-12)
    second = ckad.grad(ckad.grad(f, engine="vm"), engine="vm")(AT)
    slopes = [ckad.grad(f, engine="vm")(AT + h) for h in (-1e-6, 1e-6)]
    assert second == pytest.approx((slopes[1] - slopes[0]) / 2e-6, rel=1e-5, abs=1e-6)


@every_program
def test_within_a_budget(f: Function) -> None:
    gradient = ckad.value_and_grad(f, engine="vm")
    assert ckad.value_and_grad(f, engine="vm", memory="60 kB")(AT) == gradient(AT)


@pytest.mark.parametrize("f", [summed, left_by_break, while_of_the_generator, nested, of_a_method])
def test_the_loop_of_the_generator_is_recorded_once(f: Function) -> None:
    assert "written out" not in str(ckad.explain(f, AT))
    assert len(ckad.trace(f)(AT)) < 12


def test_single_items_are_taken_by_python() -> None:
    def f(s):
        items = endless(s)
        return next(items) + 2 * next(items)

    assert ckad.value_and_grad(f, engine="vm")(AT) == pytest.approx((f(AT), 1 + 4 * AT))


def test_what_the_body_raises_is_not_caught_by_the_generator() -> None:
    def guarded():
        try:
            yield 1.0
        except KeyError:
            yield 2.0

    def f(s):
        for _ in guarded():
            raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        ckad.jit(f)(AT)


def used_again(s):
    items, total = endless(s), 0.0
    for x in items:
        total += x
        if total > 0.4:
            break
    for x in items:
        total += x
        if x < 0.1:
            break
    return total


def two_at_once(s):
    total = 0.0
    for x, y in zip(endless(s), endless(s), strict=False):
        total += x * y
        if y < 0.1:
            break
    return total


def ended_early(s):
    items, total = endless(s), 0.0
    for x in items:
        total += x
        if total > 0.4:
            break
    items.close()
    return total


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (ended_early, "generator is asked for that is run from its source"),
        (used_again, "a generator is run over again"),
        (two_at_once, "a generator is zipped with"),
    ],
)
def test_what_is_refused(f: Function, says: str) -> None:
    with pytest.raises(UnrecordableError, match=says):
        ckad.jit(f, engine="vm")(AT)


def counted_up(x, n):
    k = 0
    while True:
        if k >= n:
            return
        yield x * k
        k += 1


def with_an_else(x):
    for z in counted_up(x, 3):
        if z > 1.1:
            break
    else:
        x = 0.9 * x
    return x


def that_returns(x):
    for z in counted_up(x, 3):
        if z > 1.1:
            return 7.0 * z
    return 2.0 * x


def left_at_once(x):
    for z in counted_up(x, 3):  # noqa: B007
        break
    else:
        x = 0.9 * x
    for z in counted_up(x + 1.0, 3):
        return z + x
    return x


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
@pytest.mark.parametrize("program", [with_an_else, that_returns, left_at_once])
def test_the_end_of_a_generator_is_not_that_of_the_loop(program):
    function = ckad.jit(program, engine="vm")
    for x in (0.5, 0.6):
        assert function(x) == pytest.approx(program(x), rel=1e-14)
