"""Runs that are killed go on: the bits stay, little is run twice, nothing is left behind."""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from typing import Any

import numpy as np
import pytest

import ckad
from ckad import schedules
from ckad.checkpoint.store import disk
from ckad.checkpoint.store.directory import resume_directory
from ckad.errors import BudgetError, CheckpointError
from ckad.loops.between import courses, resume

from ..checkpoint.store.processes import ended, fork
from .test_disk import arguments, open_ended, program, same


class Kill(Exception):
    """In place of the signal."""


@pytest.fixture
def often(monkeypatch):
    """Journals wherever one can be written."""
    monkeypatch.setattr(resume, "PAUSES", 0)


def killed_at(monkeypatch, number: int) -> list[int]:
    """Fail behind a journal; counts them."""
    seen = [0]

    class Failing(resume.Resumable):
        def _write_journal(self) -> None:
            super()._write_journal()
            self.store.flush()
            seen[0] += 1
            if seen[0] == number:
                raise Kill

    monkeypatch.setattr(courses, "Resumable", Failing)
    return seen


SCHEDULES: dict[str, Any] = {
    "auto": "auto",
    "revolve": lambda n: schedules.revolve(n, 4),
    "two_level": lambda n: schedules.two_level(n, 7),
    "ahead": lambda n: schedules.two_level(n, 7, ahead=True),
    "multistage": lambda n: schedules.multistage(n, 2, 2),
}


LONGER = [pytest.param(name, marks=pytest.mark.slow) for name in ("auto", "revolve")]


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize("name", ["two_level", "multistage", *LONGER])
@pytest.mark.usefixtures("often")
def test_a_run_goes_on_where_it_was_killed(name, engine, tmp_path, monkeypatch):
    expected = ckad.value_and_grad(program, (0, 1), engine=engine)(*arguments())
    gradient = ckad.value_and_grad(
        program, (0, 1), engine=engine, schedule=SCHEDULES[name], resume=tmp_path
    )
    total = killed_at(monkeypatch, -1)
    assert same(gradient(*arguments()), expected)
    assert not [*tmp_path.iterdir()]
    for number in np.linspace(1, total[0], 3, dtype=int).tolist():
        seen = killed_at(monkeypatch, number)
        with pytest.raises(Kill):
            gradient(*arguments())
        assert [*tmp_path.iterdir()]
        assert same(gradient(*arguments()), expected)
        assert seen[0] <= total[0] + 1  # what was recorded is not recorded again
        assert not [*tmp_path.iterdir()]


@pytest.mark.usefixtures("often")
def test_a_loop_of_unknown_length_goes_on(tmp_path, monkeypatch):
    expected = ckad.value_and_grad(open_ended, (0, 1), engine="native")(*arguments())
    gradient = ckad.value_and_grad(open_ended, (0, 1), engine="native", resume=tmp_path,
                                   schedule="online", memory="40 KiB")  # fmt: skip
    total = killed_at(monkeypatch, -1)
    assert same(gradient(*arguments()), expected)
    for number in (2, total[0] - 1):
        killed_at(monkeypatch, number)
        with pytest.raises(Kill):
            gradient(*arguments())
        assert same(gradient(*arguments()), expected)
        assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("schedule", ["auto", SCHEDULES["multistage"]])
