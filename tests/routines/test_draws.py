"""Random numbers as a function of a generator's state: those of the generators themselves."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ckad.errors import TapeError
from ckad.rules.routines import draws
from ckad.rules.routines.draws import KINDS, encoded, kind_of, numbers_of, words_of
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.routines import named
from ckad.tape.types import parse_type

NUMPY = [
    *[
        ("random", (), {}),
        ("integers", (-3, 8), {}),
        ("standard_normal", (), {}),
        ("choice", (9,), {}),
    ],
    *[("normal", (0.5, 2.0, (2, 3)), {}), ("permutation", (5,), {}), ("exponential", (2.0,), {})],
    *[("random", (), {"dtype": np.float32, "size": 3}), ("gamma", (2.0,), {})],
]
OLD = [
    *[("rand", (), {}), ("randn", (), {}), ("normal", (1.5, 0.3), {}), ("normal", (2.0,), {})],
    *[("standard_normal", (), {}), ("randint", (5,), {}), ("normal", (0.0, 2.0, 3), {})],
    *[("gamma", (2.0,), {}), ("choice", (4,), {"p": np.array([0.1, 0.2, 0.3, 0.4])})],
]
PYTHON = [
    *[
        ("random", (), {}),
        ("gauss", (0.0, 1.0), {}),
        ("randrange", (7,), {}),
        ("uniform", (1, 2), {}),
    ],
    *[("sample", (range(2000), 900), {}), ("normalvariate", (0.0, 1.0), {})],
]


@pytest.mark.parametrize(
    ("make", "calls"),
    [
        (np.random.default_rng, NUMPY),
        (lambda seed: np.random.Generator(np.random.PCG64DXSM(seed)), NUMPY),
        (np.random.RandomState, OLD),
        (random.Random, PYTHON),
    ],
)
def test_any_sequence_of_calls(make, calls):
    own, other, order = make(5), make(5), random.Random(3)
    kind = kind_of(own)
    n_words, run = KINDS[kind].n_words, named("draw").run
    state = KINDS[kind].read(own, None, "")
    for _ in range(3000):
        name, args, options = order.choice(calls)
        expected = np.asarray(getattr(other, name)(*args, **options))
        attrs, arrays = encoded(kind, len(words_of(expected)), name, args, options)
        result = run(attrs, state, *arrays)
        drawn = numbers_of(result[n_words:], expected.shape, expected.dtype)
        np.testing.assert_array_equal(drawn, expected)
        state = result[:n_words]
    np.testing.assert_array_equal(state, KINDS[kind].read(other, None, ""))


def test_from_states_in_any_order():
    """As a schedule asks for them that runs steps again."""
    own, order = np.random.RandomState(5), random.Random(4)
    kind, run = kind_of(own), named("draw").run
    calls = [encoded(kind, 1, name, args, {})[0] for name, args, options in OLD[:5] if not options]
    states, results = [KINDS[kind].read(own, None, "")], []
    for k in range(200):
        results.append(run(calls[k % len(calls)], states[-1]))
        states.append(results[-1][:-1])
    for _ in range(400):
        k = order.randrange(200)
        np.testing.assert_array_equal(run(calls[k % len(calls)], states[k]), results[k])


@pytest.mark.parametrize(
    ("name", "types", "attrs"),
    [
        ("draw", ["f64[11]"], (0, 1, 5)),
        ("draw", ["f64[10]"], (9, 1, 5)),
        ("draw", ["f64[10]"], (0,)),
        ("leave", ["f64[10]"], (0, 0)),
        ("leave", ["f64[10]", "f64[11]"], (0, 0)),
    ],
)
def test_what_is_no_state_is_found(name, types, attrs):
    b = Builder()
    xs = [b.input(parse_type(t)) for t in types]
    with pytest.raises(TapeError, match=name):
        b.emit(Op.CALL, xs, (named(name).number, *attrs))


def test_a_generator_behind_too_many_others_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "_MOST_LEFT", 3)
    generators = [np.random.default_rng(k) for k in range(5)]
    numbers = [draws.number_of(generator) for generator in generators]
    before = draws.KINDS[0].read(generators[0], None, "")
    assert draws._leave((0, numbers[-1]), before, before) == 0
    with pytest.raises(TapeError, match=r"not known any more: 3 others .* Record it again"):
        draws._leave((0, numbers[0]), before, before)
