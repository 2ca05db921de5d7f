"""``memory=`` is a promise: held against what the operating system says of a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PEAK_RESET = Path("/proc/self/clear_refs")
pytestmark = pytest.mark.skipif(
    not PEAK_RESET.exists(), reason="the peak of a process is read and reset through /proc"
)


@pytest.fixture(params=["vm", "native"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine that the measured processes use."""
    monkeypatch.setenv("ENGINE", request.param)
    return request.param


#: What every measured process begins with. Freed memory is given back before each figure is
#: taken, since what a process holds in reserve would hide what a call asks for.
PROLOGUE = """
import ctypes, gc, json, os, re, sys
import numpy as np, ckad
from ckad.engines import arena
from ckad.loops import driver
from ckad.transforms import call

driver.chosen = call.chosen = lambda tape, engine, members=1: os.environ["ENGINE"]

rng = np.random.default_rng(1)
figures = {}

def trim():
    arena.clear()  # what is kept for the next run, within a limit
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except AttributeError:
        pass

def resident(which="VmRSS"):
    status = open("/proc/self/status").read()
    return 1024 * int(re.search(which + r":\\s+(\\d+)", status)[1])

def start():
    trim()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return resident()

def peak_over(before):
    return resident("VmHWM") - before

def diffusion(n_steps):
    def fun(u, kappa):
        def step(i, u):
            u[1:-1] += kappa[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
            return u
        return np.sum(ckad.fori_loop(0, n_steps, step, u) ** 2)
    return fun

def warm(schedules=("revolve", "two_level", "store_all")):
    "Load every kernel that the measured calls use."
    for schedule in schedules:
        both = ckad.value_and_grad(diffusion(40), (0, 1), memory="10 MB", schedule=schedule)
        both(rng.random(2000), 0.1 * rng.random(2000))
        sourced(30, 600, "10 MB", schedule)
        nested(5, 4, 600, "10 MB")

def sourced(n_steps, n, memory, schedule="auto"):
    sources = 0.01 * rng.random((n_steps, n))
    def fun(u, sources):
        def step(u, source):
            u = u + 0.1 * np.sin(u) + source
            return u, np.sum(u * u)
        u, sums = ckad.scan(step, u, sources)
        return np.sum(u) + np.sum(np.sqrt(sums))
    gradient = ckad.value_and_grad(fun, (0, 1), memory=memory, schedule=schedule)
    return measure(gradient, rng.random(n), sources)

def nested(n_steps, n_inner, n, memory):
    def inner(j, u):
        return u + 0.1 * np.sin(u) * np.roll(u, 1)
    def fun(u):
        outer = lambda i, u: ckad.fori_loop(0, n_inner, inner, u) * np.cos(0.1 * u)
        return np.sum(ckad.fori_loop(0, n_steps, outer, u) ** 2)
    return measure(ckad.value_and_grad(fun, memory=memory), rng.random(n))

def measure(gradient, *arguments):
    plan = gradient.plan(*arguments)
    before = start()
    result = gradient(*arguments)
    growth = peak_over(before)
    del result
    trim()
    return dict(planned=plan.peak_bytes, growth=growth, left=resident() - before, plan=str(plan))
"""


class Figures(NamedTuple):
    planned: int
    growth: int
    left: int
    plan: str


