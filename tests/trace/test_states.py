"""States: members of enumerations and words that branches choose, and what is asked of them."""

from __future__ import annotations

import enum
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import ConcreteValueError, RaisedError

from .idioms import check, check_further

PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS.append(function)
    return function


class Phase(enum.Enum):
    SOLID = "solid"
    LIQUID = "liquid"
    GAS = "gas"

    @property
    def heat(self):
        return {"solid": 2.1, "liquid": 4.2, "gas": 1.9}[self.value]

    def warmed(self, x):
        return x * self.heat


class Level(enum.IntEnum):
    LOW = 0
    MID = 1
    HIGH = 2


class Rate(enum.Enum):
    SLOW = 0.5
    FAST = 2.0


class Light(enum.Enum):
    RED = 0
    GREEN = 1
    YELLOW = 2


HEAT = {Phase.SOLID: 2.1, Phase.LIQUID: 4.2, Phase.GAS: 1.9}


@program
def phases(a, b):
    T = -5.05
    p = Phase.SOLID
    E = 0.0
    for _k in range(30):
        T += a / HEAT[p]
        if T > 10:
            p = Phase.GAS
        elif T > 0:
            p = Phase.LIQUID
        E += HEAT[p] * b + p.heat * T
        if p is Phase.GAS:
            T -= b * 3
    return E + T


@program
def rates(a, b):
    r = Rate.SLOW
    x = a
    for _k in range(10):
        x = x * (1 + 0.1 * r.value) - b * 0.01
        r = Rate.FAST if x < 1.5 else Rate.SLOW
    return x * r.value


@program
def levels(a, b):
    gains = [1.0, 2.0 * a, 3.0]
    arr = np.array([1.0, b, a * b])
    level = Level.LOW
    s = 0.0
    for k in range(8):
        v = math.sin(k * a)
        if v > 0.5:
            level = Level.HIGH
        elif v > 0:
            level = Level.MID
        else:
            level = Level.LOW
        s += gains[level] * v + arr[level] * b + level * 0.1
        if level >= Level.MID:
            s += a
        if level == 2:
            s -= b
        if level is Level.MID:
            s += 1
    return s + int(level) * a


@program
def words(a, b):
    mode = "heat"
    T = 0.0
    rate = {"heat": a, "cool": -b, "hold": 0.0}
    n = 0
    for k in range(25):
        T += rate[mode]
        if mode == "heat" and T > 2:
            mode = "hold"
        elif mode == "hold" and k % 5 == 0:
            mode = "cool"
        elif mode == "cool" and T < 1:
            mode = "heat"
        if mode in ("heat", "cool"):
            n += 1
        T *= rate.get(mode, 1.0) * 0.01 + 1
    return T + n * a


@program
def matched(a, b):
    s = "idle"
    x = a
    out = 0.0
    for _k in range(12):
        match s:
            case "idle":
                x += b
                if x > 1.5:
                    s = "run"
            case "run":
                x *= 1.2
                out += x
                if x > 4:
                    s = "stop"
            case "stop" | "done":
                x -= 1.0
                s = "done" if x < 2 else "stop"
            case _:
                x = 0.0
    return x + out


@program
def matched_enum(a, b):
    p = Phase.SOLID
    T = -1.0
    s = 0.0
    for _ in range(14):
        match p:
            case Phase.SOLID if T > 0:
                p = Phase.LIQUID
            case Phase.LIQUID if T > 2:
                p = Phase.GAS
            case Phase.GAS:
                s += T * b
                T -= 0.3
            case _:
                s += 0.1 * a
        T += a * 0.5
    match deque([T, s]), range(2), "ab":
        case [heat, loss], [0, second], word if word != [1, 2]:
            s += 0.1 * heat * loss * second
    match (13, T):
        case (13, t) if t < 0:
            s += t
        case (int(), float(t)):
            s -= t
    return s


@program
def cycle(a, b):
    st = Light.RED
    w = 0.0
    t = 0.0
    dur = {Light.RED: 2.0 * a, Light.GREEN: 1.5, Light.YELLOW: 0.5 * b}
    for _k in range(15):
        t += 0.4
        if t > dur[st]:
            t = 0.0
            st = Light((st.value + 1) % 3)
        if st != Light.GREEN:
            w += t * a
    return w + st.value * b


@program
def nextstate(a, b):
    nxt = {"a": "b", "b": "c", "c": "a"}
    s = "a"
    x = a
    w = {"a": 1.0, "b": b, "c": 2.0}
    for k in range(11):
        x += w[s] * 0.1
        if x > 1.0 + 0.1 * k:
            s = nxt[s]
    return x * w[s]


