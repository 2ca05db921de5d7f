"""The examples of implicit functions, reduced."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ckad

pytest.importorskip("matplotlib")


def example(checkout: Path, name: str) -> dict[str, Any]:
    return runpy.run_path(str(checkout / "examples" / f"{name}.py"))


def test_the_period_of_van_der_pols_oscillator(checkout: Path, tmp_path: Path) -> None:
    made = example(checkout, "van_der_pol")
    found = made["periods"]([0.2, 1.0], n_steps=200)
    turn, slope = made["by_series"](0.2)  # its next term is 5.5e-7 of the slope
    assert found.period[0] == pytest.approx(turn, rel=3e-8)
    assert found.slope[0] == pytest.approx(slope, rel=2.5e-6)
    # by differences of periods from 1,600 steps
    assert found.period[1] == pytest.approx(6.6632868593, rel=2e-7)
    assert found.slope[1] == pytest.approx(0.7315966, rel=5e-6)
    made["draw"](found, str(tmp_path / "figure.png"))
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert f"{found.slope[1]:.9f}" in made["report"](found)


@pytest.mark.slow
def test_a_conductivity_by_multigrid(checkout: Path, tmp_path: Path) -> None:
    made = example(checkout, "heat_multigrid")
    found = made["fit"](n=15, n_steps=10)
    np.testing.assert_allclose(found.control, made["TRUE"], atol=1e-5)
    left, exact = made["first_mode"](31, 10)
    assert left == pytest.approx(exact, rel=2e-3)  # h² pi² / 12 of the exponent
    made["draw"](found, str(tmp_path / "figure.png"))
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_a_step_of_multigrid_is_derived_as_a_solution(checkout: Path) -> None:
    made = example(checkout, "heat_multigrid")
    n, dt = 3, 1e-2
    u = np.random.default_rng(5).normal(size=(n, n))

    def by_cycles(log_k: Any) -> Any:
        return np.sum(made["heated"](np.exp(log_k), u, u, 2, dt) ** 3)

    def by_factors(log_k: Any) -> Any:
        k, v = made["faces"](np.exp(log_k)), u
        columns = [made["diffused"](e.reshape(n, n), k, 0.25).ravel() for e in np.eye(n * n)]
        L = np.stack(columns, axis=1)
        for _ in range(2):
            right = v.ravel() - 0.5 * dt * L @ v.ravel() + dt * u.ravel()
            v = np.linalg.solve(np.eye(n * n) + 0.5 * dt * L, right).reshape(n, n)
        return np.sum(v**3)

    log_k = 0.3 * np.random.default_rng(6).normal(size=(n + 1, n + 1))
    value, slope = ckad.value_and_grad(by_cycles, engine="vm")(log_k)
    exact, exact_slope = ckad.value_and_grad(by_factors, engine="vm")(log_k)
    assert value == pytest.approx(exact, rel=1e-8)
    np.testing.assert_allclose(slope, exact_slope, atol=1e-8 * np.abs(exact_slope).max())
