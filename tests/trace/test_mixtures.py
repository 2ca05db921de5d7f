"""Named fields, None, and states in one program."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .idioms import check

S = [("U", float), ("V", float)]
PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS.append(function)
    return function


class St(enum.Enum):
    A = 1
    B = 2


class Mode(enum.IntEnum):
    X = 0
    Y = 1


@program
def fields_in_a_while(a, b):
    Z = np.zeros(4, S)
    best = None
    st = St.A
    k = 0
    while k < 15:
        k += 1
        for p in Z:
            p["U"] += a * k * 0.01
            if p["U"] > 0.3 and st is St.A:
                st = St.B
                best = Z["U"].copy()
                break
            elif st is St.B:
                p["V"] += b * st.value
        if best is not None and np.sum(best) > 2:
            break
        if k % 4 == 0:
            st = St.A
    if best is None:
        best = np.ones(4)
    return np.sum(Z["V"] * best) + k * a


@program
def match_on_integers(a, b):
    last = None
    mode = Mode.X
    Z = np.zeros((2, 3), S)
    cnt = [0, 0]
    for i in range(12):
        x = math.sin(a * i)
        match mode:
            case Mode.X if x > 0.4:
                mode = Mode.Y
                last = x
            case Mode.Y if x < 0:
                mode = Mode.X
            case _:
                pass
        cnt[mode] += 1
        Z[mode, i % 3] = (x, b) if last is None else (x * b, last)
        Z["U"][mode] += a
    return np.sum(Z["U"] * Z["V"]) + cnt[1] * a + (last or 0.0)


class Agent:
    def __init__(self, a):
        self.rec = np.zeros(3, S)
        self.target = None
        self.state = "idle"
        self.a = a

    def act(self, t):
        if self.state == "idle" and t > 1:
            self.target = t * self.a
            self.state = "go"
        elif self.state == "go":
            self.rec[1]["U"] += 0.1 * (self.target - self.rec["U"][1])
            if self.rec["U"][1] > 0.5:
                self.state = "idle"
                self.target = None

    @property
    def done(self):
        return self.target is None


@program
def agents(a, b):
    ag = [Agent(a), Agent(b)]
    n = 0
    for k in range(20):
        for g in ag:
            g.act(k * 0.1 * b)
            if not g.done:
                n += 1
    return (
        sum(np.sum(g.rec["U"]) for g in ag)
        + n * a * 0.01
        + (0 if ag[0].target is None else ag[0].target)
    )


@program
def recursion(a, b):
    def f(Z, n):
        if n == 0:
            return None
        r = f(Z, n - 1)
        Z[n]["U"] = a if r is None else r * b
        return Z[n]["U"]

    Z = np.zeros(5, S)
    return f(Z, 4) + Z["U"].sum()


@program
def events(a, b):
    events = np.zeros(6, dtype=[("t", float), ("kind", int)])
    n = 0
    for k in range(25):
        if math.sin(k * a) > 0.8 and n < 6:
            events[n] = (k * b, 1)
            n += 1
    t0 = None
    tot = 0.0
    for e in events:
        if e["kind"] == 1:
            if t0 is not None:
                tot += (e["t"] - t0) ** 2
            t0 = e["t"]
    return tot + n * a


@program
def in_a_tuple(a, b):
    x = a
    hist = np.zeros((5, 2))
    prev = (None, 0.0)
    for k in range(5):
        x = x * 1.1 + b
        p, q = prev
        hist[k, 0] = 0.0 if p is None else x - p
        if x > 1.5:
            prev = (x, k * a)
        else:
            prev = (None, q + 1)
    return np.sum(hist) + prev[1]


@program
def dicts_by_state(a, b):
    counts = {St.A: 0, St.B: 0}
    w = {"up": 0.0, "down": 0.0}
    st = St.A
    d = "up"
    last = {St.A: None, St.B: None}
    for k in range(15):
        x = math.sin(a * k)
        if x > 0.2:
            st = St.B
            d = "up"
        elif x < 0:
            st = St.A
            d = "down"
        counts[st] += 1
        w[d] += x * b
        if last[st] is None:
            last[st] = x
    return (
        counts[St.B] * a
        + w["up"] * 2
        - w["down"]
        + last[St.B]
        + (0.0 if last[St.A] is None else last[St.A])
    )


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_program(function: Callable[..., Any]) -> None:
    check(function, 0.7, 0.45)
