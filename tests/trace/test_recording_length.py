"""Loops are recorded once, in a time that grows with the depth of a nest and not by its powers."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.trace.memory import storage
from ckad.trace.source.control import loops
from ckad.transforms import reuse
from ckad.transforms.repeated import recording

from .idioms import check_number


def lu(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]
    return np.sum(A)


def shortest_paths(A):
    for k in range(A.shape[0]):
        A[:] = np.minimum(A, np.add.outer(A[:, k], A[k, :]))
    return np.sum(A)


def only_in_the_middle(A):
    s = 0.0
    for k in range(A.shape[0]):
        for i in range(max(0, 3 - abs(k - 8))):
            s += A[i, k] ** 2
    return s


def swapped(A):
    B = np.roll(A, -1, axis=1)
    for k in range(1, A.shape[0] - 1):
        A, B = B, A
        if A[k - 1, 0] < B[k, 0]:
            break
        A[k] *= -0.8
    return np.sum(A) + np.sum(B)


def matrix(n: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 1.0, (n, n)) + n * np.eye(n)


def length(function, *args) -> int:
    tape = ckad.value_and_grad(function).compiled(*args).tape
    return len(str(tape).splitlines())


@pytest.mark.parametrize("function", [lu, shortest_paths, swapped])
def test_a_program_is_as_long_for_many_steps_as_for_few(function):
    """From 16 rows on an elimination is one call."""
    assert length(function, matrix(15)) == length(function, matrix(12))


@pytest.mark.parametrize("function", [lu, shortest_paths, only_in_the_middle, swapped])
def test_gradients_are_right(function):
    A = matrix(16)
    value, gradient = ckad.value_and_grad(function)(A)
    assert value == pytest.approx(function(A.copy()), rel=1e-14)
    direction = np.random.default_rng(1).normal(size=A.shape)
    h = 1e-5
    difference = function(A + h * direction) - function(A - h * direction)
    assert np.sum(gradient * direction) == pytest.approx(difference / (2 * h), rel=1e-6)


def deep_short(a, b):
    for i in range(2):
        for j in range(3):
            for k in range(2):
                for m in range(3):
                    for n in range(4):
                        for q in range(6):
                            a[i, j, q] += b[k, m, n] * a[i, j, q]
    return np.sum(a)


def test_each_level_of_a_nest_adds_a_few_recordings(monkeypatch):
    rounds = []
    once = loops.StagedLoop._round
    monkeypatch.setattr(loops.StagedLoop, "_round", lambda self: (rounds.append(0), once(self))[1])
    a, b = np.full((2, 3, 6), 0.5), np.full((2, 3, 4), 0.01)
    value = ckad.jit(deep_short)(a, b)
    assert value == pytest.approx(deep_short(a.copy(), b))
    assert len(rounds) < 50


def grid(x):
    r = np.ndarray(x.shape)
    r[:] = np.mgrid[0 : x.size, 0:2][0][:, 0] * x
    return np.sum(r) + np.sum(np.r_[x, 1.0])


def test_grids_and_arrays_to_be_filled_are_recorded_once(monkeypatch):
    recorded, record = [], recording.record
    monkeypatch.setattr(reuse, "_kept", type(reuse._kept)())
    monkeypatch.setattr(
        recording, "record", lambda *args, **options: recorded.append(0) or record(*args, **options)
    )
    for x in (np.ones(4), np.full(4, 2.0)):
        assert ckad.jit(grid)(x) == pytest.approx(grid(x))
    assert len(recorded) == 1


def test_an_array_from_outside_that_at_writes_into_changes_at_each_step():
    counts = np.zeros(3)

    def f(x):
        for _ in range(6):
            np.add.at(counts, [0, 0, 1], 1.0)
            x = x + counts
        return np.sum(x)

    found = ckad.jit(f)(np.ones(3))
    counts[:] = 0
    assert found == f(np.ones(3))


def deep(u, v):
    """Loops in branches in loops, and a helper's two loops in the innermost."""
    s = 0.1
    for i in range(6):
        if u[i] > 9.0:
            continue
        for j in range(5):
            v = 0.9 * v
            if v[j] < 2.0:
                for k in range(5):
                    u[k] = 0.5 * u[k] + 0.1 * swept(v, s)
                    s = 0.5 * s + u[k] * v[j]
            else:
                u *= 0.5
    return np.sum(u) + s + np.sum(v)


def swept(x, s):
    for i in range(5):
        for j in range(1, 4):
            x[i + j] = 0.5 * x[i + j - 1] + 0.1 * s
            s = 0.9 * s + 0.01 * x[i]
    return s


def test_a_deep_nest_is_recorded_a_few_times(monkeypatch):
    """Not by the product of the rounds of all loops around, here 305."""
    bodies, made = [], loops.StagedLoop._round
    monkeypatch.setattr(loops.StagedLoop, "_round", lambda loop: bodies.append(loop) or made(loop))
    u, v = np.linspace(0.1, 1.0, 9), np.linspace(0.2, 0.9, 9)
    value = ckad.jit(deep, engine="vm")(u, v)
    assert value == pytest.approx(deep(u.copy(), v.copy()), rel=1e-13)
    assert len(bodies) < 100


