"""The orders of all methods, measured: of the solution, and of its derivative.

A planet on an ellipse of eccentricity 1/2 about a sun at the origin, d²q/dt² = -q / |q|³, is back
at its start after 2 pi. What is left of the difference is the error of n equal steps, and falls as
n^-p for a method of order p. The energy at the end depends on the start as that at the start does:
its derivative, taken through all steps, converges to the known one with the same order.
"BDF" chooses its order, and has none.

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

#: The order of each, and the fewest of its steps.
METHODS = {
    "Euler": (1, 20_000),
    "Midpoint": (2, 800),
    "Heun": (2, 800),
    "Leapfrog": (2, 800),
    "RK4": (4, 200),
    "Yoshida4": (4, 400),
    "RK23": (3, 200),
    "RK45": (5, 100),
    "Tsit5": (5, 100),
    "DOP853": (8, 40),
    "Kvaerno3": (3, 200),
    "KenCarp4": (4, 100),
    "Kvaerno5": (5, 100),
    "Rodas5P": (5, 100),
}
FIXED = ("Euler", "Midpoint", "Heun", "Leapfrog", "RK4", "Yoshida4")
PERIOD = 2.0 * np.pi
START = np.array([0.5, 0.0, 0.0, np.sqrt(3.0)])  # where the planet is nearest


class Convergence(NamedTuple):
    method: str
    order: int
    steps: np.ndarray  # int64[m]
    errors: np.ndarray  # float64[m], of the state
    of_derivative: np.ndarray  # float64[m], of that of the energy by the start


def motion(t, y):
    q, v = y[:2], y[2:]
    return np.concatenate([v, -q / np.sum(q**2) ** 1.5])


def energy(y):
    return 0.5 * np.sum(y[2:] ** 2) - 1.0 / np.sqrt(np.sum(y[:2] ** 2))


def by_start(y):
    """The derivative of the energy."""
    return np.concatenate([y[:2] / np.sum(y[:2] ** 2) ** 1.5, y[2:]])


def end(y0, method: str, n: int):
    """The state after n steps of equal length."""
    if method in FIXED:
        options = {"n_steps": n}
    else:  # no error is too large, so that all steps have the first one's length
        h = PERIOD / n
        options = {"first_step": h, "max_step": h, "rtol": 1e6, "atol": 1e6}
    return solve_ivp(motion, (0.0, PERIOD), y0, method, **options).y[:, -1]


def measure(method: str, doublings: int = 3) -> Convergence:
    order, fewest = METHODS[method]
    steps = fewest * 2 ** np.arange(doublings + 1)
    found = []
    for n in steps:

        def last(y0, n=int(n)):
            y = end(y0, method, n)
            return energy(y), y

        (_, y), slope = ckad.value_and_grad(last, has_aux=True)(START)
        found.append([np.linalg.norm(y - START), np.linalg.norm(slope - by_start(START))])
    return Convergence(method, order, steps, *np.array(found).T)


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
            axes.loglog(study.steps, study[column], marker="o", markersize=3, label=study.method, **style)
        axes.set(xlabel="steps", title=title)
    panels[0].set(ylabel="error after one turn")
    panels[1].legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The orders of all methods, measured.")
    parser.add_argument("--output", default="convergence.png", help="where to write the figure")
    parser.add_argument("--doublings", type=int, default=3, help="of the number of steps")
    options = parser.parse_args(arguments)
    studies = [measure(method, options.doublings) for method in METHODS]
    print(report(studies))
    draw(studies, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
