"""Weather in one dimension: 4D-Var for Burgers' equation.

u_t + u u_x = nu u_xx on a ring steepens into shocks. At a few stations u is observed, with an
error, every so often. From these and a wrong first guess (the background) the initial state is
found that explains them best, and the forecast that starts from it is compared with the truth.
The gradient runs back through all steps of the assimilation window.

    python examples/burgers.py --output burgers.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize

import ckad

NU, WINDOW = 0.005, 0.6
STATION, OFTEN = 8, 20  # cells between two stations, steps between two observations
ERROR, SPREAD = 0.02, 0.3  # of an observation, of the background
WIDTH = 0.05  # over which the errors of the background are alike


class Analysis(NamedTuple):
    """Initial states, each float64[n], and how the cost fell."""

    x: np.ndarray
    true: np.ndarray
    background: np.ndarray
    found: np.ndarray
    costs: list[float]


def step(u, dt, dx):
    """Upwind fluxes of u²/2 (Engquist and Osher), central diffusion."""
    right = 0.5 * (np.maximum(u, 0.0) ** 2 + np.minimum(np.roll(u, -1), 0.0) ** 2)
    diffusion = (np.roll(u, -1) - 2.0 * u + np.roll(u, 1)) / dx**2
    return u - dt / dx * (right - np.roll(right, 1)) + NU * dt * diffusion


def forecast(u, n_steps, dt):
    for _ in range(n_steps):
        u = step(u, dt, 1.0 / len(u))
    return u


def observations(u, n_steps, dt):
    """float64[n_steps // OFTEN, n // STATION]."""
    seen = np.zeros((n_steps // OFTEN, len(u) // STATION))
    for k in range(n_steps):
        u = step(u, dt, 1.0 / len(u))
        if k % OFTEN == OFTEN - 1:
            seen[k // OFTEN] = u[::STATION]
    return seen


def root_of_covariance(x):
    """A smooth field from white noise, float64[n, n]: its square is a Gaussian of the distance."""
    apart = np.abs(x[:, None] - x)
    apart = np.minimum(apart, 1.0 - apart)
    kernel = np.exp(-((apart / WIDTH) ** 2))
    return SPREAD * kernel / np.sqrt(np.sum(kernel[0] ** 2))


def assimilate(n: int = 256, n_steps: int = 600, seed: int = 5) -> Analysis:
    x = np.arange(n) / n
    dt = WINDOW / n_steps
    draw = np.random.default_rng(seed)
    root = root_of_covariance(x)
    true = 0.5 + 0.5 * np.sin(2.0 * np.pi * x) + 0.2 * np.sin(6.0 * np.pi * x)
    background = true + root @ draw.normal(size=n)
    seen = observations(true, n_steps, dt)
    seen += ERROR * draw.normal(size=seen.shape)

    def cost(control):  # in which the background's errors are independent and of size one
        off = (observations(background + root @ control, n_steps, dt) - seen) / ERROR
        return 0.5 * np.sum(control**2) + 0.5 * np.sum(off**2)

    objective = ckad.value_and_grad(cost, memory="2 MiB")
    costs: list[float] = [float(objective(np.zeros(n))[0])]
    best = minimize(
        objective,
        np.zeros(n),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 60},
        callback=lambda intermediate_result: costs.append(float(intermediate_result.fun)),
    )
    return Analysis(x, true, background, background + root @ best.x, costs)


def errors(analysis: Analysis, n_steps: int) -> dict[str, tuple[float, float]]:
    """Of the initial state, and of the forecast over a second window, root mean square."""
    dt = WINDOW / n_steps
    truth = forecast(analysis.true, 2 * n_steps, dt)
    return {
        name: (
            float(np.sqrt(np.mean((state - analysis.true) ** 2))),
            float(np.sqrt(np.mean((forecast(state, 2 * n_steps, dt) - truth) ** 2))),
        )
        for name, state in (("background", analysis.background), ("analysis", analysis.found))
    }


def report(analysis: Analysis, n_steps: int) -> str:
    lines = [
        f"cost {analysis.costs[0]:.0f} -> {analysis.costs[-1]:.0f} in "
        f"{len(analysis.costs) - 1} iterations"
    ]
    for name, (start, end) in errors(analysis, n_steps).items():
        lines.append(f"{name:10s} {start:.4f} off at the start, its forecast {end:.4f}")
    return "\n".join(lines)


def draw_figure(analysis: Analysis, path: str, n_steps: int) -> None:
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    colours = {"true": "0.7", "background": "#4477aa", "analysis": "#b5762a"}
    states = (analysis.true, analysis.background, analysis.found)
    for (name, colour), state in zip(colours.items(), states, strict=True):
        style = {"color": colour, "linewidth": 4 if name == "true" else 1.2, "label": name}
        axes[0].plot(analysis.x, state, **style)
        axes[1].plot(analysis.x, forecast(state, 2 * n_steps, WINDOW / n_steps), **style)
    axes[0].set(title="initial state", xlabel="x", ylabel="u")
    axes[1].set(title=f"forecast at {2 * WINDOW}", xlabel="x")
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="4D-Var for Burgers' equation.")
    parser.add_argument("--output", default="burgers.png", help="where to write the figure")
    parser.add_argument("--cells", type=int, default=256)
    parser.add_argument("--steps", type=int, default=600, help="of the assimilation window")
    options = parser.parse_args(arguments)
    analysis = assimilate(options.cells, options.steps)
    print(report(analysis, options.steps))
    draw_figure(analysis, options.output, options.steps)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
