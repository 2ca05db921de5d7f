"""Budgets: what users write, what a plan says, and that both hold."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ckad
from ckad import memory, schedules
from ckad.checkpoint.plan import Plan, even_period, fitting_schedule
from ckad.errors import BudgetError, RecomputeWarning, ScheduleError
from ckad.loops import driver
from ckad.loops.choose import Chooser
from ckad.loops.compiled import LOOKS
from ckad.memory import format_bytes, free_memory, parse_bytes
from ckad.testing import check_schedule
from ckad.transforms.call import compiled

pytestmark = pytest.mark.usefixtures("engine")

MB = 10**6
Case = tuple[Callable[..., Any], tuple[Any, ...]]


def step(i: Any, x: Any) -> Any:
    return x + 0.1 * np.sin(x) * np.roll(x, 1)


def single(n_steps: int, n: int) -> Case:
    return lambda x: np.sum(ckad.fori_loop(0, n_steps, step, x)), (np.linspace(0.1, 1.0, n),)


def sequence(lengths: tuple[int, ...], sizes: tuple[int, ...]) -> Case:
    """Outermost loops, one after the other."""

    def fun(*xs: Any) -> Any:
        loops = zip(lengths, xs, strict=True)
        return sum(np.sum(ckad.fori_loop(0, n, step, x) ** 2) for n, x in loops)

    return fun, tuple(np.linspace(0.1, 1.0, n) for n in sizes)


def nest(*lengths: int, n: int = 10) -> Case:
    """Loops inside each other, the outermost first."""

    def level(k: int) -> Callable[[Any, Any], Any]:
        if k == len(lengths):
            return step
        return lambda i, x: ckad.fori_loop(0, lengths[k], level(k + 1), x) * np.cos(0.1 * x)

    def fun(x: Any) -> Any:
        return np.sum(ckad.fori_loop(0, lengths[0], level(1), x) ** 2)

    return fun, (np.linspace(0.1, 1.0, n),)


CASES: dict[str, Case] = {
    "one": single(300, 20),
    "one, scalar steps": single(2000, 1),
    "two alike": sequence((200, 200), (50, 50)),
    "long and thin, short and thick": sequence((1000, 20), (3, 500)),
    "short and thin, long and thick": sequence((10, 300), (3, 100)),
    "three": sequence((50, 10, 200), (30, 100, 3)),
    "inner loop longer": nest(6, 400),
    "outer loop longer": nest(200, 6),
    "three deep": nest(8, 9, 10),
    "three deep, the middle longest": nest(3, 120, 4),
    "three deep, the innermost longest": nest(3, 4, 120),
}
every_case = pytest.mark.parametrize("name", CASES)


def gradient(case: Case, **options: Any) -> Any:
    return ckad.value_and_grad(case[0], tuple(range(len(case[1]))), **options)


def planned(case: Case, **options: Any) -> Plan:
    return gradient(case, **options).plan(*case[1])  # type: ignore[no-any-return]


def minimum(case: Case, **options: Any) -> int:
    with pytest.raises(BudgetError) as caught:
        planned(case, memory=1, **options)
    return named_minimum(caught.value)


def named_minimum(error: BudgetError) -> int:
    return int(re.findall(r"to at least ([0-9,]+)", str(error))[0].replace(",", ""))


# --- what users write ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (1, 1),
        ("1", 1),
        ("512 B", 512),
        ("50 MB", 50 * MB),
        ("50MB", 50 * MB),
        ("64 MiB", 2**26),
        (" 1.5 gib ", 3 * 2**29),
        ("2 kB", 2000),
        ("0.5 TB", 5 * 10**11),
    ],
)
def test_amounts(amount: int | str, expected: int) -> None:
    assert parse_bytes(amount) == expected


@pytest.mark.parametrize(
    "amount", ["", "MB", "50 MBit", "-1 MB", "1e6", "5 5", 1.5, True, None, []]
)
def test_what_is_no_amount(amount: Any) -> None:
    with pytest.raises(BudgetError, match="write bytes as an int"):
        parse_bytes(amount)


@pytest.mark.parametrize("amount", [0, -5, "0 MB", "0.2 B"])
def test_no_memory_at_all(amount: Any) -> None:
    with pytest.raises(BudgetError, match="positive"):
        parse_bytes(amount)


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0 B"), (1023, "1023 B"), (2**26, "64.0 MiB"), (3 * 2**40, "3.0 TiB")]
)
def test_bytes_for_people(n: int, text: str) -> None:
    assert format_bytes(n) == text


# --- plans hold ---------------------------------------------------------------------------


@pytest.mark.sampled(3)
@every_case
def test_the_minimum_named_works_and_less_does_not(name: str) -> None:
    case = CASES[name]
    least = minimum(case)
    assert planned(case, memory=least).peak_bytes <= least
    with pytest.raises(BudgetError) as caught:
        planned(case, memory=least - 1)
    assert named_minimum(caught.value) == least


@pytest.mark.sampled(4)
@every_case
def test_plans_stay_within_every_budget_and_more_is_never_much_slower(name: str) -> None:
    case = CASES[name]
    least = minimum(case)
    most = planned(case, schedule="store_all").peak_bytes
    work = []
    for budget in np.geomspace(least, max(most, least), 12).astype(int).tolist():
        plan = planned(case, memory=budget)
        assert plan.peak_bytes <= budget
        work.append(steps_of(plan))
    assert work[-1] == min(work)
    # Slots come in whole numbers, and the search is not exhaustive: a little room for that.
    assert all(later <= 1.1 * earlier for earlier, later in pairwise(work)), work


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("n_steps", "n"), [(100, 2000), (1000, 300), (20_000, 16)])
def test_more_memory_is_never_more_steps(n_steps: int, n: int) -> None:
    """Also just below what one more slot would take. All residuals fit the caches: what does not is
    computed again where that takes less time."""
    case = single(n_steps, n)
    least, most = minimum(case), planned(case, schedule="store_all").peak_bytes
    even = np.geomspace(least, most, 30).astype(int)
    near = [planned(case, memory=int(b)).peak_bytes + k for b in even[:15:3] for k in (-1, 0, 99)]
    plans = [planned(case, memory=int(b)) for b in sorted({*even.tolist(), *near}) if b >= least]
    steps = [plan.forward_steps for plan in plans]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] == n_steps


def steps_of(plan: Plan) -> int:
    """Steps of the innermost loops in a nest; of all loops in a sequence, by their size."""
    depth = max(loop.depth for loop in plan.loops)
    if depth == 1:
        return sum(loop.schedule.forward_steps * (500 + loop.state_bytes) for loop in plan.loops)
    plain = taped = 1
    for loop in reversed(plan.loops):  # from the innermost outwards
        again = loop.schedule.forward_steps - loop.n_steps
        taped = again * plain + loop.n_steps * taped
        plain *= loop.n_steps
    return taped


@pytest.mark.sampled(3)
@every_case
def test_a_tenth_of_the_full_memory_costs_no_more_than_a_few_recomputations(name: str) -> None:
    """The factor stays below what one slot in ten allows, per level of the nest."""
    case = CASES[name]
    most = planned(case, schedule="store_all")
    least = minimum(case)
    plan = planned(case, memory=max(2 * least, most.peak_bytes // 10))
    depth = max(loop.depth for loop in plan.loops)
    assert steps_of(plan) <= 4**depth * steps_of(most)


@pytest.mark.sampled(5)
@every_case
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_plan_is_what_runs(name: str, share: float) -> None:
    case = CASES[name]
    least, most = minimum(case), planned(case, schedule="store_all").peak_bytes
    budget = int(least + share * max(0, most - least))
    function = gradient(case, memory=budget)
    plan = function.plan(*case[1])
    for loop in plan.loops:
        seen = check_schedule(loop.schedule)
        assert seen.forward_steps == loop.schedule.forward_steps
        assert seen.peak_slots == loop.schedule.n_slots
        assert seen.peak_tape_slots == loop.schedule.n_tape_slots
    call, tape, _ = function.prepare(case[1], {})
    counts: list[int] = []
    compiled(tape, function.options)(call.arguments.arrays, counts.append)
    outermost = [loop for loop in plan.loops if loop.depth == 1]
    assert counts[-1] == sum(loop.schedule.forward_steps + loop.n_steps for loop in outermost)


def test_the_numbers_of_a_plan() -> None:
    plan = planned(single(100, 1000), schedule=schedules.revolve(100, 5))
    assert (plan.n_steps, plan.n_slots, plan.forward_steps) == (100, 5, 416)
    assert plan.recompute_factor == 4.16
    assert plan.schedule is not None
    assert plan.schedule.writes == 44
    assert plan.budget is None


def test_everything_is_kept_where_it_fits_a_quarter_of_the_free_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = single(500, 30)
    monkeypatch.setattr(driver, "free_memory", lambda: 10**12)
    needed = _fresh(case).peak_bytes
    monkeypatch.setattr(driver, "free_memory", lambda: 4 * needed + 4)
    assert _fresh(case).schedule.family == "store_all"
    monkeypatch.setattr(driver, "free_memory", lambda: 4 * needed - 4)
    less = _fresh(case)
    assert less.forward_steps > 500
    assert less.peak_bytes < needed
    monkeypatch.setattr(driver, "free_memory", lambda: 0)
    assert _fresh(case).n_slots == 1  # no limit was asked for, so it runs, with as little as it can


def _fresh(case: Case) -> Any:
    """A plan that is not remembered from the last time."""
    ckad.clear_caches()
    fun, arguments = case
    return ckad.plan(fun, *arguments)


@pytest.mark.parametrize("schedule", ["store_all", "two_level", "revolve"])
def test_a_schedule_asked_for_is_held_to_the_budget(schedule: str) -> None:
    case = CASES["outer loop longer"]
    least = minimum(case, schedule=schedule)
    plan = planned(case, schedule=schedule, memory=least)
    assert plan.peak_bytes <= least
    assert plan.schedule is not None
    assert plan.schedule.family == schedule


def test_a_schedule_for_another_length() -> None:
    with pytest.raises(ScheduleError, match=r"made for 10 steps, the loop has 300.*lambda n"):
        planned(CASES["one"], schedule=schedules.revolve(10, 2))


def test_a_function_that_gives_no_schedule() -> None:
    with pytest.raises(ScheduleError, match="gave int"):
        planned(CASES["one"], schedule=lambda n: n)


def test_rows_made_elsewhere_are_checked() -> None:
    rows = schedules.revolve(300, 3).actions
    wrong = rows._replace(slot=np.where(rows.slot == 2, 1, rows.slot).astype(np.int32))
    with pytest.raises(ScheduleError, match="Action"):
        planned(CASES["one"], schedule=schedules.Schedule.from_actions(wrong, n_steps=300))
    right = schedules.Schedule.from_actions(rows, n_steps=300)
    fun, (x,) = CASES["one"]
    value, found = ckad.value_and_grad(fun, schedule=right)(x)
    wanted = ckad.value_and_grad(fun)(x)
    assert value == wanted[0]
    assert found.tobytes() == wanted[1].tobytes()


@pytest.mark.parametrize("n_steps", [10**6, 10**7])
@pytest.mark.parametrize("budget", ["64 KiB", "1 MB", "100 MB"])
def test_planning_is_fast_for_many_steps(n_steps: int, budget: str) -> None:
    case = single(n_steps, 3)
    planned(case, memory="200 KiB")  # kernels are loaded
    begin = time.process_time()
    plan = planned(case, memory=budget)
    assert time.process_time() - begin < 1
    assert plan.peak_bytes <= parse_bytes(budget)
    assert plan.n_steps == n_steps


def test_planning_is_fast_for_a_nest_of_long_loops() -> None:
    case = nest(1000, 300, 1000)
    planned(case, memory="3 MB")  # compiled
    begin = time.process_time()
    plan = planned(case, memory="2 MB")
    assert time.process_time() - begin < 3
    assert plan.peak_bytes <= 2 * MB


# --- what is said of small budgets --------------------------------------------------------


def test_the_error_names_a_budget_that_is_worth_giving() -> None:
    case = single(2000, 100)
    with pytest.raises(BudgetError, match="3 times at most") as caught:
        planned(case, memory=1)
    text = re.findall(r"With ([0-9,]+) bytes", str(caught.value))[0]
    advised = int(text.replace(",", ""))
    assert named_minimum(caught.value) < advised
    assert 2 < planned(case, memory=advised).recompute_factor <= 3
    assert planned(case, memory=int(0.9 * advised)).recompute_factor > 3


@pytest.mark.filterwarnings("default::ckad.errors.RecomputeWarning")
def test_a_budget_that_makes_a_gradient_dear_is_told_at_its_line() -> None:
    case = single(2000, 110)
    least = minimum(case)
    with pytest.warns(RecomputeWarning, match=r"computed [\d,]+ times.* 3 times at most") as told:
        plan = planned(case, memory=least)
    assert plan.recompute_factor > 20
    assert told[0].filename == __file__


@pytest.mark.filterwarnings("error::ckad.errors.RecomputeWarning")
def test_a_budget_that_was_not_given_or_is_not_dear_is_no_warning() -> None:
    case = single(2000, 120)
    with pytest.raises(BudgetError) as caught:
        planned(case, memory=1)
    advised = int(re.findall(r"With ([0-9,]+) bytes", str(caught.value))[0].replace(",", ""))
    assert planned(case, memory=advised).recompute_factor <= 3
    assert planned(case).recompute_factor <= 3


@pytest.mark.parametrize(("least", "memory"), [(300, None), (5000, None), (5000, "40 kB")])
def test_a_loop_of_unknown_length_has_a_plan_when_it_has_run(
    least: int, memory: str | None, engine: str
) -> None:
    def until(x: Any) -> Any:
        return ckad.while_loop(
            lambda s: s[1] < least, lambda s: (s[0] + 0.1 * np.sin(s[0]), s[1] + 1.0), (x, 0.0)
        )[0].sum()

    x = np.linspace(0.1, 1.0, 30 + (engine == "vm"))
    function = ckad.value_and_grad(until, memory=memory)
    before = function.plan(x)
    assert before.is_unknown
    assert "unknown before the first run" in str(before)
    step = before.loops[0].residual_bytes
    assert f"n steps: n x {step:,} bytes of residuals" in str(before)
    counts: list[int] = []
    ckad.value_and_grad(until, memory=memory, progress=lambda n, _: counts.append(n))(x)
    after = function.plan(x)
    assert not after.is_unknown
    assert after.n_steps == least
    assert "unknown" not in str(after)
    assert f"{least:,} steps of the last run" in str(after)
    again: list[int] = []
    ckad.value_and_grad(until, memory=memory, progress=lambda n, _: again.append(n))(x)
    about = 0.002 * again[-1] if "about" in str(after) else 0
    assert abs(again[-1] - after.forward_steps - least) <= about


def test_a_plan_is_text_in_a_notebook() -> None:
    plan = planned(single(100, 1000), memory="300 kB")
    assert plan._repr_html_().startswith("<pre>Plan: peak")
    assert "&lt;" in Plan(1, None, "<vm>")._repr_html_()


# --- from bytes to slots ------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize(("state", "residual"), [(8, 8), (8, 24), (100, 8), (8, 0)])
def test_fitting_schedules_fit_and_improve(n: int, state: int, residual: int) -> None:
    last = None
    most = (n + 1) * (state + residual)
    for budget in range(0, most, max(1, (state + residual) // 3)):
        schedule = fitting_schedule(n, state, residual, budget)
        if schedule is None:
            assert budget < state + residual
            continue
        assert schedule.n_slots * state + schedule.n_tape_slots * residual <= budget
        assert last is None or schedule.forward_steps <= last
        last = schedule.forward_steps
    assert last == n


def test_even_periods() -> None:
    assert even_period(100, 3) == 25
    assert schedules.two_level(101, even_period(101, 3)).n_slots == 3


# --- a plan in words and as a picture -----------------------------------------------------


def test_schedules_are_chosen_once_though_steps_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    choose = Chooser.schedules
    monkeypatch.setattr(
        Chooser, "schedules", lambda self: asked.append(self.budget) or choose(self)
    )
    plan = planned(CASES["outer loop longer"], memory="20 kB")
    assert asked == [20_000]
    assert plan.seconds is not None


def test_a_plan_in_words(engine: str) -> None:
    text = str(planned(single(100, 1000), memory="200 kB", schedule=schedules.revolve(100, 5)))
    first = rf"^Plan: peak [\d,]+ of 200,000 bytes \(.* KiB\), engine {engine}\n"
    assert re.search(first, text)
    assert "steps 100, slots 5, forward steps 416, recompute factor 4.160" in text
    assert "revolve over 100 steps: 5 restart slots of 7.8 KiB, 1 residual slot of" in text


def test_a_plan_of_a_nest_in_words() -> None:
    lines = str(planned(nest(8, 9, 10))).splitlines()
    assert [len(x) - len(x.lstrip()) for x in lines] == [0, 2, 2, 2, 4, 6]
    assert lines[2].endswith(" s predicted")
    assert "over 10 steps, 72 times" in lines[-1]


def test_a_plan_without_loops() -> None:
    plan = ckad.plan(lambda x: np.sum(np.sin(x)), np.ones(5), memory="1 MB")
    assert (plan.n_steps, plan.n_slots, plan.forward_steps, plan.loops) == (0, 0, 0, ())
    assert plan.recompute_factor == 1.0
    assert plan.schedule is None
    assert 0 < plan.peak_bytes <= MB
    assert "no loop to reverse" in str(plan)
    with pytest.raises(ValueError, match="nothing to draw"):
        plan.plot()


def test_a_loop_of_one_step_around_another() -> None:
    plan = planned(nest(1, 30))
    assert plan.n_steps == 1
    assert [loop.n_steps for loop in plan.loops] == [1, 30]


@pytest.mark.parametrize(
    "schedule",
    [
        schedules.revolve(100, 5),
        schedules.revolve(10_000, 20),
        schedules.two_level(100, 20),
        schedules.two_level(60, 20, 3),
        schedules.store_all(7),
        schedules.store_all(1),
    ],
    ids=str,
)
def test_a_plan_as_a_picture(schedule: schedules.Schedule, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    ax = planned(single(schedule.n_steps, 3), schedule=schedule).plot()
    ax.figure.savefig(tmp_path / "plan.png")
    assert ax.get_xlim()[1] >= schedule.forward_steps + schedule.n_steps
    assert ax.get_ylim()[1] >= schedule.n_steps
    assert f"{schedule.n_steps:,} steps" in ax.get_title()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert ("state in RAM" in labels) == bool(schedule.n_slots)
    pyplot.close(ax.figure)


def test_too_many_actions_to_draw() -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="too many to draw"):
        planned(single(10**5, 3), schedule=schedules.revolve(10**5, 9)).plot()


# --- free memory --------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 1000 kB available and no cgroups; the tests add them."""
    (tmp_path / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:    1000 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "CGROUPS_OF_PROCESS", tmp_path / "of_process")
    return tmp_path


