"""The period of van der Pol's oscillator and its derivative, by shooting.

x'' = mu (1 - x²) x' - x has one limit cycle. Its period T and its amplitude a are the root of
x(T) = a, x'(T) = 0 for a start at x = a, x' = 0, which Newton's method finds through a method of
Runge and Kutta; dT/dmu follows from one linear system with two unknowns, at whatever cost the root
was found. Published: the frequency 2pi/T = 1 - mu²/16 + 17 mu⁴/3072 + 35 mu⁶/884736 - ... for small
mu (Andersen & Geer 1982).

    python examples/van_der_pol.py --output van_der_pol.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

import ckad

#: Of the frequency in powers of mu².
SERIES = np.array([1.0, -1.0 / 16.0, 17.0 / 3072.0, 35.0 / 884736.0])
SMALL = 0.2


def period(mu, n_steps: int = 400):
    """Time for one turn on the limit cycle."""

    def oscillator(t, y):
        x, v = y
        return [v, mu * (1.0 - x**2) * v - x]

    def after_one_turn(unknowns):
        turn, amplitude = unknowns
        start = np.array([amplitude, 0.0])
        end = ckad.integrate.solve_ivp(oscillator, (0.0, turn), start, "RK4", n_steps=n_steps)
        return end.y[:, -1] - start

    # from the circle of mu = 0, whose amplitude is 2
    found = ckad.optimize.root(after_one_turn, [2.0 * np.pi * (1.0 + mu**2 / 16.0), 2.0])
    return found.x[0]


class Periods(NamedTuple):
    mu: np.ndarray
    period: np.ndarray
    slope: np.ndarray  # dT/dmu


def periods(mu: Sequence[float], n_steps: int = 400) -> Periods:
    compute = ckad.value_and_grad(lambda mu: period(mu, n_steps))
    found = np.array([compute(float(x)) for x in mu])
    return Periods(np.asarray(mu), found[:, 0], found[:, 1])


def by_series(mu: float) -> tuple[float, float]:
    """The period and its derivative for small mu."""
    powers = 2 * np.arange(len(SERIES))
    frequency = float(SERIES @ mu**powers)
    slope = float((powers[1:] * SERIES[1:]) @ mu ** (powers[1:] - 1.0))
    return 2.0 * np.pi / frequency, -2.0 * np.pi * slope / frequency**2


def report(found: Periods) -> str:
    lines = ["  mu  period        dT/dmu"]
    lines += [f"{mu:4.1f}  {turn:.9f}  {slope:.9f}" for mu, turn, slope in zip(*found, strict=True)]
    turn, slope = by_series(SMALL)
    return "\n".join([*lines, f"{SMALL:4.1f}  {turn:.9f}  {slope:.9f}  by the published series"])


def draw(found: Periods, path: str) -> None:
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(found.mu, found.period, "o", color="#b5762a", markersize=4)
    for mu, turn, slope in zip(*found, strict=True):
        ends = np.array([mu - 0.1, mu + 0.1])
        axes.plot(ends, turn + slope * (ends - mu), color="0.35", linewidth=1.0)
    axes.set(xlabel="mu", ylabel="period", title="Van der Pol: the period and its slope")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The period of van der Pol's oscillator.")
    parser.add_argument("--output", default="van_der_pol.png", help="where to write the figure")
    parser.add_argument("--steps", type=int, default=400, help="steps of one turn")
    options = parser.parse_args(arguments)
    found = periods([SMALL, 0.5, 1.0, 1.5, 2.0], options.steps)
    print(report(found))
    draw(found, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
