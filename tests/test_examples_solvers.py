"""The examples of solvers, reduced: what they recover is what is known."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

slow = pytest.mark.slow


@pytest.fixture
def example(checkout: Path) -> Any:
    def load(name: str) -> SimpleNamespace:
        return SimpleNamespace(**runpy.run_path(str(checkout / "examples" / f"{name}.py")))

    return load


def is_drawn(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG")


@slow
def test_robertsons_sensitivities_are_those_that_are_published(example: Any) -> None:
    robertson = example("robertson")
    found = robertson.sensitivities(robertson.TIMES)
    published = np.array([*robertson.PUBLISHED.values()])
    np.testing.assert_allclose(found.by_rates[0], published, rtol=2e-4)
    known = robertson.by_variational_equations(robertson.TIMES)
    assert robertson.distance(found, known) < 1e-6


@slow
def test_the_ozone_of_an_hour(example: Any, tmp_path: Path) -> None:
    pollu = example("pollu")
    found = pollu.hour(rtol=1e-7)
    np.testing.assert_allclose(found.concentrations, pollu.REFERENCE, rtol=1e-6)
    for k in pollu.largest(found)[:2]:
        assert found.elasticity[k] == pytest.approx(pollu.by_variational_equations(k), rel=1e-6)
    pollu.draw(found, str(tmp_path / "pollu.png"))
    assert is_drawn(tmp_path / "pollu.png")


def test_a_ball_hits_its_target(example: Any, tmp_path: Path) -> None:
    ball = example("bouncing_ball")
    found = ball.throw(kept=0.7)
    assert abs(found.distance - ball.TARGET) < 1e-9
    np.testing.assert_allclose(found[1:4], ball.closed_form(found.angle, 0.7), rtol=1e-9)
    ball.draw(found, 0.7, str(tmp_path / "ball.png"))
    assert is_drawn(tmp_path / "ball.png")


def test_a_rocket_rises_as_high_as_published(example: Any, tmp_path: Path) -> None:
    rocket = example("rocket")
    ascent = rocket.climb(n=30, substeps=3)
    assert ascent.height == pytest.approx(rocket.PUBLISHED, abs=5e-5)
    assert ascent.states[-1, 2] == pytest.approx(1.0 - rocket.FUEL, abs=1e-6)
    rocket.draw(ascent, str(tmp_path / "rocket.png"))
    assert is_drawn(tmp_path / "rocket.png")


@slow
def test_conductances_of_a_nerve(example: Any, tmp_path: Path) -> None:
    nerve = example("hodgkin_huxley")
    found = nerve.fit(lengths=(6.0, 20.0))
    assert np.all(np.abs(found.conductances - nerve.PUBLISHED) < 4.0 * found.errors)
    assert np.all(found.errors < 0.1 * nerve.PUBLISHED)
    nerve.draw(found, str(tmp_path / "nerve.png"))
    assert is_drawn(tmp_path / "nerve.png")


@slow
def test_a_spiral_is_learned(example: Any, tmp_path: Path) -> None:
    network = example("neural_ode")
    learned = network.learn()
    assert learned.misfits[-1] < 1e-3 * learned.misfits[0]
    assert network.off(learned) < 0.05
    network.draw(learned, str(tmp_path / "spiral.png"))
    assert is_drawn(tmp_path / "spiral.png")


@slow
def test_a_pendulum_swings_up(example: Any, tmp_path: Path) -> None:
    pendulum = example("pendulum")
    bounded = pendulum.swing_up(0.5, pendulum.push(0.5, 60))
    assert np.max(np.abs(bounded.states[-1] - pendulum.ABOVE)) < 1e-3
    assert np.max(np.abs(bounded.torques)) <= 0.5
    free = pendulum.swing_up(pendulum.UNBOUNDED, bounded.torques)
    assert free.cost == pytest.approx(pendulum.KNOWN, rel=0.05)
    pendulum.draw([free, bounded], str(tmp_path / "pendulum.png"))
    assert is_drawn(tmp_path / "pendulum.png")


@slow
def test_the_surface_of_a_tsunami(example: Any, tmp_path: Path) -> None:
    water = example("shallow_water")
    seen = water.survey(n=20, n_steps=80)
    found = water.invert(seen, n_iterations=40)
    assert np.linalg.norm(found.surface - seen.true) < 0.25 * np.linalg.norm(seen.true)
    assert found.misfits[-1] < 0.05 * found.misfits[0]
    ended, known = water.standing_wave(20)
    assert ended == pytest.approx(known, abs=1e-3)
    water.draw(found, seen, str(tmp_path / "water.png"))
    assert is_drawn(tmp_path / "water.png")


METHODS = ("Heun", "RK4", "Yoshida4", "RK45", "DOP853", "Kvaerno5", "Rodas5P")


@pytest.mark.parametrize(
    "method", [name if name == "RK4" else pytest.param(name, marks=slow) for name in METHODS]
)
def test_orders_are_measured(example: Any, method: str) -> None:
    convergence = example("convergence")
    study = convergence.measure(method, doublings=2)
    for errors in (study.errors, study.of_derivative):
        assert convergence.measured(study.steps, errors) > study.order - 0.6