V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = ("memory.max", "memory.current", "inactive_file")


def cgroup(
    folder: Path, names: tuple[str, str, str], limit: Any, used: int, cached: int = 0
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {cached}\nactive_file 7\n")


def test_no_cgroup(machine: Path) -> None:
    assert free_memory() == 1_024_000


def test_no_such_files(machine: Path) -> None:
    (machine / "meminfo").unlink()
    assert free_memory() == memory.GUESS


def test_version_2(machine: Path) -> None:
    (machine / "of_process").write_text("0::/user/job\n")
    cgroup(machine / "cgroup/user/job", V2, 500_000, 200_000)
    assert free_memory() == 300_000


def test_version_1(machine: Path) -> None:
    (machine / "of_process").write_text("7:cpu,cpuacct:/job\n5:memory:/job\n1:name=systemd:/\n")
    cgroup(machine / "cgroup/memory/job", V1, 500_000, 100_000)
    cgroup(machine / "cgroup/memory", V1, 9223372036854771712, 800_000)
    assert free_memory() == 400_000


@pytest.mark.parametrize("limits", [(400_000, 900_000), (900_000, 400_000), ("max", 400_000)])
def test_the_tightest_of_nested_limits(machine: Path, limits: tuple[Any, Any]) -> None:
    (machine / "of_process").write_text("0::/outer/inner\n")
    cgroup(machine / "cgroup/outer", V2, limits[0], 100_000)
    cgroup(machine / "cgroup/outer/inner", V2, limits[1], 100_000)
    assert free_memory() == 300_000


def test_no_limit(machine: Path) -> None:
    (machine / "of_process").write_text("0::/\n")
    cgroup(machine / "cgroup", V2, "max", 100_000)
    assert free_memory() == 1_024_000


def test_a_container_sees_its_own_group_as_the_root(machine: Path) -> None:
    (machine / "of_process").write_text("5:memory:/docker/0123\n")
    cgroup(machine / "cgroup/memory", V1, 600_000, 100_000)
    assert free_memory() == 500_000


@pytest.mark.parametrize("names", [V1, V2])
def test_cached_files_are_free(machine: Path, names: tuple[str, str, str]) -> None:
    line, folder = ("0::/a\n", "a") if names is V2 else ("3:memory:/a\n", "memory/a")
    (machine / "of_process").write_text(line)
    cgroup(machine / "cgroup" / folder, names, 500_000, 490_000, cached=300_000)
    assert free_memory() == 310_000


def test_a_group_over_its_limit(machine: Path) -> None:
    (machine / "of_process").write_text("0::/a\n")
    cgroup(machine / "cgroup/a", V2, 500_000, 600_000)
    assert free_memory() == 0


def test_a_plan_does_not_outlive_the_free_memory_it_was_made_for(monkeypatch):
    def decay(u):
        return np.sum(ckad.fori_loop(0, 1000, lambda i, u: u + 0.1 * np.sin(u), u))

    u = np.ones(100)
    monkeypatch.setattr("ckad.loops.driver.SMALL", 2**16)
    monkeypatch.setattr("ckad.loops.driver.free_memory", lambda: 2**34)
    kept = ckad.plan(decay, u)
    monkeypatch.setattr("ckad.loops.driver.free_memory", lambda: 2**20)
    assert kept.schedule.family == "store_all"
    assert ckad.plan(decay, u).peak_bytes <= 2**18 < kept.peak_bytes


def test_what_new_memory_costs_is_weighed():
    """Steps that keep more than is kept from run to run run again where that takes less time."""

    def program(a, b):
        for _ in range(400):
            a = a + np.sin(a) * b
            b[1:] += 0.1 * a[1:]
        return np.sum(a * b)

    a = np.linspace(0.1, 1.0, 160_000)
    long, short = (ckad.plan(program, x, x.copy(), engine="native") for x in (a, a[:900]))
    assert short.loops[0].schedule.n_slots == 0
    assert long.peak_bytes < 400 * a.nbytes


# --- states and residuals in one arena ----------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.3, 0.35, 0.55, 0.75, 0.9])
def test_what_is_idle_between_half_and_all_is_used(share: float, engine: str) -> None:
    """Residuals lie where states were, and the bits are those of keeping all."""
    if engine == "vm":
        pytest.skip("it has both apart")

    def spread(u: Any, k: Any) -> Any:
        for _ in range(300):
            u = u + k * np.sin(u) * np.cos(u)
        return np.sum(u**2)

    u, k = np.linspace(0.0, 1.0, 100), np.full(100, 0.01)
    kept = ckad.value_and_grad(spread, (0, 1), engine="native", schedule="store_all")
    most = kept.plan(u, k).peak_bytes
    run = ckad.value_and_grad(spread, (0, 1), engine="native", memory=int(share * most))
    plan = run.plan(u, k)
    assert plan.peak_bytes <= share * most
    assert plan.schedule.family == "mixed_bytes"
    assert plan.recompute_factor < (2.1 - share if share > 0.2 else 2.2)
    assert " all in " in str(plan)
    assert 0 < plan.seconds < 10
    loop = plan.loops[0]
    apart = plan.schedule.n_slots * loop.state_bytes
    assert loop.nbytes <= apart + plan.schedule.n_tape_slots * loop.residual_bytes
    value, gradient = run(u, k)
    expected, by = kept(u, k)
    assert value == expected
    assert all(map(np.array_equal, gradient, by))


@pytest.mark.parametrize("name", ["mixed", "mixed_bytes"])
def test_an_arena_asked_for(name: str, engine: str) -> None:
    def nested(u: Any) -> Any:
        for _ in range(40):
            v = u
            for _ in range(3):
                v = v * np.cos(v)
            u = 0.9 * u + 0.1 * v
        return np.sum(u**2)

    u = np.linspace(0.0, 1.0, 30)
    expected = ckad.value_and_grad(nested, engine=engine)(u)
    for n in (1, 2, 5, 13, 39, 60):
        given = {"mixed": (40, n), "mixed_bytes": (40, 240 * n, 240, 500)}[name]
        schedule = getattr(schedules, name)(*given)
        run = ckad.value_and_grad(nested, engine=engine, schedule=schedule)
        assert run.plan(u).seconds is not None
        found = run(u)
        assert found[0] == expected[0]
        assert np.array_equal(found[1], expected[1])


@pytest.mark.parametrize("engine", ["native", "vm"])
def test_a_budget_that_is_too_small_names_the_arrays_that_take_it(engine):
    def model(u, k, noted):
        for t in range(300):
            u = u + 0.01 * np.sin(k * u)
            if t % 10 == 0:
                noted[t // 10] = 0.9 * noted[t // 10] + u
        return np.sum(noted)

    given = np.ones(500), np.ones(500), np.zeros((30, 500))
    told = (
        r"The largest arrays: 120,000 bytes carried from step to step \(.*test_budget.py:\d+: "
        r"noted\[t // 10\] = 0.9 \* noted\[t // 10\] \+ u\), f64\[30,500\]\. "
        r"Raise memory= to at least [\d,]+"
    )
    with pytest.raises(BudgetError, match=told) as error:
        ckad.grad(model, memory=1000, engine=engine)(*given)
    assert "u = u +" not in str(error.value).split("Raise")[0]  # which takes little
    with pytest.raises(BudgetError, match=r"u\), f64\[30,500\]; 120,000 bytes for a result, f64"):
        ckad.grad(model, 2, memory=1000, engine=engine)(*given)
    with pytest.raises(
        BudgetError, match=r"The largest arrays: 800 bytes for a result, f64\[100\]"
    ):
        ckad.grad(lambda x: np.sum(x * x), memory=10, engine=engine)(np.ones(100))


def test_the_time_of_short_runs_is_asked_for_a_few_times(monkeypatch):
    """It is a call of the system, as long as a part of what they do."""
    program = ckad.jit(np.sin).compiled(np.ones(3))
    asked = list[float]()

    def clock() -> float:
        asked.append(1e-5 * len(asked))
        return asked[-1]

    monkeypatch.setattr("ckad.loops.compiled.thread_time", clock)
    for _ in range(3 * LOOKS):
        np.testing.assert_array_equal(program([np.ones(3)])[0], np.sin(np.ones(3)))
    assert len(asked) == 2 * LOOKS
    assert program.plan.seconds == pytest.approx(1e-5)
