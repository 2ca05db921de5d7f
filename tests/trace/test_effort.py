"""What recording takes, by counts: branches and loops that stand deep in each other."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ckad
from ckad.errors import AsRunWarning
from ckad.trace.memory import foreseen
from ckad.trace.memory.context import Given, Most
from ckad.transforms import attempts

P = np.array([1.2, 0.7])


def stepped(p):
    """Newton's method as libraries write it: trials in a loop that is written out."""
    x, tried = p[0], 0
    while abs(x * x - p[1]) > 1e-12:
        slope = 2.0 * x
        if slope < 0.1:
            for factor in (1.1, 1.3, 1.7, 2.5):
                tried += 1
                guess = x * factor
                if guess > p[0]:
                    continue
                if 2.0 * guess > 0.1:
                    x, slope = guess, 2.0 * guess
                    break
        x = x - (x * x - p[1]) / slope
    return x


def nested(p, depth=8):
    """Two numbers that go through branches in branches, of which a loop's length may depend."""

    def inner(a, b, k):
        if not k:
            return a + b, a - b
        if p[0] > k:
            a, b = inner(a + 1.0, b, k - 1)
            a, b = a + b, a - b
        return b, a

    t, n = p[1], 0.0
    while n < 5.0:
        t, n = inner(t, n + 1.0, depth)
        n = n if n > 5.0 else 6.0
    return t


@pytest.fixture(autouse=True)
def begun_anew():
    ckad.clear_caches()
    yield
    ckad.clear_caches()


def ways_of(monkeypatch, for_all=None, as_run=20_000):
    """Ways with less room."""
    room = {Given.NOTHING: Most() if for_all is None else Most(in_bodies=for_all)}
    ways = [(decides, room.get(decides, Most(as_run))) for decides, _ in attempts._WAYS[:-1]]
    monkeypatch.setattr(attempts, "_WAYS", (*ways, attempts._WAYS[-1]))
    ckad.clear_caches()


def test_what_takes_long_for_all_numbers_is_recorded_as_it_runs(monkeypatch):
    expected = ckad.value_and_grad(stepped)(P)
    ways_of(monkeypatch, for_all=100)
    with pytest.warns(AsRunWarning, match="takes more than 100 operations"):
        value, slope = ckad.value_and_grad(stepped)(P)
    assert value == pytest.approx(expected[0])
    assert slope == pytest.approx(expected[1])


def test_what_is_long_in_every_way_is_given_its_time(monkeypatch):
    expected = ckad.value_and_grad(stepped)(P)
    ways_of(monkeypatch, for_all=100, as_run=0)
    with pytest.warns(AsRunWarning):
        value, slope = ckad.value_and_grad(stepped)(P)
    assert (value, *slope) == (expected[0], *expected[1])
    assert ckad.value_and_grad(stepped)(2.0 * P)[0] == pytest.approx(np.sqrt(1.4))


def test_what_may_not_run_as_it_runs_is_given_its_time(monkeypatch):
    ways_of(monkeypatch, for_all=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AsRunWarning)
        assert ckad.value_and_grad(stepped)(P)[0] == pytest.approx(np.sqrt(0.7))
        inside = ckad.jit(lambda p: ckad.grad(stepped)(p)[1] * p[0])
        assert inside(P) == pytest.approx(0.6 / np.sqrt(0.7))


def test_batches_and_c_functions_are_given_their_time(monkeypatch):
    energy, members = ckad.value_and_grad(stepped), np.stack([P, 2 * P])
    expected = ckad.vmap(energy)(members)
    ways_of(monkeypatch, for_all=100)
    with pytest.warns(AsRunWarning):
        energy(P)
    found = ckad.vmap(energy)(members)
    assert all(map(np.array_equal, found, expected))
    ckad.clear_caches()
    assert np.array_equal(ckad.vmap(stepped)(members), expected[0])
    assert ckad.cfunc(ckad.jit(stepped), P)(P) == (0, expected[0][0])


def test_branches_in_branches_are_foreseen_once_each(monkeypatch):
    made = []
    once = foreseen._Steps.__init__

    def noted(self, tape, *about):
        made.append(tape)
        once(self, tape, *about)

    monkeypatch.setattr(foreseen._Steps, "__init__", noted)
    ckad.trace(nested)(P)
    assert 8 < len(made) < 400
