"""Long lists of arrays that Python holds, and sums of generator expressions: recorded once."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

from .idioms import check_number

AT = 1.3


def arrays(p):
    return [p * k * np.arange(1.0, 4.0) for k in range(12)]


# --- read ----------------------------------------------------------------------------------------


def one_after_the_other(p):
    total = np.zeros(3)
    for x in arrays(p):
        total = np.sin(x) * total.sum() + x
    return total.sum()


def pairs(p):
    data = [(p * k * np.arange(1.0, 4.0), k % 3) for k in range(40)]
    total = p * np.ones(3)
    for x, k in data:
        total = 0.5 * total + 0.1 * x
        total[k] += 1.0
    return total.sum()


def by_zip_and_enumerate(p):
    xs, total = arrays(p), 0.0 * p
    for k, (x, y) in enumerate(zip(xs, xs[2:], strict=False)):
        total = 0.1 * total + k * (x @ y)
    return total + x[1]


def elements_by_name(p):
    total = 0.0 * p
    for a, b, c in reversed(arrays(p)):
        total = 0.1 * total + a * b - c
    return total


def left_early(p):
    total = 0.0 * p
    for x in arrays(p):
        if total > 30.0:
            break
        total = total + x.sum()
    else:
        total = total + 100.0
    return total + x[1]


def reduced(p):
    data = [(np.arange(3.0) * k, k) for k in range(40)]
    return sum((p * x).sum() * k for x, k in data) + np.mean([(p * x).max() for x, _ in data])


def sums_of_generators(p):
    total = sum(np.sin(p * k) for k in range(60)) + sum((p * k for k in range(60)), 3.0)
    total += max(np.sin(p * k) for k in range(60)) - min(np.cos(p * k) for k in range(60))
    return total + sum(sum(p * i * j for j in range(40)) for i in range(40))


@pytest.mark.parametrize(
    ("program", "most"),
    [
        (one_after_the_other, 80),
        (pairs, 240),
        (by_zip_and_enumerate, 90),
        (elements_by_name, 85),
        (left_early, 120),
        (reduced, 190),
        (sums_of_generators, 50),
    ],
)
def test_steps_are_recorded_once(program, most):
    check_number(program, AT)
    tape = ckad.trace(program)(AT)
    assert len(tape) + sum(map(len, tape.bodies)) <= most


# --- written into, kept, told apart --------------------------------------------------------------


def written_in_place(p):
    xs = arrays(p)
    for x in xs:
        x *= 2.0
    return sum((x**2).sum() for x in xs)


def another_written(p):
    xs, total = arrays(p), 0.0 * p
    for x in xs:
        total = total + x.sum()
        xs[3][0] += total
    return total


def memory_of_one_written(p):
    u, total = p * np.ones(3), 0.0 * p
    for x in [u, *arrays(p)]:
        u[0] += 1.0
        total = total + x.sum()
    return total


def kept_and_written_later(p):
    class Holder:
        pass

    xs, kept, holder = arrays(p), [], Holder()
    for x in xs:
        kept.append(x)
        holder.last = x
    kept[2][0] = 7.0
    holder.last[0] = 50.0
    return sum((x**2).sum() for x in xs)


def within_another_loop(p):
    xs = arrays(p)
    for _ in range(6):
        for x in xs:
            x += 0.1 * xs[2]
    return sum(x.sum() for x in xs)


def put_anew(p):
    xs, total = arrays(p), 0.0 * p
    for k, x in enumerate(xs):
        total = total + x.sum()
        xs[(k + 1) % 12] = 0.5 * x
    return total + xs[4][1]


def grown(p):
    xs, total = arrays(p), 0.0 * p
    for x in xs:
        total = total + x.sum()
        if len(xs) < 15:
            xs.append(0.5 * x)
    for x, _ in zip(xs, range(99), strict=False):
        if len(xs) < 18:
            xs.append(0.5 * x)
    return total + len(xs)


def told_by_identity(p):
    xs, total = arrays(p), 0.0 * p
    for x in xs:
        total = total + (2.0 if x is xs[3] else 1.0) * x[1]
    for x in xs:
        for y in xs:
            if x is not y:
                total = total + x[0] * y[1]
    return total


def tuples_told_by_identity(p):
    xs, total = [(x, k) for k, x in enumerate(arrays(p))], 0.0 * p
    for x in xs:
        for y in xs:
            if x is y:
                continue
            total = total + x[0][1] * y[0][0]
    return total


@pytest.mark.parametrize(
    "program",
    [
        written_in_place,
        another_written,
        memory_of_one_written,
        kept_and_written_later,
        within_another_loop,
        put_anew,
        grown,
        told_by_identity,
        tuples_told_by_identity,
    ],
)
def test_steps_that_change_or_tell_apart_the_items(program):
    check_number(program, AT)


def test_arrays_that_a_loop_has_written_into_are_given_back():
    def program(x):
        rows = [x + k for k in range(9)]
        for k, row in enumerate(rows):
            row[0] = k
        return rows

    x = np.arange(1.0, 4.0)
    for found, expected in zip(ckad.jit(program)(x), program(x), strict=True):
        np.testing.assert_array_equal(found, expected)
