"""Random numbers in loops: NumPy's and Python's to the bit, their generators left as they are."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import UnrecordableError

from .drawing import AT, check_draws, states

Function = Callable[[Any], Any]


def global_state(s):
    np.random.seed(4)
    x, v = np.random.rand(5) - 0.5, np.zeros(5)
    for _ in range(9):
        v = v - 0.1 * s * x + 0.3 * np.random.randn(5)
        x = x + 0.1 * v
    return np.sum(x**2) + np.random.rand()


def several_in_their_order(s):
    rng = np.random.RandomState(7)
    x, total = np.zeros(3), 0.0
    for _k in range(8):
        x = s * x + rng.normal(size=3)
        total += np.sum(x) * rng.rand()
        x[0] *= rng.uniform(0.5, 1.5)
    return total


def nested(s):
    rng = np.random.default_rng(3)
    x = 1.0
    for _k in range(6):
        x = x + s * rng.normal()
        for _j in range(5):
            for _ in range(7):
                x = 0.9 * x + s**2 * rng.random()
        x = x * (1 + 0.1 * rng.standard_normal())
    return x


def at_some_steps(s):
    rng = np.random.default_rng(3)
    x = np.ones(4)
    for k in range(12):
        x = x * s
        if k % 3 == 1:
            x = x + rng.normal(size=4)
        elif k > 6 and k % 2:
            x = x * rng.random()
        x += 0.1 * rng.random(4)
    return np.sum(x)


def by_what_was_drawn(s):
    rng = np.random.default_rng(3)
    x = 1.0
    for _k in range(12):
        if rng.random() < 0.4:
            x = x * s + rng.normal()
        else:
            x = x - s
    return x


def scaled_by_arguments(s):
    rng = np.random.default_rng(5)
    x = np.zeros(3)
    for _k in range(7):
        x = 0.5 * x + rng.normal(s, s**2 + 1, 3) + rng.uniform(-s, s, size=3)
        x = x + rng.normal(x, 0.1) * rng.exponential(s) + rng.lognormal(0.1, s)
    return np.sum(x) + rng.gamma(2.0, s) + rng.laplace(s) + rng.logistic(scale=s)


def scaled_before_the_loop(s):
    noise = np.random.default_rng(5).normal(0, s, size=(6, 3))
    x = np.zeros(3)
    for row in noise:
        x = 0.5 * x + row
    return np.sum(x**2)


def python_numbers(s):
    random.seed(11)
    x = 0.0
    for _k in range(8):
        x = 0.7 * x + random.gauss(s, 0.5) * random.random()
        x += random.uniform(-s, 2.0) + random.expovariate(1.0 + s) + random.choice([1, 2.5, 7])
    return x


def own_python_generator(s):
    rng = random.Random(2)
    x = np.ones(6)
    for _k in range(8):
        i = rng.randrange(6)
        x[i] = x[i] * s + rng.betavariate(2, 3)
        first, second = rng.sample(range(6), 2)
        x[first] += 0.5 * x[second] * rng.choices([1.0, 2.0], [3, 1])[0]
    return np.sum(x)


def indices(s):
    rng = np.random.RandomState(1)
    x = np.linspace(0.0, 1.0, 10)
    for _k in range(9):
        i, j = rng.randint(10), rng.randint(0, 10, size=3)
        x[i] = s * x[i] + np.sum(x[j])
        x[rng.choice(10, 2, replace=False)] *= 0.5
    return np.sum(x**2)


def minibatches(w):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    a, b = w, 0.0
    for _epoch in range(5):
        order = rng.permutation(20)
        for start in range(0, 20, 4):
            batch = order[start : start + 4]
            error = X[batch, 0] * a + X[batch, 1] * b - y[batch]
            a, b = a - 0.1 * np.mean(error * X[batch, 0]), b - 0.1 * np.mean(error * X[batch, 1])
    return a + b


def shuffled(s):
    rng = np.random.default_rng(9)
    x = s * np.arange(6.0)
    y = np.zeros(6)
    for _k in range(7):
        rng.shuffle(x)
        y = 0.5 * y + x * rng.permutation(x)
    np.random.default_rng(1).shuffle(x)
    return np.sum(y * x)


def known_while(s):
    np.random.seed(4)
    t, x = 0.0, s
    while t < 1.05:
        t += 0.1
        x = 0.9 * x + s * np.random.randn()
    return x * np.random.rand()


def left_early(s):
    rng = np.random.default_rng(8)
    x, n = s, 0
    for _k in range(100):
        u = rng.random()
        x = 0.9 * x + s * rng.normal()
        n += 1
        if u > 0.9:
            break
    return x * n + rng.random()


def last_before_the_bound(s):
    rng = np.random.default_rng(8)
    x = s * np.arange(8.0)
    for _sweep in range(5):
        for i in range(7, 0, -1):
            j = rng.integers(0, i, endpoint=True)
            x[i], x[j] = x[j], 0.9 * x[i]
    return np.sum(x * np.arange(8))


class Sensor:
    def __init__(self, noise, seed):
        self.noise, self.rng = noise, np.random.default_rng(seed)

    def read(self, x):
        return x + self.noise * self.rng.standard_normal(np.shape(x))


def of_an_object(s):
    sensor = Sensor(s, 12)
    x, estimate = np.ones(2), np.zeros(2)
    for _k in range(10):
        x = 0.9 * x
        estimate = estimate + 0.3 * (sensor.read(x) - estimate)
    return np.sum(estimate)


def made_at_each_step(s):
    x = np.zeros(3)
    for _k in range(6):
        rng = np.random.default_rng(0)
        x = s * x + rng.normal(size=3)
        for _j in range(3):
            x = x + rng.random()
    return np.sum(x)


def written_into(s):
    rng = np.random.default_rng(2)
    total = 0.0
    for _k in range(6):
        z = rng.normal(size=4)
        z[1:] *= s
        z += s
        total += np.sum(z**2)
    return total


def of_many_dimensions(s):
    rng = np.random.default_rng(2)
    mean, cov = s * np.ones(2), np.array([[2.0, 0.5], [0.5, 1.0]])
    total = 0.0
    for _k in range(6):
        total = 0.5 * total + np.sum(rng.multivariate_normal(mean, cov)) + rng.poisson(3.0)
    return total


def rejected(s):
    random.seed(5)
    points = []
    while len(points) < 5:  # nothing says how often
        u, v = random.uniform(-1, 1), random.uniform(-1, 1)
        if u * u + v * v < 1:
            points.append((u, v))
    return sum(s * u + s**2 * v for u, v in points) * random.random()


def two_generators(s):
    one, other = np.random.default_rng(1), np.random.RandomState(1)
    x = s
    for k in range(7):
        x = x * one.random() + s * other.rand()
        if k == 4:
            other.seed(3)
    return x + one.random() + other.rand()


def gradient_within(s):
    rng = np.random.default_rng(1)

    def loss(w):
        return np.sum((w - rng.normal(size=2)) ** 2)

    w = s * np.ones(2)
    for _k in range(6):
        w = w - 0.1 * ckad.grad(loss)(w)
    return np.sum(w)


def in_a_generator(s):
    rng = np.random.default_rng(1)

    def noisy(n):
        x = s
        for _k in range(n):
            x = 0.9 * x + rng.normal() * s
            yield x

    t = 0.0
    for x in noisy(9):
        if x > 0.5:
            t = t + x
        t += rng.random()
    return t


def masks(s):
    rng = np.random.default_rng(1)
    x = s * np.ones(5)
    for _k in range(7):
        mask = rng.random(5) < 0.5
        flip = rng.integers(0, 2, size=x.shape).astype(bool)
        x = np.where(mask, x * 1.1, x * 0.9)
        x[flip] *= 0.5
        x += rng.random(5, dtype=np.float32)
    return x.sum()


def by_a_helper_twice(s):
    rng = np.random.default_rng(1)

    def kick(x):
        return x + s * rng.normal()

    x = s
    for _k in range(7):
        x = kick(kick(x))
        try:
            x = kick(x)
        finally:
            x = x * 0.9
    return x


def a_list_of_generators(s):
    rngs = [np.random.default_rng(i) for i in range(3)]
    x = np.ones(3) * s
    for _k in range(7):
        x = 0.9 * x + np.array([r.normal() for r in rngs]) * s
    return x.sum()


def rejected_in_a_loop(s):
    rng = np.random.default_rng(1)
    x = s
    for _k in range(12):
        while True:
            u = rng.random()
            if u < 0.5:
                break
        x = 0.9 * x + u * s
    return x


def a_list_shuffled(s):
    random.seed(1)
    xs = [s, 2.0, 3.0 * s]
    random.shuffle(xs)
    return xs[0] * 2 + xs[1] + random.choice(xs)


def bounds_of_the_step(s):
    rng = np.random.default_rng(1)
    x = s
    for k in range(12):
        scale = 0.5**k
        x = x + rng.normal(0, scale) * s + rng.uniform(0, k + 1)
        i = rng.integers(k + 1)
        x = x + i
    return x


def particles_on_a_grid(s):
    rng = np.random.default_rng(1)
    u = np.zeros(20)
    for t in range(5):
        for _p in range(6):
            u[rng.integers(20)] += s * rng.exponential()
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        if t % 2 == 0 and t > 1:
            u += rng.normal(size=20) * 0.1
    return np.sum(u**2)


def accepted_by_numbers(s):
    rng = np.random.default_rng(1)
    x = s
    accepted = 0
    for _k in range(20):
        new = x + 0.5 * rng.normal()
        u = rng.random()
        if u < np.exp(-(new**2 - x**2) * s):
            x = new
            accepted += 1
    return x * s + accepted


def sizes_of_two_kinds(s):
    rng = np.random.default_rng(1)
    x = s
    for k in range(6):
        size = 2 if k > 2 else 3
        x = x + rng.normal(size=size).sum() * s
    return x


def the_worst_is_drawn_anew(s):
    rng = np.random.RandomState(1)
    pos = np.zeros((6, 2))
    for _k in range(8):
        theta = rng.uniform(0, 2 * np.pi, 6)
        pos += s * np.column_stack([np.cos(theta), np.sin(theta)])
        d = np.linalg.norm(pos - pos.mean(0), axis=1)
        worst = np.argmax(d)
        pos[worst] = rng.normal(scale=0.1, size=2)
    return np.sum(pos**2)


def seeded_by_the_step(s):
    x = s
    for k in range(8):
        rng = np.random.RandomState(k)
        x = x * 0.9 + s * rng.rand()
    return x


def seeded_at_each_step(s):
    x = s
    for _k in range(7):
        np.random.seed(3)
        x = 0.9 * x + s * np.random.randn() + np.random.rand()
    return x + np.random.rand()


PROGRAMS: list[Function] = [
    *(global_state, several_in_their_order, nested, at_some_steps, by_what_was_drawn),
    *(scaled_by_arguments, scaled_before_the_loop, python_numbers, own_python_generator, indices),
    *(minibatches, shuffled, known_while, left_early, last_before_the_bound, of_an_object),
    *(
        in_a_generator,
        masks,
        by_a_helper_twice,
    ),
    *(
        a_list_of_generators,
        rejected_in_a_loop,
        a_list_shuffled,
    ),
    *(
        bounds_of_the_step,
        particles_on_a_grid,
        accepted_by_numbers,
    ),
    *(
        sizes_of_two_kinds,
        the_worst_is_drawn_anew,
        seeded_by_the_step,
    ),
    *(seeded_at_each_step,),
    *(made_at_each_step, written_into, of_many_dimensions, rejected, two_generators),
]
every_program = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)


def sized_by_the_step(s):
    rng, x = np.random.default_rng(1), s
    for k in range(9):
        x = x + np.sum(rng.integers(0, 5, k + 1)) * s
    return x


def test_sizes_that_differ_from_step_to_step_are_drawn_step_by_step() -> None:
    assert ckad.value_and_grad(sized_by_the_step, engine="vm")(AT)[0] == sized_by_the_step(AT)


@pytest.mark.filterwarnings("error::ckad.errors.UnrolledLoopWarning")
@every_program
def test_value_and_gradient(f: Function) -> None:
    check_draws(f)


@every_program
def test_within_a_budget(f: Function) -> None:
    gradient = ckad.value_and_grad(f, engine="vm")
    memory = "650 kB" if f is rejected else "60 kB"  # a list that nothing bounds: 8,192 items
    assert ckad.value_and_grad(f, engine="vm", memory=memory)(AT) == gradient(AT)


@pytest.mark.parametrize("f", [global_state, nested, at_some_steps, known_while, left_early])
def test_loops_are_recorded_once(f: Function) -> None:
    assert "written out" not in str(ckad.explain(f, AT))
    assert len(ckad.trace(f)(AT)) < 80


def unseeded(s, n):
    x = 0.0
    for _k in range(n):
        x = 0.5 * x + s * np.random.randn()
    return x


def test_each_call_draws_anew() -> None:
    np.random.seed(1)
    expected = [unseeded(AT, 8) for _ in range(3)]
    np.random.seed(1)
    found = [ckad.value_and_grad(unseeded, engine="vm")(AT, 8)[0] for _ in range(3)]
    assert found == expected


def test_a_generator_that_is_given_goes_on() -> None:
    def walk(s, rng):
        x = 0.0
        for _k in range(10):
            x = 0.5 * x + s * rng.normal()
        return x

    one, other = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(2):
        assert ckad.value_and_grad(walk, engine="vm")(AT, one)[0] == walk(AT, other)
    assert one.random() == other.random()


def test_gradients_within_a_loop_draw_as_the_function() -> None:
    rng = np.random.default_rng(1)
    w = AT * np.ones(2)
    for _k in range(6):
        w = w - 0.1 * 2 * (w - rng.normal(size=2))
    assert ckad.jit(gradient_within, engine="vm")(AT) == pytest.approx(np.sum(w), rel=1e-14)
    assert ckad.grad(gradient_within, engine="vm")(AT) == pytest.approx(2 * 0.8**6, rel=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda s: np.random.poisson(s),
        lambda s: np.random.binomial(5, s),
        lambda s: np.random.weibull(s),
    ],
)
def test_distributions_without_a_derivative_are_refused(f: Function) -> None:
    with pytest.raises(UnrecordableError, match="Draw standard numbers"):
        ckad.grad(f, engine="vm")(AT)


def test_a_loop_without_a_seed_makes_a_generator_each_time() -> None:
    def f(s):
        x = s
        for _k in range(6):
            x = x + np.random.default_rng().random() * s
        return x

    assert AT < ckad.jit(f, engine="vm")(AT) < 7 * AT


def test_a_failed_recording_leaves_the_generator() -> None:
    def f(s):
        x = s + np.random.rand()
        for _k in range(6):
            x = x + np.random.rand()
        return np.packbits(x * np.eye(2))

    np.random.seed(3)
    before = states()
    with pytest.raises(ckad.errors.CkadError):
        ckad.jit(f, engine="vm")(AT)
    assert states() == before
