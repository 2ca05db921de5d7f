"""How high can a rocket rise? Goddard's problem, against its published optimum.

A rocket of height h, speed v and mass m burns 40 % of its mass with a thrust T of at most 3.5:

    dh/dt = v,    dv/dt = (T - 310 v² exp(-500 (h - 1))) / m - 1 / h²,    dm/dt = -2 T

in units of the earth's radius, and of the mass and the weight at the start. The thrust in each of n
equal intervals and the time of flight are found by SLSQP, with the gradient taken back through all
steps of the fourth-order Runge-Kutta method: full thrust first, then less, so that little is lost
to the drag of dense air, then none. Published: the largest height is 1.01283 (E. D. Dolan,
J. J. More, T. S. Munson, "Benchmarking optimization software with COPS 3.0", ANL/MCS-TM-273, 2004).

    python examples/rocket.py --output rocket.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize

import ckad

PUBLISHED = 1.01283
MOST, EXHAUST, FUEL = 3.5, 0.5, 0.4  # thrust, speed of the exhaust, mass
DRAG, DECAY = 310.0, 500.0
FLIGHT = 0.2  # the unit of the time of flight


def motion(y, thrust):
    h, v, m = y
    drag = DRAG * v * np.abs(v) * np.exp(-DECAY * (h - 1.0))
    return np.array([v, (thrust - drag) / m - 1.0 / h**2, -thrust / EXHAUST])


def path(control, substeps: int):
    """Height, speed and mass after each interval, float64[n, 3]."""
    n = len(control) - 1
    dt = FLIGHT * control[n] / (n * substeps)
    y = np.array([1.0, 0.0, 1.0])
    states = np.zeros((n, 3))
    for i in range(n):
        thrust = MOST * control[i]
        for _ in range(substeps):
            k1 = motion(y, thrust)
            k2 = motion(y + 0.5 * dt * k1, thrust)
            k3 = motion(y + 0.5 * dt * k2, thrust)
            k4 = motion(y + dt * k3, thrust)
            y = y + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        states[i] = y
    return states


def fuel_left(control):
    n = len(control) - 1
    return FUEL - MOST * np.sum(control[:n]) / n * FLIGHT * control[n] / EXHAUST


class Ascent(NamedTuple):
    height: float
    time: float
    thrust: np.ndarray  # float64[n]
    states: np.ndarray  # float64[n, 3]: height, speed, mass
    iterations: int


def climb(n: int = 100, substeps: int = 4) -> Ascent:
    def height(control):
        return -1e3 * (path(control, substeps)[-1, 0] - 1.0)

    guess = np.append(np.full(n, FUEL * EXHAUST / (FLIGHT * MOST)), 1.0)
    found = minimize(
        ckad.value_and_grad(height),
        guess,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n + [(0.5, 2.0)],
        constraints={"type": "ineq", "fun": fuel_left, "jac": ckad.grad(fuel_left)},
        options={"maxiter": 500, "ftol": 1e-9},
    )
    states = ckad.jit(lambda control: path(control, substeps))(found.x)
    time = FLIGHT * found.x[-1]
    return Ascent(float(states[-1, 0]), float(time), MOST * found.x[:-1], states, found.nit)


def report(ascent: Ascent) -> str:
    share = np.mean(ascent.thrust > 0.999 * MOST), np.mean(ascent.thrust < 1e-3 * MOST)
    return "\n".join(
        [
            f"height {ascent.height:.6f} after {ascent.iterations} iterations, "
            f"published {PUBLISHED} ({abs(ascent.height - PUBLISHED):.1e} off)",
            f"time   {ascent.time:.4f}, mass left {ascent.states[-1, 2]:.6f}",
            f"thrust full for {share[0]:.0%} of the flight, off for {share[1]:.0%}",
        ]
    )


def draw(ascent: Ascent, file: str) -> None:
    figure = Figure(figsize=(8.5, 2.8), layout="constrained")
    n = len(ascent.thrust)
    edges = np.linspace(0.0, ascent.time, n + 1)
    left, middle, right = figure.subplots(1, 3)
    left.stairs(ascent.thrust, edges, color="#b5762a")
    left.set(title="Thrust", xlabel="time")
    middle.plot(edges[1:], ascent.states[:, 0], color="#2a5d8f")
    middle.axhline(PUBLISHED, color="0.6", linestyle="--", label="published optimum")
    middle.set(title="Height", xlabel="time")
    middle.legend(frameon=False)
    right.plot(edges[1:], ascent.states[:, 1], color="#2a5d8f")
    right.set(title="Speed", xlabel="time")
    figure.savefig(file, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Goddard's rocket.")
    parser.add_argument("--output", default="rocket.png", help="where to write the figure")
    parser.add_argument("--intervals", type=int, default=100, help="of the thrust")
    options = parser.parse_args(arguments)
    ascent = climb(options.intervals)
    print(report(ascent))
    draw(ascent, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