def in_a_process(program: str) -> Any:
    """What a fresh process prints last, as JSON."""
    run = subprocess.run(
        [sys.executable, "-c", PROLOGUE + program], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def measured(program: str) -> Figures:
    (figures,) = _measured([program])
    return figures


def _measured(programs: list[str]) -> list[Figures]:
    """What each of the expressions finds, in one fresh process."""
    found = in_a_process(f"warm()\nprint(json.dumps([{', '.join(programs)}]))")
    all_figures = [Figures(**figures) for figures in found]
    for figures in all_figures:
        share = figures.planned / figures.growth
        print(f"grown by {figures.growth / 1e6:.2f} MB, {share:.1%} of it planned; {figures.plan}")
    return all_figures


MB = 10**6
#: A process grows by some pages beside what a call allocates.
PAGES = MB


@pytest.mark.slow
def test_two_thousand_steps_of_a_hundred_thousand_cells() -> None:
    figures = measured(
        "measure(ckad.value_and_grad(diffusion(2000), (0, 1), memory='50 MB'),"
        " rng.random(100_000), 0.1 * rng.random(100_000))"
    )
    assert figures.growth <= 52.5 * MB
    assert abs(figures.planned - figures.growth) <= 0.05 * figures.growth
    assert figures.planned <= 50 * MB
    assert figures.left <= PAGES


@pytest.mark.slow
def test_a_small_budget() -> None:
    _check("12 MB", measured(BUDGETS[12]), 12 * MB)


#: Diffusion within so many MB.
BUDGETS = {
    budget: f"measure(ckad.value_and_grad(diffusion(200), (0, 1), memory='{budget} MB'),"
    " rng.random(100_000), 0.1 * rng.random(100_000))"
    for budget in (12, 25, 120)
}
#: Expressions, and the MB of their budgets.
MEASURED = {
    BUDGETS[25]: 25,
    BUDGETS[120]: 120,
    "sourced(200, 20_000, '110 MB')": 110,
    "nested(30, 20, 50_000, '40 MB')": 40,
}
#: Captured arrays are copied into the tape and into the cells: both are in the plan.
CAPTURED = (
    "(lambda kappa: measure("
    "ckad.value_and_grad(lambda u: diffusion(200)(u, kappa), memory='30 MB'),"
    " rng.random(100_000)))(0.1 * rng.random(100_000))"
)


def test_budgets() -> None:
    """One process measures all, as it takes longer to start than to measure."""
    programs = [*MEASURED, CAPTURED]
    figures = dict(zip(programs, _measured(programs), strict=True))
    for program, budget in MEASURED.items():
        _check(program, figures[program], budget * MB)
    assert figures[CAPTURED].growth <= 30 * MB
    assert figures[CAPTURED].planned <= 30 * MB


#: The heap keeps where large arrays were, and that NumPy has asked for huge pages there.
AFTER_LARGE_ARRAYS = """
spread = diffusion(200)
gradient = ckad.value_and_grad(lambda k, u: spread(u, k + 0.0 * u), memory="3 MB")
arguments = 0.1, rng.random(20_000)  # the results take no memory of that size
gradient(*arguments)
arena.clear()
large = np.ones(3_000_000)
del large  # arrays of this size lie in the heap from now on
large, above = np.ones(2_500_000), [np.ones(20_000) for _ in range(100)]
del large
print(json.dumps(measure(gradient, *arguments)))
"""


def test_a_small_budget_after_large_arrays_of_others() -> None:
    figures = Figures(**in_a_process(AFTER_LARGE_ARRAYS))
    assert figures.planned <= 3 * MB
    assert figures.growth <= 1.05 * 3 * MB


def _check(program: str, figures: Figures, budget: int) -> None:
    assert figures.planned <= budget, program
    assert figures.growth <= 1.05 * budget, program
    assert abs(figures.planned - figures.growth) <= 0.05 * figures.growth + PAGES, program
    assert figures.left <= PAGES, program


def test_many_calls_interrupts_and_refusals() -> None:
    """Again in one process; what is replaced in it for the interrupt stays to its end."""
    found = in_a_process("""
warm()
gradient = ckad.value_and_grad(diffusion(60), (0, 1), memory="20 MB")
arguments = rng.random(100_000), 0.1 * rng.random(100_000)
gradient(*arguments)
before = start()
levels = []
for k in range(20):
    gradient(*arguments)
    trim()
    levels.append(resident() - before)
calls = dict(levels=levels, peak=peak_over(before))

def refused():
    try:
        small(np.ones(100_000), np.ones(100_000))
    except ckad.errors.BudgetError:
        pass
small = ckad.value_and_grad(diffusion(60), (0, 1), memory="1 MB")
refused()  # compiles the program
before = start()
refused()
below = dict(peak=peak_over(before))

from ckad.engines.native.running import machine as compiled_machine
from ckad.engines.vm import machine
from ckad.transforms.call import compiled
gradient(*arguments)
machine.SLICE = 100_000
compiled_machine.FIRST_FUEL = compiled_machine.MOST_FUEL = 100_000
before = start()
call, tape, _ = gradient.prepare(arguments, {})
program = compiled(tape, gradient.options)
seen = []
def interrupt(done):
    seen.append(done)
    if done > 0.9 * program.total_steps:
        raise KeyboardInterrupt
try:
    program.run(call.arguments.arrays, interrupt)
except KeyboardInterrupt:
    pass
del call, tape
trim()
stopped = dict(left=resident() - before, peak=peak_over(before))
stopped |= dict(done=seen[-1], total=program.total_steps)
print(json.dumps(dict(calls=calls, below=below, stopped=stopped)))
""")
    calls, stopped = found["calls"], found["stopped"]
    assert len(calls["levels"]) == 20
    assert max(calls["levels"]) <= PAGES
    assert calls["peak"] <= 21 * MB
    # Below the least budget nothing is allocated: the arguments alone.
    assert found["below"]["peak"] <= 2 * 800_000 + PAGES
    assert 0 < stopped["done"] < stopped["total"]
    assert stopped["peak"] > 10 * MB
    assert stopped["left"] <= PAGES


#: Budgets in equal ratios from the least to what keeping everything takes, states on disk too.
SWEEP = """
import re, tempfile
from ckad.errors import BudgetError
arguments = rng.random(60_000), 0.1 * rng.random(60_000)
def gradient(memory, directory, **schedule):
    budget = ckad.Budget(memory, "1 GiB", directory)
    return ckad.value_and_grad(steps, (0, 1), memory=budget, **schedule)
def steps(u, kappa):
    return np.sum(ckad.fori_loop(0, 60, lambda i, u: u + kappa * np.sin(u) * u, u) ** 2)
found = []
with tempfile.TemporaryDirectory() as directory:
    most = ckad.plan(steps, *arguments, argnums=(0, 1), schedule="store_all").peak_bytes
    try:
        gradient(1, directory).plan(*arguments)
    except BudgetError as error:
        least = int(re.search(r"at least ([\\d,]+)", str(error))[1].replace(",", ""))
    for k in range(POINTS):
        budget = round(least * (most / least) ** (k / (POINTS - 1)))
        asked = {"schedule": lambda n: ckad.schedules.multistage(n, 1, 9)} if k == 1 else {}
        if k == 1:
            budget += 6 * 60_000 * 8
        run = gradient(budget, directory, **asked)
        run(*arguments)
        found.append(measure(run, *arguments) | dict(budget=budget))
print(json.dumps(found))
"""


@pytest.mark.parametrize("points", [3, pytest.param(25, marks=pytest.mark.slow)])
def test_budgets_from_the_least_to_all_with_states_on_disk(points: int, engine: str) -> None:
    if engine == "vm" and points < 10:
        pytest.skip("both engines are swept where time is no matter")
    found = in_a_process(SWEEP.replace("POINTS", str(points)))
    assert len(found) == points
    for point in found:
        assert point["planned"] <= point["budget"]
        assert point["growth"] <= 1.05 * point["budget"] + PAGES
    assert "slots on disk" in found[1]["plan"]
