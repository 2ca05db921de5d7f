"""The long tests: `pytest -m slow -n 2`."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad import cli, schedules

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("engine")
def test_the_demo_recovers_the_diffusivity(tmp_path, capsys):
    assert cli.main(["demo", "--no-progress", "--output", str(tmp_path / "figure.png")]) == 0
    lines = capsys.readouterr().out.splitlines()
    recovered = next(line for line in lines if line.startswith("recovered"))
    error = float(recovered.split("to ")[1].split("%")[0])
    assert error < 2.5
    assert (tmp_path / "figure.png").stat().st_size > 50_000


@pytest.mark.parametrize("n_slots", [3, 30, 1000])
def test_a_schedule_of_a_million_steps_reverses_each_step_once(n_slots):
    n_steps = 10**5 if n_slots == 3 else 10**6
    schedule = schedules.revolve(n_steps, n_slots)
    report = ckad.testing.check_schedule(schedule)
    assert report.forward_steps == schedules.forward_steps("revolve", n_steps, n_slots)
    assert report.peak_slots == n_slots


def lorenz(parameters, state):
    sigma, rho, beta = parameters[0], parameters[1], parameters[2]

    def velocity(x, y, z):
        return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

    def step(i, u):
        half = tuple(a + 5e-6 * b for a, b in zip(u, velocity(*u), strict=True))
        return tuple(a + 1e-5 * b for a, b in zip(u, velocity(*half), strict=True))

    x, y, z = ckad.fori_loop(0, 10**6, step, (state[0], state[1], state[2]))
    return x * x + y * y + z * z


@pytest.mark.usefixtures("engine")
def test_a_million_steps_are_the_same_bits_under_every_budget():
    point = np.array([10.0, 28.0, 8 / 3]), np.array([1.0, 1.0, 1.0])
    found = [
        ckad.value_and_grad(lorenz, argnums=(0, 1), memory=memory)(*point)
        for memory in ("64 KiB", "1 MiB", None)
    ]
    for value, gradient in found[1:]:
        assert value == found[0][0]
        for g, first in zip(gradient, found[0][1], strict=True):
            np.testing.assert_array_equal(g, first)
    _, tangent = ckad.jvp(lorenz, point, (np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5, 0.6])))
    by_reverse = found[0][1][0] @ [0.1, 0.2, 0.3] + found[0][1][1] @ [0.4, 0.5, 0.6]
    np.testing.assert_allclose(tangent, by_reverse, rtol=1e-9)
