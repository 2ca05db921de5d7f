"""Lists and deques that loops fill, emptied in them or changed after them; Python integers."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import ckad
from ckad.errors import DtypeError, RaisedError

X = np.random.default_rng(1).uniform(0.2, 1.0, 12)


def weighted(items):
    return sum(item * (k + 1) for k, item in enumerate(items))


def taken_from_both_ends(x):
    q = deque()
    for i in range(50):
        q.append(x[i % 12] * i)
    first, last = q.popleft(), q.pop()
    return first + 10 * last + weighted(q)


def taken_from_a_full_window(x):
    q = deque(maxlen=4)
    for i in range(50):
        q.append(x[i % 12] * i)
    first = q.popleft()
    q.append(x[0])
    q.rotate(1)
    return first + weighted(q)


def first_deleted(x):
    q = deque()
    for i in range(50):
        q.append(x[i % 12] * i)
    del q[0]
    return weighted(q)


def emptied_by_a_slice(x):
    xs, total = [1.0], 0.0
    for i in range(50):
        xs.append(x[i % 12] * xs[-1])
        total = total + xs[-1]
    del xs[:]
    xs.append(total)
    return xs[0] + len(xs)


def refilled(x):
    xs = []
    for i in range(50):
        xs.append(x[i % 12])
    total = sum(xs)
    xs.clear()
    xs.append(total)
    return total * xs[0]


def flushed_when_full(x):
    batch, total = [], 0.0
    for i in range(50):
        batch.append(x[i % 12])
        if len(batch) == 7:
            total = total + sum(batch) * batch[2]
            batch.clear()
    return total + len(batch)


def started_again(x):
    xs, total = [1.0], 0.0
    for i in range(50):
        xs.append(x[i % 12] * xs[-1])
        total = total + xs[-1]
        if i == 30:
            del xs[:]
            xs.append(x[1])
    return total + len(xs)


@pytest.mark.parametrize(
    "program",
    [
        flushed_when_full,
        started_again,
        taken_from_both_ends,
        taken_from_a_full_window,
        first_deleted,
        emptied_by_a_slice,
        refilled,
    ],
    ids=lambda f: f.__name__,
)
def test_like_python(program, engine):
    value, gradient = ckad.value_and_grad(program, engine=engine)(X)
    np.testing.assert_allclose(value, program(X), rtol=1e-12)
    direction, h = np.cos(np.arange(12)), 1e-6
    slope = (program(X + h * direction) - program(X - h * direction)) / (2 * h)
    np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-6)


def tripled(x):
    n, total = 1, 0.0
    for i in range(60):
        n = n * 3
        total += x[i % 12] * (n % 1000)
    return total


def doubled(x):
    n, total = 1, 0.0
    while n > 0 and total < 100.0:
        n *= 2
        total += x[n % 12]
    return total


@pytest.mark.parametrize("program", [tripled, doubled], ids=lambda f: f.__name__)
def test_small_factors_take_integers_out_of_range_too(program):
    with pytest.raises(RaisedError, match="leaves the 64 bits"):
        ckad.jit(program)(X)


def test_a_number_of_more_than_64_bits_is_named():
    def generator(x):
        seed, total = 12345, 0.0
        for _ in range(100):
            seed = (6364136223846793005 * seed + 1) % 2**64
            total = total + x * (seed / 2**64)
        return total

    with pytest.raises(DtypeError, match="does not fit into the 64 bits"):
        ckad.grad(generator)(0.5)


JOINED = {
    "stack": np.stack,
    "stack behind": lambda rows: np.stack(rows, axis=-1),
    "vstack": np.vstack,
    "hstack": np.hstack,
    "column_stack": np.column_stack,
    "concatenate": np.concatenate,
}


@pytest.mark.parametrize("name", JOINED)
def test_lists_of_a_length_that_the_program_computes_are_joined(name):
    join = JOINED[name]

    def program(x):
        rows, numbers = [], []
        for k in range(12):
            if k * np.sum(x) < 55.0:
                rows.append(np.sin(k * x))
            numbers.append(x[k % 12] * k)
            if numbers[-1] > 100.0:
                return np.sum(x)
        joined = join(rows)
        return np.sum(joined**2) + 3.0 * np.mean(joined) + np.sum(np.stack(numbers))

    value, gradient = ckad.value_and_grad(program, engine="vm")(X)
    np.testing.assert_allclose(value, program(X), rtol=1e-12)
    direction, h = np.cos(np.arange(12)), 1e-6
    slope = (program(X + h * direction) - program(X - h * direction)) / (2 * h)
    np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-6)
