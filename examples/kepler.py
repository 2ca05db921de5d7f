"""Determine an orbit from noisy positions, with a symplectic method and exact gradients.

A body moves about the sun by d²q/dt² = -mu q / |q|³, in astronomical units and years. From forty
positions, seen with an error, its position and velocity at the start and mu are found by BFGS,
with the gradient taken back through every step of Yoshida's method of order four.

    python examples/kepler.py --output kepler.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize

import ckad
from ckad.integrate import solve_ivp

MU = 4.0 * np.pi**2  # au³/year², of the sun
# Perihelion of an orbit with a = 1.524 au and e = 0.0934, those of Mars.
AXIS, ECCENTRICITY = 1.524, 0.0934
NEAREST = AXIS * (1.0 - ECCENTRICITY)
FASTEST = np.sqrt(MU / AXIS * (1.0 + ECCENTRICITY) / (1.0 - ECCENTRICITY))
TRUE = np.array([NEAREST, 0.0, 0.0, FASTEST, np.log(MU)])
YEARS, N_SEEN = 3.0, 40


class Orbit(NamedTuple):
    """What was found: the state at the start, mu, and how far the fit is from what was seen."""

    control: np.ndarray  # float64[5]: position, velocity, log(mu)
    period: float  # years
    scatter: float  # au, root mean square per coordinate
    seen: np.ndarray  # float64[2, N_SEEN]
    misfits: list[float]


def positions(control, times, n_steps: int):
    """float64[2, len(times)], au."""
    mu = np.exp(control[4])

    def motion(t, y):
        q, v = y[:2], y[2:]
        return np.concatenate([v, -mu * q / np.sum(q**2) ** 1.5])

    sol = solve_ivp(motion, (0.0, YEARS), control[:4], "Yoshida4", t_eval=times, n_steps=n_steps)
    return sol.y[:2]


def fit(n_steps: int = 2_000, error: float = 1e-3, seed: int = 1) -> Orbit:
    """From a guess that is wrong by some percent."""
    times = np.linspace(0.0, YEARS, N_SEEN)
    noise = error * np.random.default_rng(seed).normal(size=(2, N_SEEN))
    seen = positions(TRUE, times, n_steps) + noise

    def misfit(control):
        return np.sum((positions(control, times, n_steps) - seen) ** 2) / error**2

    guess = TRUE * np.array([1.02, 1.0, 1.0, 0.99, 1.0]) + 0.01
    misfits: list[float] = []
    found = minimize(
        ckad.value_and_grad(misfit),
        guess,
        jac=True,
        method="BFGS",
        callback=lambda intermediate_result: misfits.append(float(intermediate_result.fun)),
    )
    mu, (q, v) = np.exp(found.x[4]), np.split(found.x[:4], 2)
    axis = 1.0 / (2.0 / np.linalg.norm(q) - v @ v / mu)  # vis-viva
    left = positions(found.x, times, n_steps) - seen
    period = 2.0 * np.pi * np.sqrt(axis**3 / mu)
    return Orbit(found.x, float(period), float(np.sqrt(np.mean(left**2))), seen, misfits)


def report(orbit: Orbit) -> str:
    exact = 2.0 * np.pi * np.sqrt(AXIS**3 / MU)
    return "\n".join(
        [
            f"misfit  {orbit.misfits[0]:.1f} -> {orbit.misfits[-1]:.1f} in {len(orbit.misfits)} "
            f"iterations ({2 * N_SEEN} coordinates, in units of their error squared)",
            f"period  {orbit.period:.4f} years, that of the orbit {exact:.4f}",
            f"mu      {np.exp(orbit.control[4]):.3f} au³/year², of the sun {MU:.3f}",
            f"scatter {orbit.scatter:.2e} au",
        ]
    )


def draw(orbit: Orbit, path: str, n_steps: int) -> None:
    figure = Figure(figsize=(5.2, 5.0), layout="constrained")
    axes = figure.subplots()
    whole = positions(orbit.control, np.linspace(0.0, YEARS, 400), n_steps)
    axes.plot(*whole, color="0.35", label="fitted")
    axes.plot(*orbit.seen, "o", color="#b5762a", markersize=4, label="seen")
    axes.plot(0.0, 0.0, "*", color="#e0b000", markersize=14)
    axes.set(xlabel="au", ylabel="au", aspect="equal", title="An orbit from forty positions")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Determine an orbit from positions.")
    parser.add_argument("--output", default="kepler.png", help="where to write the figure")
    parser.add_argument("--steps", type=int, default=2_000, help="steps in three years")
    options = parser.parse_args(arguments)
    orbit = fit(options.steps)
    print(report(orbit))
    draw(orbit, options.output, options.steps)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
