"""Single random numbers by machine code: NumPy's and Python's own, to the bit, call after call."""

import random

import numpy as np
import pytest

import ckad
from ckad.errors import TapeError
from ckad.rules.routines import draws, singles
from ckad.tape.types import DType, Type

OF_BOTH = [("uniform", (-2, 3.5)), ("random", ())]
NUMPY = [
    *OF_BOTH,
    *[(name, ()) for name in ("rand", "random_sample", "randn", "standard_normal")],
    *[(name, ()) for name in ("uniform", "normal", "exponential", "standard_exponential")],
    *[("randint", bounds) for bounds in ((0, 8), (7,), (-3, 10**6), (5, 6), (0, 2**32 - 2))],
    *[("choice", (9,)), ("normal", (1.0, 2.0)), ("exponential", (0.3,))],
]
PCG = [
    *OF_BOTH,
    *[("integers", bounds) for bounds in ((0, 8), (7,), (-3, 10**6), (5, 6), (0, 3 * 10**9))],
]
PYTHON = [
    *OF_BOTH,
    *[("randint", bounds) for bounds in ((0, 8), (3, 3), (0, 4 * 10**9))],
    *[("randrange", bounds) for bounds in ((7,), (-3, 10**6), (1,))],
    *[("choice", (range(2, 9),)), ("gauss", (1.0, 2.0)), ("gauss", ()), ("expovariate", (0.3,))],
]
KINDS = {
    singles.NUMPY: (np.random.RandomState, NUMPY, ("poisson", (3.0,))),
    singles.PCG: (np.random.default_rng, PCG, ("normal", ())),
    singles.PYTHON: (random.Random, PYTHON, ("normalvariate", (0.0, 1.0))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_as_the_generator_itself(kind):
    make, calls, other = KINDS[kind]
    generator, order = make(3), random.Random(4)
    state = draws.KINDS[kind].read(generator, None, "")
    for _ in range(2500):
        name, args = order.choice([*calls, other])
        wanted = getattr(generator, name)(*args)
        law = singles.law_of(kind, name, args, {})
        assert (law is None) == ((name, args) == other)
        if law is None:  # the two ways share a state
            attrs, _ = draws.encoded(kind, len(draws.words_of(wanted)), name, args, {})
            found = draws.draw.run(attrs, state)
            state = found[: singles.N_WORDS[kind]]
        else:
            number, *parameters = law
            found = singles.single.run((kind, number), state, *map(np.array, parameters))
            state = found[:-1]
            assert found[-1] == wanted
    assert np.array_equal(draws.KINDS[kind].read(generator, None, ""), state)


OF_SEVERAL = [
    *[("rand", (2, 2), {}), ("randn", (3,), {}), ("random_sample", ((2,),), {})],
    *[("randint", (0, 8, 2), {}), ("randint", (7,), {"size": 3})],
    *[("uniform", (-1.0, 2.0, 3), {}), ("uniform", (), {"size": 2}), ("normal", (1.0, 2.0, 3), {})],
    *[("standard_normal", (3,), {}), ("exponential", (0.3, 2), {})],
]
OF_SEVERAL_BY_PCG = [
    *[("random", (3,), {}), ("uniform", (-1.0, 1.0, 2), {})],
    *[("integers", (0, 8, 3), {}), ("integers", (7,), {"size": (1, 2)})],
]


@pytest.mark.parametrize(
    ("kind", "name", "args", "options"),
    [
        *[(singles.NUMPY, *call) for call in OF_SEVERAL],
        *[(singles.PCG, *call) for call in OF_SEVERAL_BY_PCG],
    ],
)
def test_several_are_single_ones_in_turn(kind, name, args, options):
    generator = KINDS[kind][0](3)
    state = draws.KINDS[kind].read(generator, None, "")
    number, *parameters = singles.law_of(kind, name, *singles.of_one(kind, name, args, options))
    for wanted in np.ravel(getattr(generator, name)(*args, **options)):
        found = singles.single.run((kind, number), state, *map(np.array, parameters))
        state = found[:-1]
        assert found[-1] == wanted
    assert np.array_equal(draws.KINDS[kind].read(generator, None, ""), state)


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("rand", (3,), {}),
        ("uniform", (0.0, 1.0, 2), {}),
        ("randint", (0, 8), {"dtype": np.int32}),
        ("randint", (3, 3), {}),
        ("randint", (0, 2**40), {}),
        ("randint", (2.0, 8.0), {}),
        ("choice", ([1, 2],), {}),
        ("normal", (0.0, -1.0), {}),
        ("exponential", (-1.0,), {}),
        ("normal", (np.zeros(2), 1.0), {}),
    ],
)
def test_what_numpy_draws_itself(name, args, options):
    assert singles.law_of(singles.NUMPY, name, args, options) is None


def test_of_a_wrong_state():
    scalar = Type(DType.F64, ())
    with pytest.raises(TapeError, match=r"it takes f64\[627\]"):
        singles.single.shape((singles.NUMPY, singles.UNIT), Type(DType.F64, (10,)), scalar, scalar)
    with pytest.raises(TapeError, match="attributes"):
        singles.single.shape((1, singles.UNIT), scalar)


def metropolis(x, coupling):
    np.random.seed(5)
    spins = 2 * np.random.randint(2, size=(6, 6)) - 1
    energy = 0.0
    for _ in range(200):
        i, j = np.random.randint(0, 6), np.random.randint(6)
        around = spins[(i + 1) % 6, j] + spins[i, (j + 1) % 6] + spins[i - 1, j] + spins[i, j - 1]
        cost = 2 * spins[i, j] * around
        if cost < 0 or np.random.rand() < np.exp(-cost * x):
            spins[i, j] *= -1
        energy = energy - coupling * around * spins[i, j] + 0.1 * np.random.normal(0.0, 2.0)
    return energy


def birth_and_death(rate, coupling):
    rng = random.Random(2)
    t, n = 0.0, 10
    while t < 3.0:
        t += rng.expovariate(1.0) / (rate * n + coupling)
        n += 1 if rng.random() * (rate * n + coupling) < rate * n else -1
        n = max(n, 1)
    return t * n + rng.gauss(0.0, 1.0)


@pytest.mark.parametrize("program", [metropolis, birth_and_death])
def test_programs_and_engines(program):
    wanted = program(0.4, 1.5)
    for engine in ("vm", "native"):
        value, slope = ckad.value_and_grad(program, argnums=1, engine=engine)(0.4, 1.5)
        assert value == pytest.approx(wanted, rel=1e-14)
        difference = (program(0.4, 1.5 + 1e-7) - program(0.4, 1.5 - 1e-7)) / 2e-7
        assert slope == pytest.approx(difference, rel=1e-5)
