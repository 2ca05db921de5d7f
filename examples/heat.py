"""Find a source of heat from the temperature at a few places: Crank-Nicolson steps, inverted.

A rod conducts heat, dT/dt = kappa d²T/dx² + q(x) s(t), its ends are kept at zero. Thermometers at
eight places record the temperature; where the heat comes from, q(x), is found from them. Each step
solves a tridiagonal system, whose adjoint is one more such solve. The problem is linear: the misfit
is a quadratic function of q, and conjugate gradients find its minimum from products with its
Hessian. It is ill posed too, so that a little smoothness is asked for (Tikhonov).

    python examples/heat.py --output heat.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.linalg import solve_banded
from scipy.sparse.linalg import LinearOperator, cg

import ckad

KAPPA, LENGTH, TIME = 1e-3, 1.0, 60.0  # m²/s, m, s
ERROR = 0.005  # K, of a thermometer
PLACES = np.linspace(0.1, 0.9, 8)  # m


class Source(NamedTuple):
    """What was found."""

    x: np.ndarray  # float64[n], m
    true: np.ndarray  # float64[n], K/s
    found: np.ndarray  # float64[n], K/s
    recorded: np.ndarray  # float64[n_steps, 8], K
    fitted: np.ndarray  # float64[n_steps, 8], K
    misfits: list[float]


def temperatures(q, at, n_steps):
    """What the thermometers show, float64[n_steps, 8]; ``at`` are their cells."""
    n = len(q)
    dt, dx = TIME / n_steps, LENGTH / (n + 1)
    r = 0.5 * KAPPA * dt / dx**2
    bands = np.zeros((3, n))
    bands[0, 1:] = -r
    bands[1] = 1.0 + 2.0 * r
    bands[2, :-1] = -r
    temperature = np.zeros(n)
    shown = np.zeros((n_steps, len(at)))
    for k in range(n_steps):
        heated = (1.0 - 2.0 * r) * temperature
        heated[1:] += r * temperature[:-1]
        heated[:-1] += r * temperature[1:]
        heated += dt * np.exp(-((k + 0.5) * dt) / 20.0) * q
        temperature = solve_banded((1, 1), bands, heated)
        shown[k] = temperature[at]
    return shown


def find(n: int = 199, n_steps: int = 600, smooth: float = 1e-3, seed: int = 3) -> Source:
    x = np.linspace(0.0, LENGTH, n + 2)[1:-1]
    true = np.exp(-(((x - 0.3) / 0.12) ** 2)) + 0.6 * np.exp(-(((x - 0.7) / 0.1) ** 2))
    at = np.round(PLACES / LENGTH * (n + 1)).astype(np.int64) - 1
    noise = ERROR * np.random.default_rng(seed).normal(size=(n_steps, len(at)))
    recorded = temperatures(true, at, n_steps) + noise

    def misfit(q):
        off = (temperatures(q, at, n_steps) - recorded) / ERROR
        bend = np.diff(q, 2) * (n + 1) ** 2
        return 0.5 * np.sum(off**2) + 0.5 * smooth * np.sum(bend**2) / n

    start = np.zeros(n)
    before, slope = ckad.value_and_grad(misfit, memory="1 MiB")(start)

    def product(direction):
        return ckad.hvp(misfit, (start,), (direction.ravel(),), memory="1 MiB")

    curvature = LinearOperator((n, n), product, dtype=np.float64)
    residuals: list[float] = []
    found, _ = cg(
        curvature,
        -slope,
        rtol=1e-6,
        maxiter=200,
        callback=lambda q: residuals.append(float(ckad.jit(misfit)(q))),
    )
    return Source(x, true, found, recorded, temperatures(found, at, n_steps), [before, *residuals])


def report(source: Source) -> str:
    spread = np.sqrt(np.mean((source.fitted - source.recorded) ** 2))
    off = np.linalg.norm(source.found - source.true) / np.linalg.norm(source.true)
    total, true = np.trapezoid(source.found, source.x), np.trapezoid(source.true, source.x)
    return "\n".join(
        [
            f"misfit     {source.misfits[0]:.0f} -> {source.misfits[-1]:.0f} in "
            f"{len(source.misfits)} iterations",
            f"records    {spread:.4f} K off (error of a thermometer {ERROR} K)",
            f"heat       {total:.4f} m K/s in all, true {true:.4f}; its places {off:.0%} off",
        ]
    )


def draw(source: Source, path: str) -> None:
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(source.x, source.true, color="0.7", linewidth=4, label="true")
    left.plot(source.x, source.found, color="#b5762a", label="found")
    left.plot(PLACES, np.zeros(len(PLACES)), "k^", label="thermometers")
    left.set(xlabel="m", ylabel="K/s", title="source")
    left.legend(frameon=False)
    times = np.linspace(0.0, TIME, len(source.recorded))
    right.plot(times, source.recorded, ",", color="0.5")
    right.plot(times, source.fitted, linewidth=1)
    right.set(xlabel="s", ylabel="K", title="recorded, and fitted")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Find a source of heat.")
    parser.add_argument("--output", default="heat.png", help="where to write the figure")
    parser.add_argument("--cells", type=int, default=199)
    parser.add_argument("--steps", type=int, default=600)
    options = parser.parse_args(arguments)
    source = find(options.cells, options.steps)
    print(report(source))
    draw(source, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
