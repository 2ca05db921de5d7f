"""What recording takes, by counts: branches and loops that stand deep in each other."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import ckad
from ckad.errors import AsRunWarning
from ckad.trace.arguments import take_apart
from ckad.trace.memory import foreseen, known
from ckad.trace.memory.context import Given, Most, TooMuch
from ckad.trace.record import record
from ckad.trace.source.memory import twins
from ckad.transforms import attempts
from ckad.transforms.repeated import recording

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


def test_for_other_numbers_it_is_not_tried_for_all_again(monkeypatch):
    tried = []

    def noted(*args, **options):
        tried.append(options["decides"])
        return once(*args, **options)

    once = recording.record
    monkeypatch.setattr(recording, "record", noted)
    ways_of(monkeypatch, for_all=100)
    with pytest.warns(AsRunWarning):
        ckad.value_and_grad(stepped)(P)
    n = tried.count(Given.NOTHING)
    other = np.array([0.01, 0.7])
    assert ckad.value_and_grad(stepped)(other)[0] == pytest.approx(stepped(other))
    assert tried.count(Given.NOTHING) == n
    assert len(tried) > 2


def test_integers_that_no_error_asks_for_are_a_short_try(monkeypatch):
    def noted(*args, **options):
        tried[options["decides"]] = options["most"].in_bodies
        return once(*args, **options)

    def halved(x):
        return x if x < 0.1 else halved(0.5 * x)

    once, tried = recording.record, {}
    monkeypatch.setattr(recording, "record", noted)
    with pytest.warns(AsRunWarning, match="deeper than can be recorded"):
        assert ckad.value_and_grad(halved)(0.7) == (0.0875, 0.125)
    assert 4 * tried[Given.SIZES] == attempts._OF_SIZES


def asked(p):
    """Lengths that loops count: each is run for its number."""
    x = p * 1.0
    for step in (0.9, 0.7, 0.6, 0.3, 0.2, 0.1):
        k, y = 0, x
        while k < 40 and x[0] * k * step < 3.0:
            k += 1
            y = np.sin(y * 1.1) + np.cos(y * 1.2) * np.exp(-y * y) - np.tanh(y * y + 1.0)
            y = np.sin(y * 1.3) + np.cos(y * 1.4) * np.exp(-y * y) - np.tanh(y * y + 2.0)
        x = x + 0.01 * y
        x = x * 1.01 + np.sum(np.ones(k)) / 40.0
    return np.sum(x)


def test_numbers_that_loops_are_run_for_are_part_of_the_effort():
    with pytest.raises(TooMuch):
        record(asked, take_apart((P,)), decides=Given.SIZES, most=Most(in_bodies=1_400))
    assert record(asked, take_apart((P,)), decides=Given.SIZES, most=Most(in_bodies=20_000))


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


def test_bodies_deep_in_bodies_are_more_effort():
    def halved(x, n):
        return x if n == 0 or x < 1e-9 else halved(x * 0.5, n - 1)

    def spent(n):
        most = 1
        while True:
            try:
                about = {"decides": Given.NOTHING, "most": Most(in_bodies=most)}
                return most, record(lambda p: halved(p[0], n), take_apart((P,)), **about)
            except TooMuch:
                most *= 2

    assert spent(64)[0] > 4 * spent(16)[0]


def spikes(p, n):
    """Lists whose lengths depend on arguments, and the times since what was appended last."""
    v, last, times, found = p[0], None, [[] for _ in range(4)], 0.0
    for k in range(n):
        t = 0.1 * k
        v = 0.0 if last is not None and t - last < 2.0 else v + p[1] * math.sin(0.1 * t)
        for own in times:
            if v > 0.1:
                own.append(t)
                last = t
        found = found + v
    return found + sum(sum(own) for own in times)


def test_what_no_later_step_knows_is_not_followed(monkeypatch):
    runs = []
    once = foreseen._Steps.run

    def noted(self, inputs):
        runs.append(inputs)
        return once(self, inputs)

    monkeypatch.setattr(foreseen._Steps, "run", noted)
    assert np.isclose(ckad.jit(spikes)(P, 400), spikes(P, 400))
    assert len(runs) < 400


def test_loops_of_arguments_are_not_cut_down_to_single_results(monkeypatch):
    cut = []
    monkeypatch.setattr(known, "needed_alone", lambda tape: cut.append(tape))
    assert ckad.trace(spikes)(P, 400)
    assert not cut


def with_lists(p, n):
    """A step makes every list anew."""
    places = [[p[0] * k, p[1]] for k in range(n)]
    for _ in range(50):
        places = [[a + 0.1 * b, b - 0.1 * a] for a, b in places]
        for own in places:
            own[0] = own[0] * 0.9
    return sum(a for a, _ in places)


def test_lists_that_steps_make_are_looked_at_once_each(monkeypatch):
    looks = []
    once = twins.Copies.sources

    def noted(self, container):
        looks.append(container)
        return once(self, container)

    monkeypatch.setattr(twins.Copies, "sources", noted)
    ckad.trace(with_lists)(P, 8)
    few = len(looks)
    ckad.trace(with_lists)(P, 16)
    assert 0 < len(looks) - few < 3 * few
