"""Random numbers of which a traced value decides whether they are drawn: to the bit, in order."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import CkadError, UnrecordableError
from ckad.rules.routines.draws import KINDS, kind_of

from .drawing import AT, check_draws, states

Function = Callable[[Any], Any]


def metropolis(s):
    np.random.seed(4)
    x, total = 0.3, 0.0
    for _ in range(30):
        new = x + 0.8 * np.random.randn()
        change = s * (new**2 - x**2)
        if change < 0 or np.random.rand() < np.exp(-change):
            x = new
        total = total + s * x**2
    return total + np.random.normal()


def q_learning(alpha):
    rng = np.random.default_rng(0)
    table, goal = np.zeros((9, 4)), 8
    for _episode in range(6):
        s = 0
        for _ in range(12):
            if rng.random() < 0.3 + 0.1 * alpha:
                a = rng.integers(4)
            else:
                a = np.argmax(table[s])
            row, column = s // 3, s % 3
            if a == 0:
                row = max(row - 1, 0)
            elif a == 1:
                row = min(row + 1, 2)
            elif a == 2:
                column = max(column - 1, 0)
            else:
                column = min(column + 1, 2)
            new = row * 3 + column
            reward = 1.0 if new == goal else -0.01
            table[s, a] += alpha * (reward + 0.9 * np.max(table[new]) - table[s, a])
            s = new
            if s == goal:
                break
    return np.sum(table)


def bandit_by_python(s):
    random.seed(8)
    worth, picked = [0.0, 0.0, 0.0], [1, 1, 1]
    total = 0.0
    for _ in range(40):
        if random.random() < 0.2:
            arm = random.randrange(3)
        else:
            arm = int(np.argmax(worth))
        reward = s * (arm + 1) + random.gauss(0.0, 0.1)
        picked[arm] += 1
        worth[arm] += (reward - worth[arm]) / picked[arm]
        total += reward
    return total + random.random()


def jumps(s):
    rng = np.random.RandomState(3)
    t, n, total = 0.0, 12, 0.0
    while t < 3.0:
        rate = s * n + 2.0
        wait = rng.exponential(1 / rate)
        t, total = t + wait, total + n * wait
        if rng.rand() * rate < s * n:
            n -= 1
        else:
            n += 1 + rng.randint(2)
    return total


def rejected_by_an_argument(s):
    rng = np.random.default_rng(3)
    total = 0.0
    for _ in range(20):
        u = rng.random()
        while u > s * np.exp(-u):
            u = rng.random()
        total = total + s * u
    return total


def in_straight_code(s):
    rng = np.random.default_rng(5)
    x = s * rng.normal()
    if x < 0.3:
        x = x + s * np.sum(rng.normal(size=(2, 3)))
    if x > s:
        x = x * rng.uniform(0.5, 1.0)
    return x + rng.standard_normal() * rng.integers(3, 9) + np.sum(rng.permutation(4) * s)


def noise_beside_it(s):
    noise, choices = np.random.default_rng(1), np.random.Generator(np.random.PCG64DXSM(2))
    x = s * np.ones(3)
    for _ in range(15):
        x = 0.8 * x + noise.normal(0.0, s, 3)
        if np.sum(x) > 0.2:
            x[choices.choice(3, p=[0.5, 0.25, 0.25])] -= s * choices.random(dtype=np.float32)
    return np.sum(x) + choices.random()


def seeded_again(s):
    x = s
    np.random.seed(1)
    for k in range(10):
        if x > 0.5:
            x = x - 0.3 * np.random.rand()
        if k == 6:
            np.random.seed(11)
        x = x + 0.2 * s * np.random.standard_exponential()
    return x


def large_integers(s):
    rng = np.random.default_rng(2)
    total = s
    for _ in range(6):
        if total > 0.0:
            k = rng.integers(-(2**62), 2**62)
            total = total + s * (k % 1000) + (k // 2**40) * 1e-6
        total = total - s * rng.integers(0, 2, dtype=bool)
    return total


def masks_of_bits(s):
    np.random.seed(7)
    x = np.full(5, s)
    for _ in range(8):
        if np.sum(x) > 2.0:
            x = np.where(np.random.rand(5) < 0.5, 0.5 * x, x)
            np.random.shuffle(x)
        x = x + 0.1 * s * np.random.choice([-1.0, 2.0])
    return np.sum(x**2)


PROGRAMS = [
    *(metropolis, q_learning, bandit_by_python, jumps, rejected_by_an_argument),
    *(in_straight_code, noise_beside_it, seeded_again, large_integers, masks_of_bits),
]
every_program = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)


@every_program
def test_value_gradient_and_the_generators_afterwards(f: Function) -> None:
    check_draws(f)


@every_program
def test_within_a_budget(f: Function) -> None:
    gradient = ckad.value_and_grad(f, engine="vm")
    assert ckad.value_and_grad(f, engine="vm", memory="120 kB")(AT) == gradient(AT)


@pytest.mark.parametrize("f", [metropolis, q_learning, bandit_by_python, jumps])
def test_machine_code_and_one_recording_of_the_loop(f: Function) -> None:
    assert ckad.value_and_grad(f, engine="native")(AT) == pytest.approx(
        ckad.value_and_grad(f, engine="vm")(AT), rel=1e-12
    )
    assert "written out" not in str(ckad.explain(f, AT)).replace("written out: short", "")


def walk(s, rng):
    x = s
    for _ in range(12):
        if x > 0.3:
            x = x - 0.4 * rng.random()
        x = x + 0.2 * s
    return x + rng.random()


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState, random.Random])
def test_a_generator_from_outside_goes_on(make) -> None:
    rng, own = make(6), make(6)
    expected = [walk(AT, rng) for _ in range(3)]
    gradient = ckad.value_and_grad(lambda s: walk(s, own), engine="vm")
    assert [gradient(AT)[0] for _ in range(3)] == pytest.approx(expected, rel=1e-14)
    assert own.random() == rng.random()


def test_a_recording_that_is_used_again_draws_the_same_and_leaves_the_generator_so() -> None:
    gradient = ckad.value_and_grad(seeded_again, engine="vm")
    first, left = gradient(AT), states()
    np.random.seed(2)
    assert gradient(AT) == first
    assert states() == left


def test_a_pullback_leaves_the_generator_alone() -> None:
    np.random.seed(3)
    _, pullback = ckad.vjp(lambda s: walk(s, np.random.mtrand._rand), AT)
    np.random.seed(5)
    before = states()
    pullback(1.0)
    assert states() == before


def test_planning_draws_nothing() -> None:
    np.random.seed(3)
    before = states()
    ckad.plan(lambda s: walk(s, np.random.mtrand._rand), AT)
    assert states() == before


def by_another_kind(s):
    return walk(s, np.random.Generator(np.random.Philox(1)))


def by_python_itself(s):
    rng = np.random.default_rng(1)
    return walk(s, rng) + np.sum(rng.spawn(1)[0].random(2))


@pytest.mark.parametrize("f", [by_another_kind])
def test_generators_whose_state_is_not_known_are_refused(f: Function) -> None:
    with pytest.raises(UnrecordableError, match=r"drawn here.*depends on a traced value.*Draw be"):
        ckad.grad(f, engine="vm")(AT)


def test_python_is_not_given_a_generator_that_is_a_variable() -> None:
    with pytest.raises(CkadError, match="Give it a generator of its own"):
        ckad.grad(by_python_itself, engine="vm")(AT)


def test_in_an_inner_function_that_is_recorded_by_itself() -> None:
    def f(s):
        rng = np.random.default_rng(1)
        x = walk(s, rng)
        return x + ckad.grad(lambda y: y * y * rng.random())(x)

    with pytest.raises(CkadError, match="Draw them outside of the inner function"):
        ckad.grad(f, engine="vm")(AT)


@pytest.mark.parametrize(
    "generator",
    [
        np.random.default_rng(3),
        np.random.Generator(np.random.PCG64DXSM(3)),
        np.random.RandomState(3),
        random.Random(3),
    ],
)
def test_a_state_as_words_and_back(generator) -> None:
    kind = KINDS[kind_of(generator)]
    _half = generator.gauss(0, 1) if isinstance(generator, random.Random) else generator.normal()
    words, other = kind.read(generator, None, ""), kind.make()
    kind.load(other, words)
    assert words.shape == (kind.n_words,)
    draw = "gauss" if isinstance(generator, random.Random) else "normal"
    assert [getattr(other, draw)(0, 1) for _ in range(2000)] == [
        getattr(generator, draw)(0, 1) for _ in range(2000)
    ]


def chosen_by_softmax(s):
    np.random.seed(3)
    total, h = 0.0, np.array([0.1, -0.2, 0.3, 0.4])
    for _ in range(30):
        p = np.exp(h * s) / np.sum(np.exp(h * s))
        k = np.random.choice(range(4), p=p)
        h = np.tanh(h + 0.1)
        h[k] -= 0.3 * s
        total = total + h[k] ** 2
    return total + np.random.rand()


def several_chosen_by_weights(s):
    rng = np.random.default_rng(3)
    p = np.array([0.1, 0.2, 0.7]) ** s
    p /= np.sum(p)
    x = np.sum(p * p)
    for k in rng.choice(3, size=5, p=p):
        x = x * (1.0 + p[k])
    return x + np.sum(s * rng.choice(np.array([1.0, 2.0, 5.0]), 4, True, p)) + rng.random()


def letters_sampled(s):
    letters = dict(enumerate("abcd"))
    rng, x, found = np.random.RandomState(5), s, []
    for _ in range(20):
        p = np.array([0.1, 0.2, 0.3, 0.4]) + 0.05 * np.cos(x) * np.array([1.0, -1.0, 1.0, -1.0])
        k = rng.choice(4, p=p)
        x = x + s * p[k]
        found.append(k)
    print("".join(letters[k] for k in found))
    return x


@pytest.mark.parametrize("f", [chosen_by_softmax, several_chosen_by_weights, letters_sampled])
@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_choices_by_traced_probabilities(f):
    check_draws(f)


def test_probabilities_that_are_none_stop_the_program():
    def program(s):
        p = np.array([0.5, 0.5]) * s
        return s * np.random.default_rng(1).choice(2, p=p)

    with pytest.raises(CkadError, match="probabilities do not sum to 1, or"):
        ckad.grad(program, engine="vm")(0.9)
    with pytest.raises(UnrecordableError, match="whose distribution"):
        ckad.grad(lambda s: s * np.random.choice(2, 2, False, np.array([s, 1 - s]))[0])(0.5)


def nothing_is_drawn_on_one_side(s):
    random.seed(4)
    x, total = s * np.arange(4.0), 0.0
    for k in range(6):  # all of these numbers are less than 0.5
        if random.random() < 0.5:
            total += x[k % 3]
        else:
            total -= random.gauss(0.0, 1.0) * x[1]
    return total


def no_array_is_drawn_on_one_side(s):
    rng, total = np.random.default_rng(2), 0.0
    for k in range(7):
        if rng.random() < 1.0:
            total += s * k
        else:
            total += np.sum(rng.normal(size=3) * s)
    return total


@pytest.mark.parametrize("f", [nothing_is_drawn_on_one_side, no_array_is_drawn_on_one_side])
@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_side_that_no_step_takes_draws_nothing(f: Function, engine: str) -> None:
    value, slope = ckad.value_and_grad(f, engine=engine)(0.7)
    assert value == pytest.approx(f(0.7), rel=1e-13)
    assert slope == pytest.approx((f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6, rel=1e-7)


def test_a_few_numbers_of_one_call_are_drawn_by_machine_code():
    def walk(s):
        rng, x = np.random.RandomState(3), np.zeros(2)
        for _ in range(20):
            i = rng.randint(0, 2, 1)[0]
            step = s * rng.uniform(-1.0, 1.0, 2)
            if x @ x + step[i] < 0.7 or rng.rand(1)[0] < 0.2:
                x = x + step * rng.standard_normal(size=2)
        return np.sum(x**2)

    check_draws(walk)
    text = str(ckad.trace(walk)(0.9))
    assert "(single" in text
    assert "(draw" not in text
