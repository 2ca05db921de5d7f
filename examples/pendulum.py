"""Swing a pendulum up with as little torque as possible, or with little torque allowed.

    x'' = -sin x - b x' + u,    from rest below to rest above, minimising the integral of u² dt

with one torque u per step. It is known what an unbounded torque costs, given time: the best way
up is the way down reversed in time, u = 2 b x', which costs 4 b times the difference of potential
energy, so 8 b (M. I. Freidlin, A. D. Wentzell, "Random Perturbations of Dynamical Systems", 1984,
chapter 4: the quasi-potential). A torque below 1 cannot lift the pendulum at once: it swings.

    python examples/pendulum.py --output pendulum.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize

import ckad

FRICTION, TIME = 0.3, 20.0
KNOWN = 8.0 * FRICTION
UNBOUNDED = 2.0  # more than is ever used
ABOVE = np.array([np.pi, 0.0])


def motion(y, u):
    return np.array([y[1], u - np.sin(y[0]) - FRICTION * y[1]])


def swing(torques, substeps: int):
    """Angle and angular velocity after each torque, float64[n, 2]."""
    n = len(torques)
    dt = TIME / (n * substeps)
    y = np.zeros(2)
    states = np.zeros((n, 2))
    for i in range(n):
        for _ in range(substeps):
            k1 = motion(y, torques[i])
            k2 = motion(y + 0.5 * dt * k1, torques[i])
            k3 = motion(y + 0.5 * dt * k2, torques[i])
            k4 = motion(y + dt * k3, torques[i])
            y = y + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        states[i] = y
    return states


class Swing(NamedTuple):
    most: float  # the bound of the torque
    torques: np.ndarray  # float64[n]
    states: np.ndarray  # float64[n, 2]
    cost: float
    iterations: int


def push(most: float, n: int) -> np.ndarray:
    """Torques in step with small swings: a search that starts at rest sees no way up."""
    t = TIME * (np.arange(n) + 0.5) / n
    return min(0.5, most) * np.sin(t - TIME)


def swing_up(most: float, guess: np.ndarray, substeps: int = 4) -> Swing:
    n = len(guess)
    dt = TIME / n

    def off(torques):
        return swing(torques, substeps)[-1] - ABOVE

    found = minimize(
        lambda u: (dt * u @ u, 2.0 * dt * u),
        guess,
        jac=True,
        method="SLSQP",
        bounds=[(-most, most)] * n,
        constraints={"type": "eq", "fun": ckad.jit(off), "jac": ckad.jacobian(off)},
        options={"maxiter": 200, "ftol": 1e-9},
    )
    states = ckad.jit(lambda torques: swing(torques, substeps))(found.x)
    return Swing(most, found.x, states, float(found.fun), found.nit)


def report(swings: Sequence[Swing]) -> str:
    lines = []
    for found in swings:
        off = np.max(np.abs(found.states[-1] - ABOVE))
        share = np.mean(np.abs(found.torques) > 0.999 * found.most)
        lines.append(
            f"|u| < {found.most:4.2f}: cost {found.cost:.4f}, known without a bound {KNOWN:.4f}; "
            f"at the bound for {share:.0%} of the time; ends {off:.0e} from above; "
            f"{found.iterations} iterations"
        )
    free = swings[0]
    turning = FRICTION * (free.states[1:, 1] + free.states[:-1, 1])
    law = np.sqrt(np.mean((free.torques[1:] - turning) ** 2) / np.mean(turning**2))
    return "\n".join([*lines, f"without a bound u is 2 b x' to {law:.1%}"])


def draw(swings: Sequence[Swing], path: str) -> None:
    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    panels = figure.subplots(2, len(swings), sharex=True, sharey="row")
    for (above, below), found in zip(panels.T, swings, strict=True):
        edges = np.linspace(0.0, TIME, len(found.torques) + 1)
        above.plot(edges[1:], found.states[:, 0] / np.pi, color="#2a5d8f")
        above.set(title=f"|u| < {found.most}")
        below.stairs(found.torques, edges, color="#b5762a")
        below.set(xlabel="time")
    panels[0, 0].set(ylabel="angle / pi")
    panels[1, 0].set(ylabel="torque")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Swing a pendulum up.")
    parser.add_argument("--output", default="pendulum.png", help="where to write the figure")
    parser.add_argument("--torques", type=int, default=80, help="how many, one per step")
    parser.add_argument("--most", type=float, default=0.5, help="the bound of the torque")
    options = parser.parse_args(arguments)
    bounded = swing_up(options.most, push(options.most, options.torques))
    swings = [swing_up(UNBOUNDED, bounded.torques), bounded]
    print(report(swings))
    draw(swings, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
