"""Learn a vector field: a small network whose trajectories follow a spiral.

dy/dt = y³ A, with A = [[-0.1, 2], [-2, -0.1]] and the cube of each element, is the test problem of
R. T. Q. Chen et al., "Neural Ordinary Differential Equations" (2018). A network

    dy/dt = tanh(y³ W1 + b1) W2 + b2

is fitted to points on one trajectory by L-BFGS. Each point starts a short run of the fourth-order
Runge-Kutta method, all of them side by side, which has to meet the points that follow. Then the
whole spiral is run again from its first point alone, and compared with the known one.

    python examples/neural_ode.py --output neural_ode.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import ckad

MATRIX = np.array([[-0.1, 2.0], [-2.0, -0.1]])
START = np.array([2.0, 0.0])
TIME = 25.0


class Learned(NamedTuple):
    weights: np.ndarray
    misfits: list[float]
    seen: np.ndarray  # float64[n_seen, 2]
    spiral: np.ndarray  # float64[n_seen, 2], from START alone


def spiral(n_seen: int) -> np.ndarray:
    """The known trajectory at equal intervals."""
    times = np.linspace(0.0, TIME, n_seen)
    options = {"t_eval": times, "rtol": 1e-10, "atol": 1e-12}
    return solve_ivp(lambda t, y: y**3 @ MATRIX, (0.0, TIME), START, **options).y.T


def first_weights(hidden: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.concatenate([0.5 * generator.normal(size=4 * hidden), np.zeros(hidden + 2)])


def follow(weights, y, n_seen: int, n_points: int, substeps: int):
    """The next points of each row of ``y``, float64[n_points, rows, 2]."""
    hidden = (len(weights) - 2) // 5
    first = weights[: 2 * hidden].reshape(2, hidden)
    second = weights[2 * hidden : 4 * hidden].reshape(hidden, 2)
    bias, drift = weights[4 * hidden : 5 * hidden], weights[5 * hidden :]
    dt = TIME / (n_seen - 1) / substeps

    def field(y):
        return np.tanh(y**3 @ first + bias) @ second + drift

    points = np.zeros((n_points, *y.shape))
    for i in range(n_points):
        for _ in range(substeps):
            k1 = field(y)
            k2 = field(y + 0.5 * dt * k1)
            k3 = field(y + 0.5 * dt * k2)
            k4 = field(y + dt * k3)
            y = y + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        points[i] = y
    return points


def learn(
    n_seen: int = 251,
    ahead: int = 10,
    hidden: int = 16,
    n_iterations: int = 600,
    substeps: int = 1,
    seed: int = 0,
) -> Learned:
    seen = spiral(n_seen)
    starts = n_seen - ahead
    targets = np.stack([seen[k : k + starts] for k in range(1, ahead + 1)])

    def misfit(weights):
        return np.mean((follow(weights, seen[:starts], n_seen, ahead, substeps) - targets) ** 2)

    misfits: list[float] = []
    found = minimize(
        ckad.value_and_grad(misfit),
        first_weights(hidden, seed),
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: misfits.append(float(intermediate_result.fun)),
        options={"maxiter": n_iterations, "maxcor": 30, "ftol": 0.0, "gtol": 0.0},
    )
    later = follow(found.x, START[np.newaxis], n_seen, n_seen - 1, substeps)[:, 0]
    return Learned(found.x, misfits, seen, np.concatenate([START[np.newaxis], later]))


def off(learned: Learned) -> float:
    """Of the spiral, root mean square, relative to its size."""
    square = np.mean((learned.spiral - learned.seen) ** 2) / np.mean(learned.seen**2)
    return float(np.sqrt(square))


def report(learned: Learned) -> str:
    return "\n".join(
        [
            f"{len(learned.weights)} weights, {len(learned.misfits)} iterations",
            f"misfit {learned.misfits[0]:.1e} -> {learned.misfits[-1]:.1e} (mean square)",
            f"the spiral from its first point alone is {off(learned):.2%} of its size off",
        ]
    )


def draw(learned: Learned, path: str) -> None:
    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(*learned.seen.T, ".", color="#b5762a", markersize=4, label="known")
    left.plot(*learned.spiral.T, color="#2a5d8f", label="learned")
    left.set(aspect="equal", title="The spiral")
    left.legend(frameon=False)
    right.semilogy(learned.misfits, color="0.35")
    right.set(xlabel="iteration", title="Misfit")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn the vector field of a spiral.")
    parser.add_argument("--output", default="neural_ode.png", help="where to write the figure")
    parser.add_argument("--hidden", type=int, default=16, help="units of the network")
    parser.add_argument("--iterations", type=int, default=600)
    options = parser.parse_args(arguments)
    learned = learn(hidden=options.hidden, n_iterations=options.iterations)
    print(report(learned))
    draw(learned, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
