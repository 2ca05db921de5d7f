"""What a function only counts up outside of itself: done again as its recording is used again."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import ckad

calls = 0


class Vehicle:
    count = 0

    def __init__(self, x):
        self.x = x
        Vehicle.count += 1


class Agent:
    born = died = 0

    def __init__(self, x):
        self.x = x
        type(self).born += 2

    @classmethod
    def bury(cls):
        cls.died -= 1


class Trailer(Agent):
    pass


class Numbered:
    count = 0

    def __init__(self, x):
        Numbered.count += 1
        self.x, self.number = x, Numbered.count


def by_a_class(x):
    return sum(Vehicle(k * x).x for k in range(3))


def by_an_object(x):
    total = Agent(x).x + Agent(x * x).x
    Agent.bury()
    return total


def by_a_loop(x):
    for _ in range(20):
        x = Vehicle(np.sin(x)).x
    return x


def by_a_global(x):
    global calls
    calls += 1
    return x * x


def by_a_function(x):
    by_a_function.calls += 1
    return x * x


by_a_function.calls = 0


def _counting(function):
    n = 0

    def counted(x):
        nonlocal n
        n += 1
        return function(x)

    return counted, lambda: n


by_a_closure, counted_by_it = _counting(lambda x: x * x)


@pytest.mark.parametrize(
    ("program", "count", "each"),
    [
        (by_a_class, lambda: Vehicle.count, 3),
        (by_an_object, lambda: Agent.born, 4),
        (by_an_object, lambda: Agent.died, -1),
        (by_a_loop, lambda: Vehicle.count, 20),
        (by_a_global, lambda: calls, 1),
        (by_a_function, lambda: by_a_function.calls, 1),
        (by_a_closure, counted_by_it, 1),
    ],
)
def test_counters_go_on_and_nothing_is_recorded_anew(program, count, each, recordings):
    g = ckad.value_and_grad(program)
    for x in (0.7, 0.8, 0.9):
        before = count()
        value, _ = g(x)
        assert count() - before == each
        np.testing.assert_allclose(value, program(x), rtol=1e-14)
    assert len(recordings) == 1


def test_a_counter_that_is_no_integer_any_more_is_met_anew(recordings):
    g = ckad.value_and_grad(by_a_class)
    g(0.7)
    Vehicle.count = 0.5
    try:
        g(0.7)
        assert Vehicle.count == 3.5
    finally:
        Vehicle.count = 0
    assert len(recordings) == 2


def numbered(x):
    return sum(Numbered(x).number * x for _ in range(2))


def looked_at_afterwards(x):
    Vehicle(x)
    return Vehicle.count * x


def looked_at_before(x):
    n = Vehicle.count
    Vehicle(x)
    return n * x


def looked_at_by_a_subclass(x):
    Agent(x)
    return Trailer.born * x


@pytest.mark.parametrize(
    "program", [numbered, looked_at_afterwards, looked_at_before, looked_at_by_a_subclass]
)
def test_counters_that_numbers_depend_on_are_read_at_each_call(program, recordings):
    g = ckad.value_and_grad(program)
    counters = [(Vehicle, "count"), (Numbered, "count"), (Agent, "born")]
    for _ in range(3):
        before = [getattr(*counter) for counter in counters]
        expected = program(0.7)
        for (owner, name), value in zip(counters, before, strict=True):
            setattr(owner, name, value)
        assert g(0.7)[0] == pytest.approx(expected, rel=1e-14)
    assert len(recordings) == 3


# --- what is known of what is read --------------------------------------------------------------


def of_several_variables(x):
    return x * multivariate_normal.logpdf(np.array([0.1, 0.2]), cov=np.eye(2))


def of_nothing_yet(x):
    measured = np.array([[None] * 2]).T
    return x * x if measured[0] is not None else 0.0


@pytest.mark.parametrize("program", [of_several_variables, of_nothing_yet])
def test_what_does_not_change_is_no_reason_to_record_anew(program, recordings):
    g = ckad.value_and_grad(program)
    for x in (0.7, 0.8):
        np.testing.assert_allclose(g(x)[0], program(x), rtol=1e-12)
    assert len(recordings) == 1


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
def test_what_is_recorded_as_it_runs_counts_once_a_call():
    class Model:
        count = 0

    bound = 0

    def run(x):
        nonlocal bound
        Model.count += 1
        bound = bound + 1
        places = {}
        for _ in range(3):
            places[float(x[0])] = x[1]
        return sum(places.values()) * bound

    for call, first in enumerate((1.0, 1.0, 2.0, 2.0, 1.0), 1):
        value, _ = ckad.value_and_grad(run, engine="vm")(np.array([first, 2.0]))
        assert (value, Model.count, bound) == (2 * call, call, call)
