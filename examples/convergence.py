"""The orders of all methods, measured: of the solution, and of its derivative.

A planet on an ellipse of eccentricity 1/2 about a sun at the origin, d²q/dt² = -q / |q|³, is back
at its start after 2 pi. What is left of the difference is the error of n equal steps, and falls as
n^-p for a method of order p. The derivative of the sum of the state by the start, taken back
through all steps, has the same order: it is known, as another energy E only changes the period, by
6 pi dE.
The implicit methods of Kvaerno, and Kennedy and Carpenter, solve their stages as exactly as their
tolerance asks; so it is their tolerance that falls, and the mean step with it. "BDF" chooses its
order, and has none.

    python examples/convergence.py --output convergence.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

import ckad
from ckad.integrate import solve_ivp

#: The order of each, and the fewest of its steps; for those by tolerance: that is n^-order.
METHODS = {
    "Euler": (1, 40_000),
    "Midpoint": (2, 800),
    "Heun": (2, 800),
    "Leapfrog": (2, 800),
    "RK4": (4, 200),
    "Yoshida4": (4, 400),
    "RK23": (3, 200),
    "RK45": (5, 100),
    "Tsit5": (5, 100),
    "DOP853": (8, 80),
    "Kvaerno3": (3, 50),
    "KenCarp4": (4, 20),
    "Kvaerno5": (5, 16),
    "Rodas5P": (5, 100),
}
FIXED = ("Euler", "Midpoint", "Heun", "Leapfrog", "RK4", "Yoshida4")
BY_TOLERANCE = ("Kvaerno3", "KenCarp4", "Kvaerno5")
PERIOD = 2.0 * np.pi
START = np.array([0.5, 0.0, 0.0, np.sqrt(3.0)])  # where the planet is nearest


class Convergence(NamedTuple):
    method: str
    order: int
    steps: np.ndarray  # int64[m]
    errors: np.ndarray  # float64[m], of the state
    of_derivative: np.ndarray  # float64[m], of that of the state's sum by the start


def motion(t, y):
    q, v = y[:2], y[2:]
    return np.concatenate([v, -q / np.sum(q**2) ** 1.5])


def known_derivative():
    """Of the sum of the state after one turn, by the state at the start."""
    q, v = START[:2], START[2:]
    energy = np.concatenate([q / np.sum(q**2) ** 1.5, v])
    return 1.0 - np.sum(motion(0.0, START)) * 3.0 * PERIOD * energy


def asked(method: str, order: int, n: int) -> dict[str, float]:
    """Options for about n steps, of equal length where the method can."""
    if method in FIXED:
        return {"n_steps": n}
    if method in BY_TOLERANCE:
        return {"rtol": n**-order, "atol": n**-order}
    h = PERIOD / n  # no error is too large, so that all steps have the first one's length
    return {"first_step": h, "max_step": h, "rtol": 1e6, "atol": 1e6}


def measure(method: str, doublings: int = 2) -> Convergence:
    order, fewest = METHODS[method]
    steps, found = [], []
    for n in fewest * 2.0 ** np.arange(doublings + 1):
        options = asked(method, order, int(n))

        def last(y0, options=options):
            y = solve_ivp(motion, (0.0, PERIOD), y0, method, **options).y[:, -1]
            return np.sum(y), y

        (_, y), slope = ckad.value_and_grad(last, has_aux=True)(START)
        found.append([np.linalg.norm(y - START), np.linalg.norm(slope - known_derivative())])
        steps.append(int(n))
        if method in BY_TOLERANCE:
            steps[-1] = len(solve_ivp(motion, (0.0, PERIOD), START, method, **options).t) - 1
    return Convergence(method, order, np.array(steps), *np.array(found).T)


def measured(steps, errors) -> float:
    """The slope of the logarithms, by least squares."""
    return float(-np.polyfit(np.log(steps), np.log(errors), 1)[0])


def report(studies: Sequence[Convergence]) -> str:
    lines = ["method    order  measured  of the derivative  steps     error"]
    for study in studies:
        by_state, by_slope = (measured(study.steps, x) for x in study[3:])
        lines.append(
            f"{study.method:9s} {study.order:5d} {by_state:9.2f} {by_slope:18.2f}"
            f" {study.steps[-1]:6d} {study.errors[-1]:9.1e}"
        )
    return "\n".join(lines)


def draw(studies: Sequence[Convergence], path: str) -> None:
    figure = Figure(figsize=(8.5, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, title, column in zip(panels, ("State", "Derivative"), (3, 4), strict=True):
        for k, study in enumerate(studies):
            style = {"color": f"C{k % 10}", "linestyle": "-" if k < 10 else "--"}
            axes.loglog(
                study.steps, study[column], marker="o", markersize=3, label=study.method, **style
            )
        axes.set(xlabel="steps", title=title)
    panels[0].set(ylabel="error after one turn")
    panels[1].legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The orders of all methods, measured.")
    parser.add_argument("--output", default="convergence.png", help="where to write the figure")
    parser.add_argument("--doublings", type=int, default=2, help="of the number of steps")
    options = parser.parse_args(arguments)
    studies = [measure(method, options.doublings) for method in METHODS]
    print(report(studies))
    draw(studies, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
