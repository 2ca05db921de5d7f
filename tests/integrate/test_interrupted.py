"""Runs of every solver: any budget gives the same bits, and what was stopped or killed goes on."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad import optimize, stencil
from ckad.errors import BudgetError
from ckad.integrate import fixed, methods, solve_ivp
from ckad.loops.between import courses, resume

from ..checkpoint.store.processes import ended, fork
from ..loops.test_disk import same

TIMES = np.linspace(0.0, 1.0, 7)
Program = Callable[[Any, Any], Any]


def swing(t, y, k):
    return np.stack([y[1], -k * np.sin(y[0])])


def drift(t, y, k):
    return 0.1 * k * np.stack([y[1], y[0]])


def rising(t, y, k):
    return y[0] - 0.2


rising.terminal = 2  # the second zero, at about 4


def of_method(method: str, fun: Any = swing, **options: Any) -> Program:
    """States at times, of one run, and the last of another."""
    if method in fixed.METHODS:
        options["n_steps"] = 20

    def program(y0, k):
        options["args"] = (k,)
        seen = solve_ivp(fun, (0.0, 1.0), y0, method, TIMES, **options).y
        return np.sum(seen**2) + np.sum(solve_ivp(fun, (1.0, 0.5), y0, method, **options).y[:, -1])

    return program


def until(method: str, fun: Any = swing, **options: Any) -> Program:
    """Up to an event; at times before it something of the state."""

    def program(y0, k):
        sol = solve_ivp(
            *(fun, (0.0, 9.0), y0, method, 9.0 * TIMES),
            args=(k,), events=rising, saveat=lambda t, y, k: k * y[0], **options,
        )  # fmt: skip
        return sol.t_events[0][0] + sol.t_events[0][1] ** 2 + np.sum(sol.y)

    return program


def roots(y, k):
    for _ in range(9):
        y = optimize.root(lambda z, y=y: z - y + 0.1 * k * z**3, y, method="krylov").x
    return np.sum(y**2)


def fixed_points(y, k):
    for _ in range(9):
        y = optimize.fixed_point(lambda z, y=y: y + 0.1 * np.cos(k * z), y)
    return np.sum(y**2)


def minima(y, k):
    for _ in range(6):
        found = optimize.minimize(lambda z, y=y: np.sum((z - y) ** 2 + 0.1 * np.cosh(k * z)), y)
        y = found.x
    return np.sum(y**2)


@stencil(mode="wrap")
def curvature(u):
    return u[-1] - 2.0 * u[0] + u[1]


def explicit_heat(y, k):
    u = np.concatenate([y, np.zeros(30)])
    for _ in range(40):
        u = u + 0.2 * k * curvature(u)
    return np.sum(u**2)


def relaxed(u, f, h):
    for _ in range(2):
        u = u + 0.3 * (f - u + (np.roll(u, 1) - 2.0 * u + np.roll(u, -1)) / h**2) * h**2
    return u


def implicit_heat(y, k):
    """Two grids: smooth, correct by the coarse one, smooth; a fixed point of that in each step."""

    def cycle(u, f):
        u = relaxed(u, f, 1.0)
        rest = f - u + np.roll(u, 1) - 2.0 * u + np.roll(u, -1)
        coarse = 0.25 * (np.roll(rest, 1) + 2.0 * rest + np.roll(rest, -1))[::2]
        change = relaxed(np.zeros(coarse.size), coarse, 2.0)
        return relaxed(u + np.repeat(change, 2), f, 1.0)

    u = np.concatenate([y, np.zeros(14)])
    for _ in range(5):
        f = u + 0.1 * k
        u = optimize.fixed_point(lambda v, f=f: cycle(v, f), u, xtol=1e-10)
    return np.sum(u**2)


ADAPTIVE = (*methods.METHODS,)
PROGRAMS: dict[str, Program] = {
    **{m: of_method(m) for m in (*fixed.METHODS, *ADAPTIVE)},
    **{f"{m}, events": until(m) for m in ADAPTIVE},
    "IMEX": of_method("KenCarp4", (drift, swing)),
    "IMEX, events": until("KenCarp4", (drift, swing)),
    "roots": roots,
    "fixed points": fixed_points,
    "minima": minima,
    "stencil": explicit_heat,
    "multigrid": implicit_heat,
}


def each(*fast: str) -> list[Any]:
    return [n if n in fast else pytest.param(n, marks=pytest.mark.slow) for n in PROGRAMS]


ENGINES = ["vm", pytest.param("native", marks=pytest.mark.slow)]
AT = np.array([1.0, 0.3]), np.array(1.3)


def gradient(name: str, engine: str = "vm", **options: Any) -> Any:
    return ckad.value_and_grad(PROGRAMS[name], (0, 1), engine=engine, **options)


def least(name: str, engine: str, **options: Any) -> int:
    """The bytes that the error of a budget which is too small asks for, until it suffices."""
    memory = 1
    for _ in range(4):
        try:
            gradient(name, engine, memory=memory, **options)(*AT)
        except BudgetError as error:
            memory = int(re.findall(r"at least ([\d,]+)", str(error))[0].replace(",", ""))
        else:
            break
    return memory


@pytest.mark.filterwarnings("ignore::ckad.errors.RecomputeWarning")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", each("RK4", "stencil"))
def test_every_budget_gives_the_same_bits(name, engine):
    expected = gradient(name, engine, schedule="store_all")(*AT)
    assert np.all(np.isfinite([expected[0], *expected[1][0], expected[1][1]]))
    smallest = least(name, engine)
    for memory in (smallest, int(1.2 * smallest), 2 * smallest, None):
        assert same(gradient(name, engine, memory=memory)(*AT), expected)


@pytest.fixture
def often(monkeypatch):
    """Journals wherever one can be written."""
    monkeypatch.setattr(resume, "PAUSES", 0)


def stopped_at(monkeypatch: Any, number: int) -> list[int]:
    """Ctrl-C behind a journal; counts them."""
    seen = [0]

    class Stopped(resume.Resumable):
        def _write_journal(self) -> None:
            super()._write_journal()
            self.store.flush()
            seen[0] += 1
            if seen[0] == number:
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(courses, "Resumable", Stopped)
    return seen


@pytest.fixture
def interrupts():
    """As at a terminal, also where a parent has them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", each("RK4", "RK45", "Rodas5P", "roots"))
