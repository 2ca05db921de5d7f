"""What a plan says of a run's time, from a few steps that were timed; and how far a run is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ckad
from ckad.checkpoint.schedules import SCHEDULES
from ckad.loops.between import timed
from ckad.loops.costs import Cost

N = 200
U = np.linspace(0.1, 1.0, 500)


def march(u: Any) -> Any:
    for _ in range(N):
        u = u + 0.01 * np.sin(u) * u
    return np.sum(u**2)


def counting(u: Any) -> Any:
    n = 0
    for i in range(N):
        u[n] = u[n] * 1.01
        n = i + 1
    return np.sum(u**2)


def until(u: Any) -> Any:
    while np.sum(u) > 1.0:
        u = 0.9 * u
    return np.sum(u**2)


def nested_until(u: Any) -> Any:
    while np.sum(u) > 1.0:
        v = u
        while np.max(v) > 0.9 * np.max(u):
            v = 0.99 * v
        u = v
    return np.sum(u**2)


def same(found: Any, expected: Any) -> bool:
    return found[0] == expected[0] and np.array_equal(found[1], expected[1])


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize("memory", [None, "200 KiB", "60 KiB"])
def test_a_plan_predicts_seconds_before_the_first_run(engine, memory):
    gradient = ckad.value_and_grad(march, memory=memory, engine=engine)
    plan = gradient.plan(U)
    assert 1e-6 < plan.seconds < 10.0
    assert "s predicted" in str(plan)
    assert gradient.plan(U).seconds == plan.seconds  # steps are timed once for a program
    kept = ckad.value_and_grad(march, engine=engine, schedule="store_all")(U)
    assert same(gradient(U), kept)


def paths(u: Any) -> Any:
    """An inner loop that is left makes more steps than is assumed before a run."""
    total = 0.0
    for k in range(N):
        s = u[k]
        for t in range(N):
            s = s * (1.0 + 0.001 * u[t])
            if s > 1.5:
                break
        total += s
    return total


def settled(u: Any) -> Any:
    for _ in range(N):
        while np.sum(u) > 1.0:
            u = 0.999 * u
        u = 1.05 * u
    return np.sum(u**2)


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize("fun", [paths, settled])
def test_a_plan_where_inner_loops_run_on(fun, engine):
    gradient = ckad.value_and_grad(fun, engine=engine)
    assert "assumed" in str(gradient.plan(U))
    kept = ckad.value_and_grad(fun, engine=engine, schedule="store_all")(U)
    assert same(gradient(U), kept)
    assert "assumed" not in str(gradient.plan(U))


def chosen(u: Any) -> Any:
    k = 0
    for _ in range(N):
        k = (k + 7) % 60
        u = 0.99 * u
    return np.sum(u**2) + u[k]


def polished(u: Any) -> Any:
    for _ in range(N):
        u = u - 0.1 * (u - 1.0)
    for _ in range(30):
        while np.sum(np.abs(u - 1.0)) > 1e-3:
            u = 0.5 * (u + 1.0 / u)
        u = u + 0.1
    return np.sum(u**2)


@pytest.mark.parametrize("program", [chosen, polished])
def test_steps_are_left_out_only_where_that_can_do_no_harm(program, monkeypatch):
    """An index that is right behind the whole loop, and a loop that ends for what it gives."""
    with monkeypatch.context() as patch:
        patch.setattr(timed, "_once", None)  # which would be called
        gradient = ckad.value_and_grad(program, engine="native")
        assert gradient.plan(U.copy()).seconds is None
    assert np.isfinite(gradient(U.copy())[0])
    assert 0.0 < gradient.plan(U.copy()).seconds < 10.0  # what the run has taken


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize("schedule", ["store_all", "two_level", "revolve"])
def test_steps_that_are_timed_find_the_states_of_a_run(engine, schedule, monkeypatch):
    """A counter that is carried is an index, proven to be in range."""
    seen = []
    forward = timed.Trial._forward

    def noted(trial, action):
        found = yield from forward(trial, action)
        seen.append(found.stop)
        return found

    monkeypatch.setattr(timed.Trial, "_forward", noted)
    gradient = ckad.value_and_grad(counting, engine=engine, schedule=schedule)
    assert 0.0 < gradient.plan(U.copy()).seconds < 10.0
    assert seen
    assert all(0 < stop < N for stop in seen)
    assert same(gradient(U.copy()), ckad.value_and_grad(counting, engine=engine)(U.copy()))


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize("program", [until, nested_until])
@pytest.mark.parametrize("memory", [None, "80 KiB"])
def test_a_loop_that_nobody_knows_the_length_of_is_predicted_when_it_has_run(
    program, memory, engine
):
    gradient = ckad.value_and_grad(program, engine=engine, memory=memory)
    assert gradient.plan(U).seconds is None
    first = gradient(U)
    plan = gradient.plan(U)
    assert 0.0 < plan.seconds < 10.0
    assert same(gradient(0.5 * U), ckad.value_and_grad(program, engine=engine)(0.5 * U))
    after = gradient.plan(0.5 * U)  # of a run that takes fewer steps
    assert 0.0 < after.seconds < 10.0
    assert after.forward_steps < plan.forward_steps
    assert same(gradient(U), first)


def test_functions_of_the_users_are_not_called_for_it():
    calls = []

    @ckad.primitive(shape=lambda x: x.shape)
    def noted(x):
        calls.append(1)
        return 2.0 * x

    noted.defvjp(lambda ct, out, x: (2.0 * ct,))

    def program(u):
        for _ in range(8):
            u = noted(u) * 0.5
        return np.sum(u)

    assert ckad.plan(program, U, engine="native").seconds is None
    assert not calls


def test_an_error_of_steps_that_are_only_timed_is_none_of_the_program(monkeypatch):
    def fails(*given):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(timed, "_once", fails)
    gradient = ckad.value_and_grad(lambda u: march(1.5 * u), engine="native")
    assert gradient.plan(U).seconds is None
    assert np.isfinite(gradient(U)[0])


@pytest.mark.parametrize("name", ["store_all", "revolve", "two_level", "mixed"])
def test_seconds_follow_from_counts(name):
    """Every action of a schedule at its price."""
    given = {"revolve": (5,), "mixed": (4,), "two_level": (7,), "store_all": ()}[name]
    schedule = SCHEDULES[name].build(100, *given)
    rows = schedule.actions
    length = rows.stop - rows.start
    cost = Cost(advance=3.0, tape=5.0, reverse=7.0, both=100.0, store=11.0, restore=13.0)
    prices = {0: 3.0 * length, 1: 11.0, 2: 13.0, 3: 0.0, 4: 5.0 * length, 5: 7.0 * length, 6: 0.0}
    expected = sum(np.sum((rows.kind == kind) * price) for kind, price in prices.items())
    assert cost.kernels(schedule) == pytest.approx(expected)
    assert expected <= cost.seconds(schedule, 64) < expected + 1.0


# --- how far a run is ------------------------------------------------------------------------


class Front:
    def __init__(self) -> None:
        self.seen: list[ckad.Progress] = []

    def show(self, progress: ckad.Progress) -> None:
        self.seen.append(progress)


def test_a_front_is_told_of_both_sweeps_and_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("ckad.engines.native.running.machine.FIRST_FUEL", 2000)
    monkeypatch.setattr("ckad.engines.native.running.machine.MOST_FUEL", 2000)
    budget = ckad.Budget(memory="8 MiB", disk="8 MiB", directory=tmp_path)
    front = Front()
    schedule = ckad.schedules.multistage(N, 3, 4)
    options = {"memory": budget, "schedule": schedule, "engine": "native"}
    ckad.value_and_grad(march, progress=front, **options)(U)
    last = front.seen[-1]
    total = N + schedule.forward_steps
    assert (last.done, last.total, last.forward, last.backward) == (total, total, N, N)
    assert last.again == schedule.forward_steps - N
    assert last.is_over
    assert last.seconds_left == 0.0
    assert [x.sweep for x in front.seen].count("forward") > 1
    assert any(x.on_disk >= 4 * U.nbytes for x in front.seen)
    assert any(x.seconds_left for x in front.seen[:-1])
    assert 0 < last.memory <= 8 * 2**20
    assert "reverse sweep" in str(last)


def test_a_loop_that_ends_early_has_done_all_its_steps():
    seen: list[tuple[int, int]] = []
    ckad.grad(until, progress=lambda *counts: seen.append(counts))(U)
    assert seen[-1][0] == seen[-1][1] > 0


def test_a_pullback_is_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setattr("ckad.loops.between.resume.PAUSES", 0)
    _, pullback = ckad.vjp(march, U, engine="native")
    _, resumed = ckad.vjp(march, U, engine="native", resume=tmp_path / "run")
    expected = pullback(2.0)[0]
    with monkeypatch.context() as patch:
        patch.setattr("ckad.engines.native.running.machine.FIRST_FUEL", 2000)
        stop = ckad.vjp(march, U, engine="native", resume=tmp_path / "run", progress=_interrupt)[1]
        with pytest.raises(KeyboardInterrupt):
            stop(2.0)
    assert [*(tmp_path / "run").iterdir()]
    with pytest.raises(ckad.errors.CheckpointError, match="differs in argument array 1"):
        resumed(3.0)
    assert np.array_equal(resumed(2.0)[0], expected)
    assert not [*(tmp_path / "run").iterdir()]


def _interrupt(done: int, total: int) -> None:
    if done > 0.7 * total and total > N:
        raise KeyboardInterrupt
