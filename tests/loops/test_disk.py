"""Restart states on disk: the bits stay, nothing is left behind, the budget holds."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import ckad
from ckad import schedules
from ckad.checkpoint.schedules.schedule import Action, Actions, Schedule
from ckad.checkpoint.store.disk import DiskStore
from ckad.errors import BudgetError, CheckpointError, ScheduleError
from ckad.loops.disk import Speed

N, LATER = 40, 17
WEIGHTS = np.linspace(0.0, 1.0, N)


def program(u: Any, k: Any) -> Any:
    """Two outermost loops, the first with one inside, sources and observations at each step."""
    seen = 0.0
    for i in range(N):
        u = u + k * np.sin(u) * WEIGHTS[i]
        for _ in range(3):
            u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        seen = seen + u[3] * i
    values = []
    for _ in range(LATER):
        u = np.sin(u) * k + u
        values.append(u[2])
    return np.sum(u**2) + seen + np.sum(np.array(values) ** 2)


def open_ended(u: Any, k: Any) -> Any:
    """Nobody knows how long it runs."""
    n = 0.0
    while np.sum(u) > 20.0:
        u = u - 0.02 * k * np.sin(u)
        n = n + u[0]
    return np.sum(u**2) + n


def arguments(shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(0.1, 1.0, 120) + shift, np.linspace(0.5, 1.0, 120)


def online_on_disk(n: int) -> Schedule:
    whole = schedules.online(n, 6)
    disk = whole.n_slots - 2
    return Schedule.from_actions(whole.actions, n_steps=n, n_slots=2, n_disk_slots=disk)


ON_DISK = {
    "multistage": lambda n: schedules.multistage(n, 2, 3),
    "hrevolve": lambda n: schedules.hrevolve(n, 2, 3, write=2, read=2),
    "disk_revolve": lambda n: schedules.disk_revolve(n, 2, write=1, read=1),
    "periodic_disk": lambda n: schedules.periodic_disk(n, "tape", 5),
    "online": online_on_disk,
}


def same(found: Any, expected: Any) -> bool:
    (value, gradient), (other, others) = found, expected
    return value == other and all(map(np.array_equal, gradient, others))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Where the system's temporary files go."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize("name", ON_DISK)
def test_the_bits_are_those_of_keeping_everything(name, engine, here):
    kept = ckad.value_and_grad(program, (0, 1), engine=engine, schedule="store_all")
    on_disk = ckad.value_and_grad(program, (0, 1), engine=engine, schedule=ON_DISK[name])
    assert on_disk.plan(*arguments()).schedule.n_disk_slots
    for shift in (0.0, 0.25):  # again, at a new control
        assert same(on_disk(*arguments(shift)), kept(*arguments(shift)))
    assert not [*here.iterdir()]


@pytest.mark.parametrize("engine", ["native", "vm"])
def test_after_an_aborted_reverse_the_next_run_is_right(engine, here, monkeypatch):
    kept = ckad.value_and_grad(program, (0, 1), engine=engine)(*arguments())
    gradient = ckad.value_and_grad(program, (0, 1), engine=engine, schedule=ON_DISK["multistage"])
    gradient.compiled(*arguments())
    reads = [0]
    read = DiskStore.read

    def failing(self, slot, step, into):
        reads[0] += 1
        if reads[0] == 3:
            raise KeyboardInterrupt
        read(self, slot, step, into)

    with monkeypatch.context() as patch:
        patch.setattr(DiskStore, "read", failing)
        with pytest.raises(KeyboardInterrupt):
            gradient(*arguments())
    assert not [*here.iterdir()]
    assert same(gradient(*arguments()), kept)


def test_a_loop_of_unknown_length_keeps_states_on_disk(here, monkeypatch):
    kept = ckad.value_and_grad(open_ended, (0, 1), engine="native")(*arguments())
    step = "ckad.loops.disk._Weigh._of_loop"  # what is on disk is the cheapest
    monkeypatch.setattr(step, lambda self, x, s: -float(s[x.name].n_disk_slots))
    budget = ckad.Budget(memory="64 KiB", disk="4 MiB", directory=here)
    gradient = ckad.value_and_grad(open_ended, (0, 1), engine="native", memory=budget)
    assert gradient.plan(*arguments()).schedule.n_disk_slots
    assert same(gradient(*arguments()), kept)
    assert not [*here.iterdir()]


def test_a_disk_budget_runs_fewer_steps_and_is_kept(here, monkeypatch):
    u = np.linspace(0.0, 1.0, 30_000)
    fast = Speed(0.0, 0.0, 0.0, 0.0)
    monkeypatch.setattr("ckad.loops.disk.speed", lambda directory: fast)
    alone = ckad.value_and_grad(long, memory="6 MiB", engine="native")
    budget = ckad.Budget(memory="6 MiB", disk="1 GiB", directory=here)
    both = ckad.value_and_grad(long, memory=budget, engine="native")
    plan = both.plan(u)
    assert plan.forward_steps < alone.plan(u).forward_steps
    assert plan.peak_bytes <= 6 * 2**20
    assert "slots on disk" in str(plan)
    assert "runner-up" in str(plan)
    value, gradient = alone(u)
    tracemalloc.start()
    found, by_disk = both(u)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == value
    assert np.array_equal(by_disk, gradient)
    assert peak <= 1.05 * 6 * 2**20
    assert not [*here.iterdir()]


@pytest.mark.parametrize("over", [1e-3, 1e-2])
def test_what_the_program_does_for_states_on_disk_is_predicted(over, here, monkeypatch):
    """To hand a state over, or take it, is not hidden behind steps."""
    monkeypatch.setattr("ckad.loops.disk.speed", lambda _: Speed(0.0, 0.0, 0.0, 0.0, over))
    gradient = ckad.value_and_grad(
        long,
        memory=ckad.Budget(memory="6 MiB", disk="1 GiB", directory=here),
        schedule=lambda n: ckad.schedules.periodic_disk(n, "tape", 20),
        engine="native",
    )
    plan = gradient.plan(np.linspace(0.0, 1.0, 3000))
    moved = plan.schedule.disk_writes + plan.schedule.disk_reads
    assert moved * over < plan.seconds < moved * over + 0.5


def long(u: Any) -> Any:
    for _ in range(300):
        u = u + 0.1 * np.sin(u) * np.exp(-u * u)
    return np.sum(u**2)


@pytest.mark.parametrize("known", ["timed", "within little memory"])
def test_a_run_is_no_reason_to_plan_again_where_that_tells_nothing(known, here, monkeypatch):
    """Another program may have had the machine; and to plan takes memory, which a budget counts."""
    ticks = iter(range(0, 10**6, 100))
    monkeypatch.setattr("ckad.loops.compiled.perf_counter", lambda: float(next(ticks)))
    if known == "timed":
        monkeypatch.setattr("ckad.loops.compiled.ROOM", 0)
    else:
        monkeypatch.setattr("ckad.loops.driver.can_be_timed", lambda tape: False)
    u = np.linspace(0.0, 1.0, 3000)
    budget = ckad.Budget(memory="700 KiB", disk="40 MiB", directory=here)
    gradient = ckad.value_and_grad(long, memory=budget, engine="native")
    before = gradient.plan(u)
    gradient(u)
    assert (before.seconds is None) == (known != "timed")
    assert gradient.plan(u).disk is before.disk  # it is that plan still


def test_what_steps_have_taken_decides_the_next_plan(here, monkeypatch):
    monkeypatch.setattr("ckad.loops.driver.can_be_timed", lambda tape: False)
    monkeypatch.setattr("ckad.loops.compiled.ROOM", 0)
    monkeypatch.setattr("ckad.loops.disk.speed", lambda directory: Speed(1e-2, 0.0, 1e-2, 0.0))
    ticks = iter(range(0, 10**6, 100))
    monkeypatch.setattr("ckad.loops.compiled.perf_counter", lambda: float(next(ticks)))
    u = np.linspace(0.0, 1.0, 3000)
    budget = ckad.Budget(memory="700 KiB", disk="40 MiB", directory=here)
    gradient = ckad.value_and_grad(long, memory=budget, engine="native")
    before = gradient.plan(u)
    first, second = gradient(u), gradient(u)
    after = gradient.plan(u)
    assert before.disk.seconds < 1.0
    assert before.schedule.n_disk_slots == 0  # a step is thought to cost less than a write
    assert after.schedule.n_disk_slots > 0
    assert after.forward_steps < before.forward_steps
    assert 30.0 < after.disk.seconds < 120.0  # a run takes 100 s by that clock
    assert second[0] == first[0]
    assert np.array_equal(second[1], first[1])


def test_the_disk_of_a_schedule_that_is_asked_for_is_in_its_seconds(here, monkeypatch):
    monkeypatch.setattr("ckad.loops.disk.speed", lambda directory: Speed(30.0, 0.0, 50.0, 0.0))
    u, schedule = np.linspace(0.0, 1.0, 100), schedules.multistage(300, 3, 5)
    budget = ckad.Budget(memory="8 MiB", disk="8 MiB", directory=here)
    options = {"memory": budget, "schedule": schedule, "engine": "native"}
    expected = 30.0 * schedule.disk_writes + 50.0 * schedule.disk_reads
    assert ckad.plan(long, u, **options).seconds == pytest.approx(expected, abs=10.0)

    def broken(directory: Any) -> None:
        raise CheckpointError("no room")

    monkeypatch.setattr("ckad.loops.disk.speed", broken)
    assert ckad.plan(lambda u: long(1.5 * u), u, **options).seconds is None


def test_rounding_is_refused_where_it_would_change_more_than_floats():
    u, k = arguments()
    rounded = ckad.Budget(memory="64 KiB", disk="1 MiB", codec="float32")
    with pytest.raises(BudgetError, match="other bits"):
        ckad.value_and_grad(program, (0, 1), memory=rounded, resume="never-made")(u, k)

    def counts(u: Any) -> Any:
        n = 1
        for _ in range(50):
            u, n = np.sin(u) * n, n * 3 % 7
        return np.sum(u)

    with pytest.raises(BudgetError, match=r"the loop at .* carries"):
        ckad.value_and_grad(counts, memory=rounded, engine="native")(u)


def test_what_rounding_changes_is_said(here, engine):
    """States that do not fill their lines, and two in one record."""

    def swing(u: Any, v: Any, k: Any) -> Any:
        for _ in range(100):
            u, v, k = u + 0.05 * v, v - 0.05 * k * np.sin(u), 0.999 * k
        return np.sum(u**2) + k

    given = np.linspace(0.1, 1.0, 301), np.linspace(1.0, 0.5, 301), np.array(1.5)
    schedule = schedules.multistage(100, 1, 9)
    options: dict[str, Any] = {"engine": engine, "schedule": schedule}
    expected = ckad.value_and_grad(swing, (0, 1, 2), **options)(*given)
    rounded = ckad.Budget(memory="16 MiB", disk="4 MiB", directory=here, codec="float32")
    run = ckad.value_and_grad(swing, (0, 1, 2), memory=rounded, **options)
    assert run.plan(*given).rounding is None
    found = run(*given)
    plan = run.plan(*given)
    assert 1e-9 < plan.rounding < 6e-8
    assert "states on disk rounded by" in str(plan)
    assert found[0] == expected[0]  # of the forward sweep, which reads no checkpoint
    for x, y in zip(found[1], expected[1], strict=True):
        error = np.linalg.norm(x - y) / np.linalg.norm(y)
        assert 0.01 * plan.rounding < error < 100 * plan.rounding
    assert not [*here.iterdir()]


def test_without_a_disk_the_plan_is_the_same():
    u, k = arguments()
    plain = ckad.plan(program, u, k, memory="40 KiB", engine="native")
    budget = ckad.plan(program, u, k, memory=ckad.Budget(memory="40 KiB"), engine="native")
    assert (plain.peak_bytes, plain.loops) == (budget.peak_bytes, budget.loops)
    with pytest.raises(BudgetError, match=r"memory='2 KiB'.*the least"):
        ckad.plan(program, u, k, memory=ckad.Budget(memory="2 KiB"), engine="native")


def test_a_directory_that_is_not_there_is_named_with_the_line(tmp_path):
    budget = ckad.Budget(memory="64 KiB", disk="1 MiB", directory=tmp_path / "none")
    with pytest.raises(CheckpointError, match=r"(?s)test_disk.py.*none"):
        ckad.value_and_grad(program, (0, 1), memory=budget, engine="native")(*arguments())


class Faulty:
    """Calls of the store that fail, some of them for the slot of another call."""

    def __init__(self, patch: Any, what: str, which: Any) -> None:
        self.n, self.which, self.call = 0, which, getattr(DiskStore, what)
        patch.setattr(DiskStore, what, lambda store, *given: self.run(store, *given))

    def run(self, store: Any, slot: int, *given: Any) -> Any:
        self.n += 1
        if self.which(self.n):
            raise CheckpointError(f"slot {slot} of {store} is not what was written.", slot=slot)
        return self.call(store, slot, *given)


@pytest.mark.filterwarnings("ignore::ckad.errors.RecomputeWarning")
@pytest.mark.parametrize("engine", ["native", pytest.param("vm", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["multistage", "disk_revolve"])
@pytest.mark.parametrize(
    ("what", "which"),
    [
        ("read", lambda n: n % 3 == 0),
        ("read", lambda n: True),
        ("write", lambda n: n % 2 == 0),
        ("prefetch", lambda n: n == 2),
    ],
    ids=["some reads", "every read", "some writes", "a prefetch"],
)
def test_what_is_lost_is_computed_again(name, engine, what, which, here, monkeypatch):
    kept = ckad.value_and_grad(program, (0, 1), engine=engine)(*arguments())
    budget = ckad.Budget(memory="64 MiB", disk="64 MiB", directory=here, fallback="recompute")
    options = {"memory": budget, "engine": engine, "schedule": ON_DISK[name]}
    gradient = ckad.value_and_grad(program, (0, 1), **options)
    gradient.plan(*arguments())
    fault = Faulty(monkeypatch, what, which)
    assert same(gradient(*arguments()), kept)
    assert fault.n >= 2
    assert not [*here.iterdir()]


def test_what_is_lost_is_named_and_without_a_fallback_ends_the_run(here, monkeypatch):
    budget = ckad.Budget(memory="64 MiB", disk="64 MiB", directory=here)
    options = {"engine": "native", "schedule": ON_DISK["multistage"]}
    gradient = ckad.value_and_grad(program, (0, 1), memory=budget, **options)
    goes_on = ckad.Budget(memory="64 MiB", disk="64 MiB", directory=here, fallback="recompute")
    again = ckad.value_and_grad(program, (0, 1), memory=goes_on, **options)
    gradient.plan(*arguments())
    again.plan(*arguments())
    Faulty(monkeypatch, "read", lambda n: n % 3 == 0)
    with pytest.raises(CheckpointError, match=r"(?s)test_disk.py.*is not what was written"):
        gradient(*arguments())
    with pytest.warns(ckad.errors.RecomputeWarning, match="not what was written"):
        again(*arguments())


def test_mixed_schedules_have_the_bits(here):
    kept = ckad.value_and_grad(program, (0, 1), engine="native")(*arguments())
    for schedule in (lambda n: schedules.mixed(n, 4), lambda n: schedules.mixed_bytes(n, 20, 2, 3)):
        mixed = ckad.value_and_grad(program, (0, 1), engine="native", schedule=schedule)
        assert same(mixed(*arguments()), kept)


def test_a_schedule_that_tapes_and_runs_on_is_refused():
    def listed(n: int) -> Schedule:
        rows = [
            (Action.STORE, 0, 0, 0),
            (Action.ADVANCE, 0, n - 1, -1),
            (Action.TAPE, n - 1, n, 0),
            (Action.REVERSE, n - 1, n, 0),
            (Action.RESTORE, 0, 0, 0),
            (Action.TAPE, 0, 1, 0),
            (Action.ADVANCE, 1, 2, -1),
            (Action.TAPE, 2, n - 1, 1),
            (Action.REVERSE, 2, n - 1, 1),
            (Action.RESTORE, 0, 0, 0),
            (Action.ADVANCE, 0, 1, -1),
            (Action.TAPE, 1, 2, 1),
            (Action.REVERSE, 1, 2, 1),
            (Action.REVERSE, 0, 1, 0),
            (Action.END, 0, 0, -1),
        ]
        actions = Actions(*(np.array(column) for column in zip(*rows, strict=True)))
        return Schedule.from_actions(actions, n_steps=n)

    with pytest.raises(ScheduleError, match="runs on from a step that it has taped"):
        ckad.value_and_grad(program, (0, 1), schedule=listed)(*arguments())


def test_a_name_that_needs_numbers_says_so():
    with pytest.raises(ScheduleError, match=r"'multistage' needs to be told.*lambda n"):
        ckad.value_and_grad(program, (0, 1), schedule="multistage")(*arguments())


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_sources_in_a_file_are_read_where_they_lie(engine, dtype, tmp_path):
    """Each step reads its own row of a memory map: the whole is never in the program's memory."""
    n, size = 100, 5000
    shape = (n, size)
    sources = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", dtype, shape)
    sources[:] = (3 * np.sin(np.arange(n * size))).reshape(shape)
    sources.flush()
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")

    def driven(u: Any, sources: Any) -> Any:
        seen = 0.0
        for k in range(n):
            u = u + 0.1 * np.sin(u) + sources[k]
            seen = seen + np.sum(u * u)
        return seen

    u = np.linspace(0.0, 1.0, size)
    gradient = ckad.value_and_grad(driven, memory="800 KiB", engine=engine)
    expected = gradient(u, np.array(mapped))
    tracemalloc.start()
    found = gradient(u, mapped)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found[0] == expected[0]
    assert np.array_equal(found[1], expected[1])
    assert peak < mapped.nbytes / 4


@pytest.mark.parametrize("lies", ["reversed", "apart", "between cells"])
def test_the_vm_takes_sources_that_lie_in_another_way(lies):
    n, size = 30, 7
    plain = np.sin(np.arange(n * size)).reshape(n, size)
    if lies == "reversed":
        given = np.array(plain[::-1])[::-1]
    elif lies == "apart":
        given = np.repeat(plain, 2, axis=1)[:, ::2]
    else:
        given = np.frombuffer(b"1234" + plain.tobytes(), offset=4).reshape(n, size)

    def driven(u: Any, sources: Any) -> Any:
        for k in range(n):
            u = np.sin(u) * sources[k]
        return np.sum(u * u)

    u = np.linspace(0.5, 1.0, size)
    expected = ckad.value_and_grad(driven, (0, 1), engine="native")(u, plain)
    assert same(ckad.value_and_grad(driven, (0, 1), engine="vm")(u, given), expected)
    twice = ckad.value_and_grad(lambda u, x: driven(u, x) + np.sum(x), (0, 1), engine="vm")
    _, (ct_u, ct_x) = twice(u, given)
    assert np.array_equal(ct_u, expected[1][0])
    assert np.allclose(ct_x, expected[1][1] + 1.0, rtol=1e-14)
