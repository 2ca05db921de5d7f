"""Lists and deques that loops fill, emptied in them or changed after them; Python integers."""

from __future__ import annotations

import copy
import io
import json
from collections import deque

import numpy as np
import pytest

import ckad
from ckad.errors import DtypeError, RaisedError, SkippedCallWarning, UnrecordableError

from .idioms import check_number

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


def put_in_front_of_a_full_window(x):
    q = deque(maxlen=4)
    for i in range(50):
        q.append(x[i % 12] * i)
    q.appendleft(x[0] * x[1])
    q.extendleft([1.0, x[2]])
    return weighted(q)


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
        put_in_front_of_a_full_window,
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


def appended_to_after_a_break(x):
    xs = []
    for _ in range(50):
        x = 0.9 * x
        xs.append(x * X[:3])
        if np.sum(xs[-1]) < 0.5:
            break
    xs.append(x**2 * X[3:6])
    xs.append(x**3 * X[6:9])
    total = len(xs) * x + np.sum(xs[-2])
    for item in xs:
        total = total + np.sum(item**2)
    return total + np.sum((xs[-1] - xs[-3]) ** 2)


def window_appended_to_after_a_break(x):
    q = deque(maxlen=3)
    for _ in range(50):
        x = 0.9 * x
        q.append(x)
        if x < 0.3:
            break
    q.append(x**2)
    return q[0] + 10.0 * q[-1] * len(q)


@pytest.mark.parametrize("f", [appended_to_after_a_break, window_appended_to_after_a_break])
def test_lists_of_unknown_length_are_appended_to_after_their_loop(f):
    check_number(f, 1.3, memory="64 KiB")


def test_what_is_appended_then_is_of_their_kind():
    def program(x):
        xs = []
        for _ in range(50):
            x = 0.9 * x
            xs.append(x)
            if x < 0.3:
                break
        xs.append(np.ones(3) * x)
        return np.sum(xs[-1])

    with pytest.raises(UnrecordableError, match="gets an item of another type or shape"):
        ckad.grad(program, engine="vm")(1.3)


def test_lists_in_buffers_are_saved_and_shown_after_their_loop():
    def program(x):
        v, out = [x], io.StringIO()
        for k in range(1, 50):
            v.append(0.9 * v[k - 1])
            if v[k] < 0.2:
                v[k - 1] = 3.0
                v[k] = x
        json.dump(v, out)
        json.dump({"v": (v, v)}, out)
        return sum(v)

    with pytest.warns(SkippedCallWarning, match=r"json\.dump"):
        check_number(program, 1.3)


def taken_by_a_slice(x):
    one, other = [x], []
    for k in range(9):
        other.append(x * k)
    one[:] = other
    one[1:3] = other[4:]
    return sum(one) * len(one)


def taken_by_a_slice_in_steps(x):
    one, other = [x], []
    for k in range(9):
        other.append(x * k)
        one[:] = other
    return sum(one) * len(one)


def taken_by_rows_of_an_array(x):
    table = np.zeros((8, 9))
    for n in range(7):
        other = [0] * 9
        for k in range(8, 0, -1):
            other[k - 1] = x * k + table[n, k]
        table[n + 1] = other
    table[0, :] = other
    return np.sum(table**2)


def values_of_a_dict(x):
    one = [x]
    held = {"a": one}
    if x > 1:
        one.append(2 * x)
    return x * sum(len(v) for v in held.values()) + sum(sum(v) for _, v in held.items())


@pytest.mark.parametrize(
    "program",
    [
        *(taken_by_a_slice, taken_by_a_slice_in_steps, taken_by_rows_of_an_array),
        values_of_a_dict,
    ],
)
def test_items_that_are_taken_are_there(program):
    for x in (1.3, 0.9):
        check_number(program, x)


class Held:
    def __init__(self, x):
        self.xs = [x]


def copied_with_its_object(x):
    one = Held(x)
    if x > 1:
        one.xs.append(2 * x)
    return x * len(copy.deepcopy(one).xs)


def taken_by_a_slice_of_unknown_length(x):
    one, other = [x], []
    for k in range(9):
        if x * k > 2:
            other.append(x * k)
    one[:] = other
    return sum(one) + len(one)


@pytest.mark.parametrize("program", [copied_with_its_object, taken_by_a_slice_of_unknown_length])
def test_items_of_unknown_number_are_refused_by_name(program):
    with pytest.raises(UnrecordableError, match="depends on a traced condition"):
        ckad.grad(program)(1.3)