@pytest.mark.usefixtures("often", "interrupts")
def test_a_run_that_was_stopped_goes_on(name, engine, tmp_path, monkeypatch):
    """In the forward sweep, at its end, and in the reverse one."""
    expected = gradient(name, engine, schedule="store_all")(*AT)
    whole = gradient(name, engine, resume=tmp_path)
    total = stopped_at(monkeypatch, -1)
    for _ in range(2):  # the second one knows how many steps there are
        total[0] = 0
        assert same(whole(*AT), expected)
    assert total[0] > 3
    for number in sorted({1, total[0] // 2, total[0] - 1}):
        stopped_at(monkeypatch, number)
        with pytest.raises(KeyboardInterrupt):
            whole(*AT)
        assert [*tmp_path.iterdir()]
        seen = stopped_at(monkeypatch, -1)
        assert same(whole(*AT), expected)
        assert seen[0] <= total[0] - number + 2  # it has gone on
        assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", each("RK4"))
@pytest.mark.usefixtures("often")
def test_a_run_that_was_killed_goes_on(name, tmp_path):
    """By SIGKILL, at three moments; then a child that ends has the same bits."""
    expected = gradient(name, schedule="store_all")(*AT)
    run = gradient(name, resume=tmp_path / "run")
    assert same(run(*AT), expected)  # what is compiled and learnt, children have

    def child() -> None:
        value, (a, b) = run(*AT)
        np.savez(tmp_path / "part.npz", value=value, a=a, b=b)
        (tmp_path / "part.npz").replace(tmp_path / "found.npz")

    start = time.perf_counter()
    assert ended(fork(child)) == 0
    length = time.perf_counter() - start
    for part in (0.3, 0.5, 0.7):
        (tmp_path / "found.npz").unlink(missing_ok=True)
        pid = fork(child)
        time.sleep(part * length)
        os.kill(pid, signal.SIGKILL)
        ended(pid)
    assert ended(fork(child)) == 0
    with np.load(tmp_path / "found.npz") as found:
        assert same((found["value"], (found["a"], found["b"])), expected)
    assert not [*(tmp_path / "run").glob("*")]