@program
def handlers(a, b):
    def up(x):
        return x + a

    def down(x):
        return x * b

    H = {"up": up, "down": down}
    s = "up"
    x = 0.0
    for _k in range(9):
        x = H[s](x)
        s = "down" if x > 2 else "up"
    return x + Phase.GAS.warmed(x)


@program
def methods(a, b):
    p = Phase.SOLID if a > b else Phase.GAS
    q = Phase.LIQUID if a < b else p
    d = {Phase.SOLID: np.array([a, 1.0]), Phase.GAS: np.array([b, 2.0]), Phase.LIQUID: np.ones(2)}
    ab = {Phase.SOLID: (a, 1.0), Phase.GAS: (b, 2.0), Phase.LIQUID: (0.0, 0.0)}
    u, v = ab[q]
    return (
        p.warmed(a)
        + q.warmed(b)
        + np.sum(d[q] * a)
        + u * v
        + (1.0 if q.name == "SOLID" else b)
        + len(q.value)
    )


class Cell:
    def __init__(self):
        self.state = Phase.SOLID
        self.t = 0.0

    def step(self, dt):
        self.t += dt * self.state.heat
        if self.state is Phase.SOLID and self.t > 3:
            self.state = Phase.LIQUID
        elif self.state == Phase.LIQUID and self.t > 6:
            self.state = Phase.GAS
        return self.state


@program
def objects(a, b):
    c = Cell()
    s = 0.0
    for _k in range(10):
        st = c.step(a * 0.5)
        s += HEAT[st] * c.t * b
    return s


@program
def picked(a, b):
    names = ["x", "y", "z"]
    s = 0.0
    for k in range(5):
        i = int(2 * abs(math.sin(a * k)) + 0.4)
        n = names[i]
        s += a if n == "x" else (b if n == "y" else 1.0)
        level = Level(i)
        s += level.value * a
    return s


@program
def several(a, b):
    st = {"p": Phase.SOLID, "q": 0.0}
    prev = None
    for k in range(6):
        new = Phase.GAS if math.sin(a * k) > 0.5 else Phase.SOLID
        if prev is not None and new is not prev:
            st["q"] += a * k
        prev = new
        st["p"] = new
    return st["q"] + HEAT[st["p"]] * b


@program
def more_of_them_in_a_later_round(a, b):
    mode, x, total = "a", a, 0.0
    table = {"a": 1.0, "b": b, "c": 2.0, "d": a}
    for k in range(12):
        total += table[mode] * x
        for j in range(6):
            if x > 1 + 0.2 * j and mode == "a":
                mode = "b"
            elif mode == "b" and j > 2:
                mode = "c"
        if mode == "c" and k % 2:
            mode = "d"
        x = x * 1.05
    return total + (1.0 if mode in ("c", "d") else 0.0)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_program(function: Callable[..., Any]) -> None:
    check(function, 0.7, 0.45)


@pytest.mark.parametrize("function", [phases, levels, matched], ids=lambda f: f.__name__)
def test_second_derivatives_and_the_native_engine(function: Callable[..., Any]) -> None:
    check_further(function, 0.7, 0.45)


def unknown_key(a):
    state = "on" if a > 1 else "off"
    return a * {"on": 2.0}[state]


def unknown_member(a):
    return a * Light(int(a)).value


@pytest.mark.parametrize("function", [unknown_key, unknown_member])
def test_what_is_not_there_stops_the_program(function: Callable[..., Any]) -> None:
    assert ckad.value_and_grad(function)(1.5)[0] == function(1.5)
    with pytest.raises(RaisedError):
        ckad.grad(function)(0.5 if function is unknown_key else 7.5)


def hashed(a):
    return a * hash("on" if a > 1 else "off")


@pytest.mark.parametrize(
    ("function", "error", "says"),
    [
        (hashed, ConcreteValueError, "which of several objects"),
    ],
)
def test_refused(function: Callable[..., Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        ckad.grad(function)(0.7)
    assert "test_states.py" in str(caught.value)


# --- numbers in a list, at a traced place --------------------------------------------------------


def counted(a, b):
    heights, hits, total = [0.0, 1.0, 2.0], [0, 0, 0], 0.0
    for k in range(20):
        i = int(abs(math.sin(a * k)) * 2.9)
        heights[i] = heights[i] + a
        heights[-1 - i] += b
        hits[i] += 1
        if heights[i] > 4.0:
            heights[i] = b
        total += heights[hits[i] % 3]
    return sum(heights) + total + hits[1] * a + heights[2] * max(hits)


def test_written_at_a_traced_place() -> None:
    check(counted, 0.7, 0.45)


def test_a_place_that_is_none_stops_the_program() -> None:
    def far(a):
        xs = [1.0, 2.0]
        xs[int(a)] = a
        return sum(xs)

    assert ckad.grad(far)(1.5) == 1.0
    with pytest.raises(IndexError):
        ckad.grad(far)(2.5)
