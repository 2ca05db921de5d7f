"""Steps run again in one stream of instructions with the reversal of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import ScheduleError
from ckad.schedules import Action, Actions, Schedule, two_level


def lorenz(n: int) -> Any:
    def rate(u: Any, p: Any) -> Any:
        return p[0] * (u[1] - u[0]), u[0] * (p[1] - u[2]) - u[1], u[0] * u[1] - p[2] * u[2]

    def loss(u: Any, p: Any) -> Any:
        def step(i: Any, u: Any) -> Any:
            half = [x + 5e-3 * k for x, k in zip(u, rate(u, p), strict=True)]
            return tuple(x + 1e-2 * k for x, k in zip(u, rate(half, p), strict=True))

        x, y, z = ckad.fori_loop(0, n, step, (u[0], u[1], u[2]))
        return x * x + y * z

    return loss, (np.array([1.0, 0.5, 1.5]), np.array([10.0, 28.0, 8.0 / 3.0]))


def van_der_pol(n: int) -> Any:
    """Sources go in and observations come out at every step; an array and a number are carried."""

    def loss(u: Any, mu: Any, sources: Any, weights: Any) -> Any:
        def step(carry: Any, source: Any) -> Any:
            u, total = carry
            du = np.stack([u[1], mu * (1.0 - u[0] * u[0]) * u[1] - u[0] + source])
            u = u + 0.01 * du
            return (u, total + np.sum(u * du)), u * source

        (u, total), ys = ckad.scan(step, (u, 0.0), sources)
        return np.sum(u) + total + np.sum(weights * ys)

    k = np.arange(n)
    weights = np.sin(1.0 + np.stack([k, 2.0 * k], axis=1))
    return loss, (np.array([1.0, 0.2]), np.array(1.3), np.cos(k), weights)


def gradient(program: Any, n: int, **options: Any) -> Any:
    loss, arguments = program(n)
    numbers = tuple(range(len(arguments)))
    return ckad.value_and_grad(loss, numbers, engine="native", **options), arguments


def bits(result: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in (result[0], *result[1])]


@pytest.mark.parametrize(
    ("program", "n"), [(lorenz, 1), (lorenz, 7), (van_der_pol, 2), (van_der_pol, 60)]
)
def test_every_period_gives_the_bits_of_keeping_all(program: Any, n: int) -> None:
    kept, arguments = gradient(program, n, schedule="store_all")
    expected = bits(kept(*arguments))
    for period in sorted({1, 2, 3, 7, n // 2 + 1, n - 1, n, n + 3} - {0}):
        ahead, _ = gradient(program, n, schedule=two_level(n, period, ahead=True))
        assert bits(ahead(*arguments)) == expected, period


def test_a_step_of_each_in_turn_is_a_function_of_its_own() -> None:
    loop, arguments = gradient(lorenz, 60, schedule=two_level(60, 7, ahead=True))
    assert "@both" in loop.compiled(*arguments).llvm

    def ended(u: Any) -> Any:
        while u < 50.0:
            u = u + 0.1 * u * u
        return u

    def large(u: Any) -> Any:
        return np.sum(ckad.fori_loop(0, 60, lambda i, u: u + 0.1 * np.sin(u), u))

    for fun, u in ((ended, np.array(0.5)), (large, np.linspace(0.0, 1.0, 300))):
        schedule = lambda n: two_level(n, 7, ahead=True)  # noqa: E731
        taped = ckad.value_and_grad(fun, engine="native", schedule=schedule)
        assert "@both" not in taped.compiled(u).llvm
        kept = ckad.value_and_grad(fun, engine="native", schedule="store_all")
        for found, expected in zip(taped(u), kept(u), strict=True):
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


def test_a_segment_reversed_in_parts_is_not_taken_for_another() -> None:
    """The REVERSE behind a TAPE is of the last steps that were taped."""
    rows = [
        (Action.STORE, 0, 0, 0),
        (Action.ADVANCE, 0, 6, -1),
        (Action.TAPE, 6, 8, 0),
        (Action.REVERSE, 6, 8, 0),
        (Action.RESTORE, 0, 0, 0),
        (Action.TAPE, 0, 6, 0),
        (Action.REVERSE, 4, 6, 4),
        (Action.REVERSE, 0, 4, 0),
        (Action.END, 0, 0, -1),
    ]
    columns = zip(*rows, strict=True)
    schedule = Schedule.from_actions(Actions._make(map(np.array, columns)), n_steps=8)
    in_parts, arguments = gradient(lorenz, 8, schedule=schedule)
    kept, _ = gradient(lorenz, 8, schedule="store_all")
    assert bits(in_parts(*arguments)) == bits(kept(*arguments))


def test_a_budget_takes_segments_beside_each_other() -> None:
    """Tables in pieces, both segments in the plan."""
    n, memory = 40_000, 64_000
    within, arguments = gradient(lorenz, n, memory=memory)
    plan = within.plan(*arguments)
    (loop,) = plan.loops
    assert plan.peak_bytes <= memory
    assert loop.beside == loop.schedule.n_beside > 0.9 * n
    rows = loop.schedule.actions
    longest = np.max((rows.stop - rows.start)[rows.kind == Action.TAPE])
    assert loop.schedule.n_tape_slots == 2 * longest
    assert f"{loop.beside:,} of them beside reversals" in str(plan)
    kept, _ = gradient(lorenz, n)
    assert bits(within(*arguments)) == bits(kept(*arguments))
    reference = ckad.value_and_grad(lorenz(n)[0], (0, 1), engine="vm", memory=memory)
    assert not reference.plan(*arguments).loops[0].beside


def test_progress_counts_both(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, arguments = gradient(lorenz, 3000, schedule=two_level(3000, 500, ahead=True))
    call, tape, _ = loop.prepare(arguments, {})
    program = ckad.transforms.call.compiled(tape, loop.options)
    for fuel in ("FIRST_FUEL", "MOST_FUEL"):
        monkeypatch.setattr(ckad.engines.native.running.machine, fuel, 300)
    seen: list[int] = []
    program(call.arguments.arrays, seen.append)
    assert max(seen) == program.total_steps == 3000 + 2500 + 3000


def test_only_segments_taped_whole_are_taped_ahead() -> None:
    with pytest.raises(ScheduleError, match="extra_slots=3"):
        two_level(100, 10, 3, ahead=True)
