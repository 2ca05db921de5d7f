"""Throw a ball so that its third contact with the ground hits a target.

A ball leaves a height h with speed v at an angle, falls with g, and keeps a part e of its upward
speed at each contact: three events, each of which starts the next run. The distance of the last one
depends on the angle through the times of all events. With u = sqrt((v sin)² + 2 g h), the speed of
the first contact, that of contact n is at

    x = v cos (v sin + u + 2 u (e + e² + ... + e^(n-1))) / g,

so that every derivative is known. Newton's method finds the angle.

    python examples/bouncing_ball.py --output bouncing_ball.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import root_scalar

import ckad
from ckad.integrate import solve_ivp

G = 9.81  # m/s²
HEIGHT, SPEED = 1.5, 8.0  # m, m/s
N_CONTACTS, TARGET = 3, 14.0  # m


def flight(t, y):
    return [y[2], y[3], 0.0, -G]


def ground(t, y):
    return y[1]


ground.terminal, ground.direction = True, -1


def contact(angle, kept):
    """Where the ball touches the ground for the last time, m."""
    t, y = 0.0, [0.0, HEIGHT, SPEED * np.cos(angle), SPEED * np.sin(angle)]
    for _ in range(N_CONTACTS):
        sol = solve_ivp(flight, (t, t + 10.0), y, events=ground, rtol=1e-10, atol=1e-12)
        t, (x, _, along, down) = sol.t[-1], sol.y[:, -1]
        y = [x, 0.0, along, -kept * down]
    return x


class Throw(NamedTuple):
    angle: float  # radians
    distance: float  # m, of the last contact
    by_angle: float  # m / radian
    by_kept: float  # m
    history: list[float]  # distances from the target, m


def closed_form(angle: float, kept: float) -> tuple[float, float, float]:
    """The distance, and its derivatives by the angle and by what a contact keeps."""
    along, up = SPEED * np.cos(angle), SPEED * np.sin(angle)
    first = np.sqrt(up**2 + 2.0 * G * HEIGHT)
    powers = np.arange(1, N_CONTACTS)
    bounces = 1.0 + 2.0 * np.sum(kept**powers)
    time = (up + first * bounces) / G
    by_angle = -up * time + along * (along + up * along / first * bounces) / G
    by_kept = along * 2.0 * first * np.sum(powers * kept ** (powers - 1.0)) / G
    return along * time, by_angle, by_kept


def throw(kept: float = 0.8, guess: float = 1.0) -> Throw:
    compute = ckad.value_and_grad(contact, argnums=(0, 1))
    history: list[float] = []

    def off(angle):
        distance, (by_angle, _) = compute(angle, kept)
        history.append(float(distance - TARGET))
        return distance - TARGET, by_angle

    angle = float(root_scalar(off, x0=guess, fprime=True, method="newton").root)
    distance, (by_angle, by_kept) = compute(angle, kept)
    return Throw(angle, float(distance), float(by_angle), float(by_kept), history)


def report(found: Throw, kept: float) -> str:
    exact = closed_form(found.angle, kept)
    steps = ", ".join(f"{abs(x):.1e}" for x in found.history)
    lines = [f"angle {np.degrees(found.angle):.6f} degrees; off the target by {steps} m"]
    for name, value, known in zip(("x", "dx/dangle", "dx/dkept"), found[1:4], exact, strict=True):
        lines.append(f"{name:10s} {value:16.12f}, by closed form {known:16.12f}")
    return "\n".join(lines)


def draw(found: Throw, kept: float, path: str) -> None:
    figure = Figure(figsize=(7.0, 2.8), layout="constrained")
    axes = figure.subplots()
    y = np.array([0.0, HEIGHT, SPEED * np.cos(found.angle), SPEED * np.sin(found.angle)])
    for _ in range(N_CONTACTS + 1):
        sol = solve_ivp(flight, (0.0, 10.0), y, events=ground, rtol=1e-8, max_step=0.02)
        axes.plot(sol.y[0], sol.y[1], color="#2a5d8f")
        y = sol.y[:, -1] * [1.0, 0.0, 1.0, -kept]
    axes.plot(TARGET, 0.0, "v", color="#b5762a", markersize=10, clip_on=False)
    axes.set(xlabel="m", ylabel="m", ylim=(0.0, None), title="The third contact hits the target")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A ball that bounces onto a target.")
    parser.add_argument("--output", default="bouncing_ball.png", help="where to write the figure")
    parser.add_argument("--kept", type=float, default=0.8, help="of the speed, at a contact")
    options = parser.parse_args(arguments)
    found = throw(options.kept)
    print(report(found, options.kept))
    draw(found, options.kept, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
