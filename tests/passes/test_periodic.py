"""Arrays that every m-th step writes are no state: values, derivatives, states, resuming."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

CELLS, STEPS = 300, 53
U, K = np.sin(np.linspace(0.0, 3.0, CELLS)), np.array(0.1)


def step(u, k):
    return u + k * np.sin(u) * u[::-1]


def at_once(u, k):
    """The last group is not complete."""
    seen = np.zeros((6, CELLS))
    for t in range(STEPS):
        u = step(u, k)
        if t % 10 == 0:
            seen[t // 10] = u
    return seen * k


def at_the_end(u, k):
    """Some rows are not written, and stay as they were."""
    seen = np.outer(np.arange(8.0), u)
    for t in range(STEPS):
        u = step(u, k)
        if (t + 1) % 10 == 0:
            seen[(t + 1) // 10] = u
    return seen, u


def before(u, k):
    seen = np.zeros((6, CELLS))
    for t in range(60):
        if t % 10 == 0:
            seen[t // 10, :] = u * k
        u = step(u, k)
    return seen


def otherwise(u, k):
    seen = np.zeros((6, CELLS))
    for t in range(STEPS):
        u = step(u, k)
        if t % 10 != 3:
            u = u * 0.99
        else:
            seen[t // 10] = u
            u = u + 0.01 * k
    return seen


def two_arrays(u, k):
    one, other = np.zeros((6, CELLS)), np.ones((9, CELLS))
    for t in range(STEPS):
        u = step(u, k)
        if t % 10 == 0:
            one[t // 10] = u
            other[t // 10 + 2] = k * np.cos(u)
    return one, other


def at_different_steps(u, k):
    one, other = np.zeros((6, CELLS)), np.ones((9, CELLS))
    for t in range(STEPS):
        u = step(u, k)
        if t % 10 == 7:
            one[t // 10] = u
        if t % 10 == 2:
            other[t // 10 + 2] = k * np.cos(u)
            u = u * 1.01
    return one, other


def beside_sums(u, k):
    """Something is kept of each step, too."""
    seen, energy = np.zeros((6, CELLS)), np.zeros(STEPS)
    for t in range(STEPS):
        u = step(u, k)
        if t % 10 == 0:
            seen[t // 10] = u
        energy[t] = np.sum(u * u)
    return seen, energy


def beside_rows(u, k):
    seen, edge = np.zeros((6, CELLS)), np.zeros((60, 20))
    for t in range(60):
        u = step(u, k)
        if t % 10 == 9:
            seen[t // 10] = u
        edge[t] = u[:20] * k
    return seen, edge


def driven(u, k):
    """Each step reads something of its own."""
    seen, forces = np.zeros((6, CELLS)), np.sin(np.outer(np.arange(STEPS), u))
    for t in range(STEPS):
        u = step(u, k) + 0.01 * forces[t]
        if t % 10 == 4:
            seen[t // 10] = u
    return seen


def driven_and_seen(u, k):
    seen, forces, gauge = np.zeros((6, CELLS)), np.cos(k * np.arange(60.0)), np.zeros(60)
    for t, force in enumerate(forces):
        u = step(u, k) + 0.01 * force
        gauge[t] = u[3]
        if t % 10 == 0:
            seen[t // 10] = u
    return seen, gauge


GROUPED = (
    *(at_once, at_the_end, before, otherwise, two_arrays, at_different_steps),
    *(beside_sums, beside_rows, driven_and_seen),
)


def read(u, k):
    """What was written is needed to go on."""
    seen = np.zeros((6, CELLS))
    for t in range(STEPS):
        u = step(u, k) + 0.01 * seen[0]
        if t % 10 == 0:
            seen[t // 10] = u
    return seen


def now_and_then(u, k):
    """Not at equal distances; where it is not written it is as it was."""
    seen = np.outer(np.arange(60.0), u)
    for t in range(STEPS):
        u = step(u, k)
        if (t * t) % 7 == 2:
            seen[t] = u
    return seen


def often(u, k):
    seen = np.zeros((30, CELLS))
    for t in range(STEPS):
        u = step(u, k)
        if t % 2 == 0:
            seen[t // 2] = u
    return seen


def one_row(u, k):
    """Each write takes the place of the last."""
    seen = np.zeros((6, CELLS))
    for t in range(STEPS):
        u = step(u, k)
        if t % 10 == 0:
            seen[(t // 10) % 4] = u
    return seen


def kept_in_a_list(u, k):
    """Its items are at checked places."""
    frames = []
    for t in range(STEPS):
        u = step(u, k)
        if t % 10 == 0:
            frames.append(u.copy())
    return frames[-1], frames[1]


CARRIED = (read, now_and_then, often, one_row)
PROGRAMS = (*GROUPED, driven, kept_in_a_list, *CARRIED)
ENGINES = pytest.mark.parametrize("engine", ["vm", "native"])
ALL = pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)


def total(program):
    def function(u, k):
        found = program(u, k)
        parts = found if isinstance(found, tuple) else (found,)
        return sum(np.sum(part * part) for part in parts)

    return function


@pytest.mark.sampled(3)
@ALL
@ENGINES
def test_values_and_derivatives(program, engine):
    mine, theirs = ckad.jit(program, engine=engine)(U, K), program(U, K)
    pairs = zip(mine, theirs, strict=True) if isinstance(theirs, tuple) else [(mine, theirs)]
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    value = ckad.value_and_grad(total(program), engine=engine)(U, K)[0]
    np.testing.assert_allclose(value, total(program)(U, K), rtol=1e-12)
    ckad.testing.check_grads(lambda u, k: program(u, k), (U, K), engine=engine)


@pytest.mark.sampled(3)
@ALL
@ENGINES
def test_the_bits_do_not_depend_on_the_schedule(program, engine):
    first, *others = (
        ckad.value_and_grad(total(program), (0, 1), engine=engine, **options)(U, K)
        for options in (
            {"schedule": "store_all"},
            {"schedule": "revolve"},
            {"schedule": "two_level"},
            {"schedule": lambda n: ckad.schedules.mixed(n, 2)},
            {"memory": "1100 KB" if program in (now_and_then, driven) else "400 KB"},
        )
    )
    for other in others:
        np.testing.assert_array_equal(first[0], other[0])
        for one, another in zip(first[1], other[1], strict=True):
            np.testing.assert_array_equal(one, another)


@pytest.mark.parametrize("program", GROUPED, ids=lambda f: f.__name__)
def test_restart_states_hold_no_array_that_every_tenth_step_writes(program):
    plan = ckad.plan(total(program), U, K, argnums=(0, 1), engine="native", schedule="revolve")
    assert all(loop.state_bytes <= 3 * CELLS * 8 + 128 for loop in plan.loops)


@pytest.mark.parametrize("program", CARRIED, ids=lambda f: f.__name__)
def test_what_is_read_or_written_otherwise_is_carried(program):
    plan = ckad.plan(total(program), U, K, argnums=(0, 1), engine="native", schedule="revolve")
    assert max(loop.state_bytes for loop in plan.loops) >= 6 * CELLS * 8


def test_a_run_that_is_resumed_has_the_same_bits(tmp_path):
    one = ckad.value_and_grad(total(at_once), (0, 1))(U, K)
    for _ in range(2):
        other = ckad.value_and_grad(total(at_once), (0, 1), memory="400 KB", resume=tmp_path)(U, K)
        assert one[0] == other[0]
        for a, b in zip(one[1], other[1], strict=True):
            np.testing.assert_array_equal(a, b)
