"""What functions change around them that a solver calls: right, or an error that names it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.integrate import quad, solve_ivp

import ckad
from ckad.errors import AliasError, ConcreteValueError, UnrecordableError

from ..trace.idioms import check_number

ABOUT = {"rtol": 1e-8, "atol": 1e-10}


def solved(fun, start=1.0):
    return solve_ivp(fun, (0.0, 1.0), [start], **ABOUT).y[0, -1]


def in_a_list(x):
    calls = [0]

    def rates(t, y):
        calls[0] += 1
        return [-x * y[0]]

    return solved(rates) + calls[0]


def in_a_name(x):
    calls = 0

    def rates(t, y):
        nonlocal calls
        calls += 1
        return [-x * y[0]]

    return solved(rates) + calls


def in_a_dict(x):
    calls = {"all": 0}

    def rates(t, y):
        calls["all"] += 1
        return [-x * y[0]]

    return ckad.integrate.solve_ivp(rates, (0, 1), [1.0]).y[0, -1] + calls["all"]


def in_a_log(x):
    times = []

    def rates(t, y):
        times.append(t)
        return [-x * y[0]]

    return solved(rates) + len(times)


class Decay:
    def __init__(self, rate):
        self.rate, self.calls, self.last, self.log = rate, 0, 0.0, []

    def __call__(self, t, y):
        self.calls += 1
        self.last = y[0]
        self.log.append(t)
        return [-self.rate * y[0]]


def in_an_object(x):
    decay = Decay(x)
    return solved(decay) + decay.calls


def last_state(x):
    decay = Decay(x)
    return solved(decay) + decay.last


def depends_on_the_call_before(x):
    last = [0.0]

    def rates(t, y):
        change, last[0] = y[0] - last[0], y[0]
        return [-x * change]

    return solved(rates)


def of_a_root(x):
    calls = [0]

    def g(z):
        calls[0] += 1
        return z**3 - x

    return optimize.brentq(g, 0.0, 2.0) + calls[0]


def of_a_minimum(x):
    calls = [0]

    def g(z):
        calls[0] += 1
        return np.sum((z - x) ** 2)

    return optimize.minimize(g, [0.2], method="BFGS").x[0] + calls[0]


def of_an_integral(x):
    calls = [0]

    def g(z):
        calls[0] += 1
        return np.sin(x * z)

    return quad(g, 0.0, 1.0)[0] + calls[0]


@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
@pytest.mark.parametrize(
    "program",
    [
        *(in_a_list, in_a_name, in_a_dict, in_a_log, in_an_object, last_state),
        *(depends_on_the_call_before, of_a_root, of_a_minimum, of_an_integral),
    ],
)
def test_counts_of_calls_are_not_known(program):
    with pytest.raises(ConcreteValueError, match=r"is changed by a function that .* calls"):
        ckad.grad(program, engine="vm")(0.7)


def counted_and_left(x):
    decay = Decay(x)
    return solved(decay) + solved(decay, 2.0)


def counted_in_a_loop(x):
    decay, total = Decay(x), 0.0
    for k in range(6):
        total += solved(decay, 1.0 + k)
    return total


def kept_for_later_calls(x):
    found = {}

    def rates(t, y):
        if "weights" not in found:
            found["weights"] = (0.5, 0.5)
        a, b = found["weights"]
        return [-x * (a + b) * y[0]]

    return solved(rates) + sum(found["weights"])


@pytest.mark.parametrize("program", [counted_and_left, counted_in_a_loop, kept_for_later_calls])
def test_counts_that_nobody_reads(program):
    check_number(program, 0.7, rel=1e-7)


def test_counts_of_known_solutions():
    """A library has made all calls of these."""

    def program(x):
        calls = [0]

        def rates(t, y):
            calls[0] += 1
            return [-y[0]]

        return x * solved(rates) + calls[0]

    check_number(program, 0.7, rel=1e-7)


def noise_of_a_generator(x):
    rng = np.random.default_rng(0)
    return solved(lambda t, y: [-x * y[0] + rng.normal()])


def noise_of_numpy(x):
    return quad(lambda z: x * z + np.random.rand(), 0.0, 1.0)[0]


def noise_in_a_loop(x):
    rng, total = np.random.default_rng(0), 0.0
    for _ in range(6):
        total += solved(lambda t, y: [-x * y[0] + rng.normal()])
    return total


@pytest.mark.parametrize("program", [noise_of_a_generator, noise_of_numpy, noise_in_a_loop])
def test_draws_in_functions_that_solvers_call(program):
    with pytest.raises(UnrecordableError, match="random numbers are drawn in a function that"):
        ckad.grad(program, engine="vm")(0.7)


def test_a_generator_that_each_call_makes():
    def program(x):
        return solved(lambda t, y: [-x * y[0] + np.random.default_rng(3).normal()])

    check_number(program, 0.7, rel=1e-7)


def test_an_array_for_all_calls_is_made_by_each():
    def program(x):
        slope = np.zeros(1)

        def rates(t, y):
            slope[0] = -x * y[0]
            return slope

        return solved(rates)

    with pytest.raises(AliasError, match="makes the array itself"):
        ckad.grad(program, engine="vm")(0.7)