@pytest.mark.usefixtures("often")
def test_a_new_process_knows_how_long_loops_were_thought_to_run(schedule, tmp_path, monkeypatch):
    """A schedule that was made for more steps than are assumed at first is not another one."""
    options = {"engine": "native", "schedule": schedule, "resume": tmp_path}
    expected = ckad.value_and_grad(open_ended, (0, 1), engine="native")(*arguments())
    ckad.clear_caches()
    total = killed_at(monkeypatch, -1)
    assert same(ckad.value_and_grad(open_ended, (0, 1), **options)(*arguments()), expected)
    for number in (1, total[0] // 2, total[0] - 1):
        ckad.clear_caches()  # as a new process has none
        seen = killed_at(monkeypatch, number)
        with pytest.raises(Kill):
            ckad.value_and_grad(open_ended, (0, 1), **options)(*arguments())
        ckad.clear_caches()
        with pytest.raises(CheckpointError, match=r"differs in argument array 0 \("):
            ckad.value_and_grad(open_ended, (0, 1), **options)(*arguments(0.01))
        ckad.clear_caches()
        assert same(ckad.value_and_grad(open_ended, (0, 1), **options)(*arguments()), expected)
        assert seen[0] <= total[0] + 2
        assert not [*tmp_path.iterdir()]


def shorter(u, k):
    n = 0
    while np.sum(u**2) > 1.0 and n < 40:
        u = u * 0.96 + k * np.sin(u)
        n += 1
    return np.sum(u**2)


@pytest.mark.usefixtures("often")
def test_a_loop_that_ends_long_before_its_bound_goes_on(tmp_path, monkeypatch):
    """Its schedule stores states past the end, of which there are none."""
    u, k = np.linspace(0.0, 1.0, 20), np.array(1e-3)
    expected = ckad.value_and_grad(shorter, (0, 1), engine="vm")(u, k)
    gradient = ckad.value_and_grad(shorter, (0, 1), engine="vm", resume=tmp_path,
                                   schedule=lambda n: schedules.multistage(n, 1, 2))  # fmt: skip
    total = killed_at(monkeypatch, -1)
    assert same(gradient(u, k), expected)
    assert total[0] > 5
    killed_at(monkeypatch, total[0] // 2)
    with pytest.raises(Kill):
        gradient(u, k)
    assert same(gradient(u, k), expected)
    assert not [*tmp_path.iterdir()]


def test_a_place_that_is_no_directory_is_refused_by_name(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(CheckpointError, match=r"file/loop-0 is not a directory; name one"):
        ckad.grad(program, resume=file)(*arguments())

    def read_only(*given: Any, **names: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("pathlib.Path.mkdir", read_only)
    with pytest.raises(CheckpointError, match="loop-0 cannot be written: Read-only") as refused:
        ckad.grad(program, resume=tmp_path / "run")(*arguments())
    assert refused.value.path == str(tmp_path / "run" / "loop-0")


@pytest.mark.usefixtures("often")
def test_what_differs_is_named(tmp_path, monkeypatch):
    gradient = ckad.value_and_grad(program, (0, 1), engine="native", resume=tmp_path)
    killed_at(monkeypatch, 2)
    with pytest.raises(Kill):
        gradient(*arguments())
    killed_at(monkeypatch, -1)
    with pytest.raises(CheckpointError, match="differs in argument array 0 "):
        gradient(*arguments(0.5))
    u, k = arguments()
    with pytest.raises(CheckpointError, match=r"types of the arguments .*f32"):
        gradient(u.astype(np.float32), k.astype(np.float32))
    other = ckad.value_and_grad(lambda u, k: 2.0 * program(u, k), (0, 1), engine="native",
                                resume=tmp_path)  # fmt: skip
    with pytest.raises(CheckpointError, match="differs in function "):
        other(u, k)
    by_vm = ckad.value_and_grad(program, (0, 1), engine="vm", resume=tmp_path)
    with pytest.raises(CheckpointError, match="engine "):
        by_vm(u, k)
    expected = ckad.value_and_grad(program, (0, 1), engine="native")(u, k)
    assert same(gradient(u, k), expected)


def scaled(by: float, n: int = 60) -> Any:
    def program(u, k):
        for _ in range(n):
            u = u + by * k * np.sin(u)
        return np.sum(u**2)

    return program


CHANGED: dict[str, tuple[Any, Any, str | None]] = {  # a run, another one, what is said to differ
    "less memory": (("64 KiB", {}), ("34 KiB", {}), "schedule "),
    "more memory": (("34 KiB", {}), ("64 KiB", {}), "schedule "),
    "memory alone": (("64 KiB", {"schedule": "two_level"}),
                     ("1 MiB", {"schedule": "two_level"}), None),
    "schedule": (("1 MiB", {"schedule": SCHEDULES["revolve"]}),
                 ("1 MiB", {"schedule": SCHEDULES["two_level"]}), "schedule "),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGED)
@pytest.mark.usefixtures("often")
def test_a_changed_budget_goes_on_or_is_refused(what, tmp_path, monkeypatch):
    """With the same schedule a run goes on, and the bits stay."""
    function = scaled(0.1)
    one, other, differs = CHANGED[what]
    expected = ckad.value_and_grad(function, (0, 1), engine="native")(*arguments())

    def gradient(amount: str, options: dict[str, Any]) -> Any:
        budget = ckad.Budget(amount, "4 MiB", tmp_path, durability="resume")
        return ckad.value_and_grad(function, (0, 1), engine="native", memory=budget, **options)

    begun, changed = gradient(*one), gradient(*other)
    total = killed_at(monkeypatch, -1)
    assert same(begun(*arguments()), expected)
    seen = killed_at(monkeypatch, max(1, total[0] // 2))
    with pytest.raises(Kill):
        begun(*arguments())
    monkeypatch.setattr(courses, "Resumable", resume.Resumable)
    if differs is None:
        seen = killed_at(monkeypatch, -1)
        assert same(changed(*arguments()), expected)
        assert seen[0] <= total[0] // 2 + 2  # the other half
    else:
        with pytest.raises(CheckpointError, match=f"differs in {differs}"):
            changed(*arguments())
        assert same(begun(*arguments()), expected)
    assert not [*tmp_path.iterdir()]


OTHERS: dict[str, tuple[Any, Any, str]] = {
    "a parameter that it reads": (scaled(0.2), (0, 1), "function "),
    "steps": (scaled(0.1, 61), (0, 1), "function "),
    "what is differentiated by": (scaled(0.1), 0, "function "),
}


@pytest.mark.parametrize("what", [*OTHERS, "version", "processor", "shape"])
@pytest.mark.usefixtures("often")
def test_another_program_version_or_machine_is_refused(what, tmp_path, monkeypatch):
    options = {"engine": "native", "resume": tmp_path, "schedule": "two_level"}
    begun = ckad.value_and_grad(scaled(0.1), (0, 1), **options)
    expected = ckad.value_and_grad(scaled(0.1), (0, 1), engine="native")(*arguments())
    u, k = arguments()
    killed_at(monkeypatch, 2)
    with pytest.raises(Kill):
        begun(u, k)
    killed_at(monkeypatch, -1)
    with monkeypatch.context() as patch:
        if what == "version":
            patch.setattr(courses, "version", lambda name: "0.0.1")
            told, changed = "version of ckad ", begun
        elif what == "processor":
            patch.setattr("platform.machine", lambda: "abacus")
            told, changed = "processor ", begun
        elif what == "shape":
            u, k, told, changed = u[:50], k[:50], "types of the arguments ", begun
        else:
            function, argnums, told = OTHERS[what]
            changed = ckad.value_and_grad(function, argnums, **options)
        with pytest.raises(CheckpointError, match=f"differs in .*{told}"):
            changed(u, k)
    assert same(begun(*arguments()), expected)
    assert not [*tmp_path.iterdir()]


def diffused(u):
    """Steps that keep nothing: states are what takes memory."""
    for _ in range(200):
        u[1:-1] += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return np.sum(u**2)


@pytest.mark.usefixtures("often")
def test_a_budget_without_room_for_64_segments_has_as_many_as_fit(tmp_path, monkeypatch):
    u = np.linspace(0.1, 1.0, 2000)
    expected = ckad.value_and_grad(diffused, engine="vm")(u)
    within = ckad.value_and_grad(diffused, engine="vm", resume=tmp_path, memory="480 kB")
    total = killed_at(monkeypatch, -1)
    for number in (-1, 3, -1):
        seen = killed_at(monkeypatch, number)
        if number > 0:
            with pytest.raises(Kill):
                within(u)
            continue
        value, gradient = within(u)
        assert value == expected[0]
        np.testing.assert_array_equal(gradient, expected[1])
        total.append(seen[0])
    assert 3 < total[2] < total[1] < 64


def test_ctrl_c_while_the_directory_is_opened_leaves_it_free(tmp_path, monkeypatch):
    """Though what was raised, and with it all that was under way, is kept as in a terminal."""
    gradient = ckad.value_and_grad(program, (0, 1), engine="vm", resume=tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it

    def opened(base: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return resume_directory(base)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(disk, "resume_directory", opened)
            with pytest.raises(KeyboardInterrupt) as stopped:
                gradient(*arguments())
    finally:
        signal.signal(signal.SIGINT, before)
    expected = ckad.value_and_grad(program, (0, 1), engine="vm")(*arguments())
    assert same(gradient(*arguments()), expected)
    assert stopped.tb is not None
    assert not [*tmp_path.iterdir()]


def through_kills(path: Any, n_kills: int, seed: int, **options: Any) -> None:
    """Kill children at random moments, let one end, compare its bits."""
    rng = np.random.default_rng(seed)
    expected = ckad.value_and_grad(program, (0, 1), engine="native")(*arguments())
    gradient = ckad.value_and_grad(program, (0, 1), engine="native", resume=path / "run", **options)
    gradient.compiled(*arguments())

    def child() -> None:
        value, (a, b) = gradient(*arguments())
        part = path.with_name(f"{path.name}-part.npz")  # it may be killed here, too
        np.savez(part, value=value, a=a, b=b)
        part.replace(path / "found.npz")

    start = time.perf_counter()
    assert ended(fork(child)) == 0
    whole = time.perf_counter() - start
    for _ in range(n_kills):
        (path / "found.npz").unlink(missing_ok=True)
        pid = fork(child)
        time.sleep(rng.uniform(0.0, whole))
        os.kill(pid, signal.SIGKILL)
        ended(pid)
    if not (path / "found.npz").exists():
        assert ended(fork(child)) == 0
    with np.load(path / "found.npz") as found:
        assert same((found["value"], (found["a"], found["b"])), expected)
    assert [x.name for x in path.iterdir()] in (["found.npz"], ["run", "found.npz"],
                                                ["found.npz", "run"])  # fmt: skip
    assert not [*(path / "run").glob("*")]


@pytest.mark.usefixtures("often")
def test_killed_ten_times(tmp_path):
    through_kills(tmp_path, 10, 0, schedule="two_level")


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_killed_within_the_least_memory_beside_a_disk(tmp_path):
    """States in memory and on disk."""
    run = tmp_path / "run"
    options: dict[str, Any] = {"schedule": SCHEDULES["multistage"], "engine": "native"}
    small = ckad.Budget(1, "8 MiB", run, durability="resume")
    with pytest.raises(BudgetError) as refused:
        ckad.value_and_grad(program, (0, 1), memory=small, **options)(*arguments())
    least = re.search(r"at least ([\d,]+)", str(refused.value))
    assert least is not None
    memory = int(least[1].replace(",", ""))
    budget = ckad.Budget(memory, "8 MiB", run, durability="resume")
    through_kills(tmp_path, 40, 1, memory=budget, schedule=options["schedule"])


@pytest.mark.slow
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("seed", range(25))
def test_killed_five_hundred_times(tmp_path, seed):
    through_kills(tmp_path, 20, seed, schedule="two_level")
