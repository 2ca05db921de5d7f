"""Habits of published programs: names of earlier steps, numbers before objects, lists handed on."""

from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse as sp

import ckad
from ckad.trace.source.control.loops import StagedLoop

from .idioms import check_number


class Pair:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Pair(self.x + other.x, self.y + other.y)

    def __rmul__(self, factor):
        return Pair(factor * self.x, factor * self.y)

    def __rsub__(self, number):
        return Pair(number - self.x, number - self.y)


def absorbing(c):
    u, v = np.zeros(10), np.zeros(10)
    for j in range(20):
        u[1:] += c * (v[1:] - v[:-1]) + 0.1
        v[:-1] += c * u[1:]
        if j > 2:
            u[0] = last + c * (u[1] - first)  # noqa: F821
        first = u[0]  # noqa: F841
        last = u[1]  # noqa: F841
    return np.sum(u**2)


def delayed(c):
    t, n, s = 0.0, 0, 0.0
    while t < 1.0:
        t = t + c
        if n > 0:
            s += old * t  # noqa: F821
        old = np.sin(t)  # noqa: F841
        n += 1
    return s


def quiet(c):
    s = 0.0
    for i in range(10):
        before = np.seterr(invalid="ignore")
        s = s + c * c * i
        np.seterr(**before)
    return s


def objects(c):
    dt = np.minimum(c, 0.9)
    s = Pair(1.0, 2.0)
    s = s + 0.5 * dt * s + np.float64(2.0) * s
    t = np.array(c) * (1 - s)
    return s.x * s.y + t.x


def halved(c, n):
    history = []
    for _ in range(n):
        c = 0.5 * c
        history.append(c)
        if c < 1e-2:
            break
    return history


def histories(c):
    found = {name: {"h": halved(c, n), "n": n} for name, n in (("a", 50), ("b", 60))}
    both = [found["a"]["h"], found["b"]["h"]]
    named = dict(h=both[0])  # noqa: C408
    return found["b"]["h"][-1] + sum(both[0]) + len(named["h"]) * c + np.sum(np.array(both[1]))


def bar(c):
    s = 0.0
    for i in range(40):
        s = s + c * i
        print("#" * (30 * i // 39), end="")
    return s


def by_keyword(c):
    A = sp.diags(diagonals=[np.full(4, c), np.ones(3)], offsets=[0, 1], shape=(4, 4), format="csr")
    return np.sum(A @ np.arange(4.0)) * c


class Momentum:
    """Averages under the names of what they are of, which the first step makes."""

    def __init__(self, rate):
        self.rate, self.averages, self.steps = rate, {}, 0

    def step(self, weights, slopes):
        self.steps += 1
        for key, slope in slopes.items():
            before = self.averages.get(key, 0)
            self.averages[key] = 0.9 * before + 0.1 * slope
            weights[key] = weights[key] - self.rate * self.averages[key] / (1 - 0.9**self.steps)


def averages_made_by_the_first_step(c):
    weights, optimiser = {("a", 0): c, ("b", 1): np.array([1.0, c])}, Momentum(0.1)
    for k in range(12):
        slopes = {key: np.sin(w + 0.1 * k) for key, w in weights.items()}
        optimiser.step(weights, slopes)
    return weights["a", 0] + np.sum(weights["b", 1]) + len(optimiser.averages)


def averages_until_they_settle(c):
    found, state, k = {}, c, 0
    while k < 12:
        found["mean"] = 0.9 * found.get("mean", 0.0) + 0.1 * state
        state = state + 0.1 * np.sin(found["mean"])
        k += 1
    return state + found["mean"]


@pytest.mark.parametrize("program", [averages_made_by_the_first_step, averages_until_they_settle])
def test_a_dict_that_the_first_step_fills_is_carried_by_the_others(program):
    check_number(program, 0.3)
    assert "recorded once" in str(ckad.explain(program, 0.3))


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
@pytest.mark.parametrize(
    "program", [absorbing, delayed, quiet, objects, histories, bar, by_keyword]
)
def test_as_in_python(program, capsys):
    value, slope = ckad.value_and_grad(program)(0.7)
    assert value == pytest.approx(program(0.7), rel=1e-12)
    difference = (program(0.7 + 1e-6) - program(0.7 - 1e-6)) / 2e-6
    assert slope == pytest.approx(difference, rel=1e-5)


class Log:
    def __init__(self):
        self.seen = defaultdict(list)

    def note(self, **values):
        for name, value in values.items():
            self.seen[name].append(value)


def logged(c):
    log, t, u = Log(), 0.0, 1.0
    while t < 2.0:
        log.note(t=t, u=u)
        u, t = u - 0.1 * c * u, t + 0.1
    return log.seen["u"][-1] + sum(log.seen["u"]) + c * sum(log.seen["t"])


def test_lists_that_the_first_step_makes_are_found_at_once(monkeypatch):
    rounds, whole = [], StagedLoop._round
    monkeypatch.setattr(StagedLoop, "_round", lambda self: rounds.append(0) or whole(self))
    value, gradient = ckad.value_and_grad(logged, engine="vm")(0.3)
    assert value == pytest.approx(logged(0.3), rel=1e-13)
    difference = (logged(0.3 + 1e-6) - logged(0.3 - 1e-6)) / 2e-6
    assert gradient == pytest.approx(difference, rel=1e-7)
    assert len(rounds) < 20


def test_a_file_gets_no_text_of_a_traced_value(tmp_path, capsys):
    file = tmp_path / "out.txt"

    def told(x):
        with open(file, "w") as out:
            print("sum", file=out)
            print(np.sum(x), file=out)
        print(np.sum(x))
        return np.sum(x)

    with pytest.warns(ckad.errors.SkippedCallWarning, match="print"):
        ckad.grad(told)(np.ones(2))
    assert file.read_text() == "sum\n"
    assert capsys.readouterr().out == "<traced f64[]>\n"


def of_what_a_dict_holds(x):
    found = {}
    for i in range(6):
        z = found["a"] * x if "a" in found else x + 1.0
        found["a"] = z * (i + 1)
        if z > 2.5:
            break
    return found["a"]


def of_a_name_bound_by_the_first(x):
    for i in range(6):
        t = t * x + i if i > 0 else x  # noqa: F821
        if t > 2.2:
            break
    return t


def of_a_tuple_that_grows(x):
    y = (1.0,)
    for _ in range(6):
        y = (y[0] * x, x) if len(y) == 1 else (y[0] * x, y[1] + 1.0)
        if x > 2:
            break
    return y[0] + y[-1]


@pytest.mark.parametrize("x", [0.5, 1.1, 3.0])
@pytest.mark.parametrize(
    "program", [of_what_a_dict_holds, of_a_name_bound_by_the_first, of_a_tuple_that_grows]
)
def test_no_step_follows_a_first_one_that_leaves_the_loop(program, x):
    """The first step is of another kind, and recorded alone."""
    assert ckad.jit(program, engine="vm")(x) == pytest.approx(program(x), rel=1e-13)


def doubled(x):
    s = 0.0
    for i in range(5):
        s += x * i
        i = 2 * i
    return s * i


def summed(x):
    s = 0.0
    for k in range(6):
        s += k * x
        k = k + s
    return k


@pytest.mark.parametrize("program", [doubled, summed])
def test_a_target_that_the_body_binds_is_what_it_bound_last(program):
    assert ckad.jit(program, engine="vm")(1.3) == pytest.approx(program(1.3), rel=1e-13)
