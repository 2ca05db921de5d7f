"""Which rates make this pattern? Fit the Gray-Scott reaction to pictures of it.

U + 2 V -> 3 V, V -> P in a layer: du/dt = Du lap(u) - u v² + F (1 - u), and
dv/dt = Dv lap(v) + u v² - (F + k) v. From noisy pictures of v, taken while spots split, the feed F
and the kill rate k are found by least squares: the Jacobian of all pixels has two columns, and
forward mode gives both at once.

    python examples/gray_scott.py --output gray_scott.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import least_squares

import ckad

# Spots that split: J. E. Pearson, Science 261 (1993) 189, in the units of Gray-Scott simulators.
TRUE = np.array([0.0367, 0.0649])  # F, k
GUESS = np.array([0.0350, 0.0630])
DU, DV, DT = 0.16, 0.08, 1.0
ERROR = 0.01  # of a pixel


class Fit(NamedTuple):
    """What was found, and the pictures."""

    rates: np.ndarray  # float64[2]: F, k
    errors: np.ndarray  # float64[2], standard
    seen: np.ndarray  # float64[n_pictures, n, n]
    fitted: np.ndarray


def start(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two squares of V in a layer of U."""
    u, v = np.ones((n, n)), np.zeros((n, n))
    for row, column in ((n // 3, n // 3), (n // 2, 2 * n // 3)):
        square = np.s_[row - 3 : row + 3, column - 4 : column + 4]
        u[square], v[square] = 0.5, 0.25
    return u, v


def laplacian(a):
    return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4.0 * a


def pictures(rates, u, v, n_steps, n_pictures):
    """v at equal intervals, float64[n_pictures, n, n]."""
    feed, kill = rates[0], rates[1]
    taken = np.zeros((n_pictures, *v.shape))
    for i in range(n_pictures):
        for _ in range(n_steps // n_pictures):
            reaction = u * v * v
            u, v = (
                u + DT * (DU * laplacian(u) - reaction + feed * (1.0 - u)),
                v + DT * (DV * laplacian(v) + reaction - (feed + kill) * v),
            )
        taken[i] = v
    return taken


def fit(n: int = 64, n_steps: int = 2_000, n_pictures: int = 4, seed: int = 7) -> Fit:
    u, v = start(n)
    seen = pictures(TRUE, u, v, n_steps, n_pictures)
    seen = seen + ERROR * np.random.default_rng(seed).normal(size=seen.shape)

    def off(relative):
        return ((pictures(relative * GUESS, u, v, n_steps, n_pictures) - seen) / ERROR).ravel()

    best = least_squares(ckad.jit(off), np.ones(2), jac=ckad.jacfwd(off), method="lm")
    rates = best.x * GUESS
    covariance = np.linalg.inv(best.jac.T @ best.jac) * np.outer(GUESS, GUESS)
    return Fit(
        rates, np.sqrt(np.diag(covariance)), seen, pictures(rates, u, v, n_steps, n_pictures)
    )


def report(found: Fit) -> str:
    spread = np.sqrt(np.mean((found.fitted - found.seen) ** 2))
    names = {"F": 0, "k": 1}
    lines = [
        f"{name}  {found.rates[i]:.6f} +- {found.errors[i]:.6f}, true {TRUE[i]}"
        for name, i in names.items()
    ]
    return "\n".join([*lines, f"pictures {spread:.4f} off (error of a pixel {ERROR})"])


def draw(found: Fit, path: str) -> None:
    figure = Figure(figsize=(2.4 * len(found.seen), 4.6), layout="constrained")
    axes = figure.subplots(2, len(found.seen))
    for i, (seen, fitted) in enumerate(zip(found.seen, found.fitted, strict=True)):
        for row, (title, picture) in enumerate({"seen": seen, "fitted": fitted}.items()):
            axes[row, i].imshow(picture, vmin=0.0, vmax=0.4, cmap="magma")
            axes[row, i].set(xticks=[], yticks=[], title=title)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Fit the rates of a reaction to its pattern.")
    parser.add_argument("--output", default="gray_scott.png", help="where to write the figure")
    parser.add_argument("--cells", type=int, default=64)
    parser.add_argument("--steps", type=int, default=2_000)
    options = parser.parse_args(arguments)
    found = fit(options.cells, options.steps)
    print(report(found))
    draw(found, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