def stirred(x):
    a, b, c, d, e, f = (np.full(4, k * x) for k in range(1, 7))
    for k in range(30):
        a[1:] += 0.01 * b[:-1]
        b[0] = a[3] * 0.9
        c *= 0.99 + 0.001 * a[1]
        if k % 3 == 0:
            d[k % 4] += 0.1 * c[0]
            e -= 0.01 * d
        else:
            e[1] += 0.01 * x
        for j in range(8):
            f[j % 4] += 0.01 * e[j % 4]
    return np.sum(a * b + c * d) + np.sum(e * f)


def test_arrays_that_a_body_writes_into_are_found_together(monkeypatch):
    """Not one by one: all that a body writes into is seen when it is recorded first."""
    rounds, once = [], loops.StagedLoop._round
    monkeypatch.setattr(loops.StagedLoop, "_round", lambda loop: rounds.append(loop) or once(loop))
    ckad.clear_caches()
    check_number(stirred, 0.7, memory="64 KiB", rel=1e-13)
    outer = [loop for loop in rounds if loop.steps.node.lineno == rounds[0].steps.node.lineno]
    assert len(outer) <= 6, len(outer)  # two recordings, of which the second recalls the first


def keeps_six_lists(x):
    u, v, w, a, b, c = [], [], [], [], [], []
    count = 0
    while x > 0.2 and count < 100:
        u.append(x)
        v.append(x * x)
        w.append(np.sin(x))
        a.append(x + 1)
        b.append(u[-1] * v[-1])
        x = x * 0.9 + 0.001 * w[-1]
        c.append(count * x)
        count += 1
    return u[1] + v[2] + w[-1] + np.sum(a) + b[-2] * np.sum(c) + len(u)


def test_lists_that_a_loop_of_unknown_length_appends_to_are_found_together(monkeypatch):
    """Not four or five recordings of the body for each of them."""
    rounds, once = [], loops.StagedLoop._round
    monkeypatch.setattr(loops.StagedLoop, "_round", lambda loop: rounds.append(loop) or once(loop))
    ckad.trace(keeps_six_lists)(1.5)
    assert 1 < len(rounds) <= 12
    check_number(keeps_six_lists, 1.5, memory="1 MB")


def test_what_comes_after_a_write_that_is_not_known_of_yet_is_of_no_account():
    """What ends the program, or a branch, there decides nothing about the body."""

    def program(x):
        count, a, b = np.zeros(2), np.full(3, x), np.ones(3)
        for k in range(20):
            count[0] += 1
            if count[0] > 25:
                raise ValueError("too many")
            if a[0] > 3 * x:
                count[1] = k
                break
            a *= 1.1
            b[k % 3] += 1 / (count[0] + a[0])
        return np.sum(a * b) * count[0] + count[1]

    check_number(program, 0.7, rel=1e-13)


def branching(x, n):
    """A long expression without a loop in it."""
    if n == 0:
        return np.sin(x) / 256
    return branching(0.9 * x, n - 1) + branching(x + 0.01, n - 1)


def few_long_steps(x, n):
    for k in range(n):
        x = branching(x, 8) + 0.1 * k
    return x


def test_few_steps_are_a_loop_if_they_are_long():
    lengths = [len(str(ckad.trace(few_long_steps)(0.3, n)).splitlines()) for n in (1, 2, 3, 4)]
    assert lengths[1] > 1.9 * lengths[0]
    assert max(lengths[2:]) < 2.1 * lengths[0]
    for n in (3, 4):
        check_number(lambda x, n=n: few_long_steps(x, n), 0.3)


def test_structures_that_steps_make_anew_are_one():
    """They are equal; each round would find one more object, and the loops around record it all."""

    def total(x, rows):
        found = []
        for row in rows:
            inner = []
            for y in row:
                x = np.sin(x) + y
                inner.append(ckad.trees.flatten({"x": x}))
            found.append(inner[0][1])
        return x + sum(ckad.trees.unflatten(tree, [x])["x"] for tree in found)

    rounds = []
    with pytest.MonkeyPatch.context() as patch:
        once = loops.StagedLoop._round
        patch.setattr(loops.StagedLoop, "_round", lambda loop: rounds.append(loop) or once(loop))
        got = ckad.value_and_grad(total)(0.3, np.linspace(0, 1, 35).reshape(5, 7))
    expected = total(0.3, np.linspace(0, 1, 35).reshape(5, 7))
    np.testing.assert_allclose(got[0], expected, rtol=1e-14)
    assert len(rounds) < 60


def test_arrays_that_may_be_one_another_are_linked_in_a_time_of_their_number(monkeypatch):
    asked = []
    monkeypatch.setattr(storage, "is_open", lambda trace: asked.append(trace) is None)
    first, *others = (storage.Storage(None, 0) for _ in range(300))
    for other in others:
        storage.link(first, other)
    assert len(asked) <= 10 * len(others)
    assert len(storage.may_be(first)) == 300
