"""A conductivity from temperatures: implicit steps of heat in 2-D, each a multigrid solution.

du/dt = div(k grad u) + s on the unit square, u = 0 at its edge, by Crank and Nicolson. Each step
solves a system by conjugate gradients, preconditioned by one geometric V-cycle; its adjoint is the
same system once more, whatever the number of iterations. From the temperatures at the end the
logarithm of k, three numbers, is found by BFGS. With k = 1 and without a source the first mode
falls as exp(-2 pi² t), which is checked first.

    python examples/heat_multigrid.py --output heat_multigrid.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

import ckad

TRUE = np.array([0.4, -0.8, 0.6])
RTOL = 1e-10


def conductivity(control, n: int):
    """float64[n + 1, n + 1], at the corners of cells of n x n points."""
    x = np.linspace(0.0, 1.0, n + 1)
    modes = [np.ones((n + 1, n + 1)), np.outer(np.cos(np.pi * x), np.ones(n + 1))]
    modes.append(np.outer(np.ones(n + 1), np.cos(np.pi * x)))
    return np.exp(sum(c * mode for c, mode in zip(control, modes, strict=True)))


def faces(k):
    """k between the points of a grid: in x float64[n + 1, n], in y float64[n, n + 1]."""
    return 0.5 * (k[:, 1:] + k[:, :-1]), 0.5 * (k[1:] + k[:-1])


def diffused(u, k, h: float):
    """-div(k grad u), float64[n, n]."""
    kx, ky = k
    wide = np.pad(u, 1)
    flow_x = kx * (wide[1:, 1:-1] - wide[:-1, 1:-1])
    flow_y = ky * (wide[1:-1, 1:] - wide[1:-1, :-1])
    return (flow_x[:-1] - flow_x[1:] + flow_y[:, :-1] - flow_y[:, 1:]) / h**2


def coarser(k):
    """Faces of the grid of every second point: those beside each other in line, on an average."""
    kx, ky = k
    return 0.5 * (kx[::2] + kx[1::2])[:, 1::2], 0.5 * (ky[:, ::2] + ky[:, 1::2])[1::2]


def restricted(r):
    """Full weighting."""
    r = 0.25 * r[:-2:2] + 0.5 * r[1:-1:2] + 0.25 * r[2::2]
    return 0.25 * r[:, :-2:2] + 0.5 * r[:, 1:-1:2] + 0.25 * r[:, 2::2]


def prolonged(e):
    """Linear interpolation, four times the transpose of `restricted`."""
    m = 2 * e.shape[0] + 1
    rows = np.zeros((m, e.shape[1]))
    rows[1::2] = e
    rows[:-1:2] += 0.5 * e
    rows[2::2] += 0.5 * e
    found = np.zeros((m, m))
    found[:, 1::2] = rows
    found[:, :-1:2] += 0.5 * rows
    found[:, 2::2] += 0.5 * rows
    return found


def v_cycle(f, k, h: float, dt: float, sweeps: int = 2):
    """An approximate solution of u + dt (-div(k grad u)) = f, symmetric and linear in f."""
    kx, ky = k
    diagonal = 1.0 + dt * (kx[1:] + kx[:-1] + ky[:, 1:] + ky[:, :-1]) / h**2
    if f.shape[0] == 1:
        return f / diagonal
    u = 0.8 * f / diagonal
    for _ in range(sweeps - 1):
        u = u + 0.8 * (f - u - dt * diffused(u, k, h)) / diagonal
    r = f - u - dt * diffused(u, k, h)
    u = u + prolonged(v_cycle(restricted(r), coarser(k), 2 * h, dt))
    for _ in range(sweeps):
        u = u + 0.8 * (f - u - dt * diffused(u, k, h)) / diagonal
    return u


def heated(k, u, source, n_steps: int, dt: float):
    """The temperatures after steps of Crank and Nicolson."""
    n = u.shape[0]
    h, shape = 1.0 / (n + 1), (n * n, n * n)
    k = faces(k)
    A = LinearOperator(
        shape, lambda v: v + 0.5 * dt * diffused(v.reshape(n, n), k, h).ravel(), dtype=float
    )
    M = LinearOperator(
        shape, lambda v: v_cycle(v.reshape(n, n), k, h, 0.5 * dt).ravel(), dtype=float
    )
    for _ in range(n_steps):
        right = u - 0.5 * dt * diffused(u, k, h) + dt * source
        found, _info = cg(A, right.ravel(), x0=u.ravel(), rtol=RTOL, M=M)
        u = found.reshape(n, n)
    return u


class Fit(NamedTuple):
    control: np.ndarray
    misfits: list[float]
    seen: np.ndarray  # float64[n, n]


def fit(n: int = 31, n_steps: int = 20, dt: float = 2e-3, memory: str = "16 MiB") -> Fit:
    x = np.arange(1, n + 1) / (n + 1)
    source = 50.0 * np.exp(-40.0 * ((x[:, np.newaxis] - 0.4) ** 2 + (x - 0.6) ** 2))
    cold = np.zeros((n, n))
    seen = heated(conductivity(TRUE, n), cold, source, n_steps, dt)

    def misfit(control):
        u = heated(conductivity(control, n), cold, source, n_steps, dt)
        return 1e3 * np.sum((u - seen) ** 2)

    misfits: list[float] = []
    found = minimize(
        ckad.value_and_grad(misfit, memory=memory),
        np.zeros(3),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-6},
        callback=lambda intermediate_result: misfits.append(float(intermediate_result.fun)),
    )
    return Fit(found.x, misfits, seen)


def first_mode(n: int = 31, n_steps: int = 20, dt: float = 2e-3) -> tuple[float, float]:
    """What is left of the first mode, and exp(-2 pi² t)."""
    x = np.arange(1, n + 1) / (n + 1)
    mode = np.outer(np.sin(np.pi * x), np.sin(np.pi * x))
    run = ckad.jit(lambda k: heated(k, mode, np.zeros((n, n)), n_steps, dt))
    left = run(np.ones((n + 1, n + 1)))
    return float(np.sum(left * mode) / np.sum(mode**2)), float(np.exp(-2 * np.pi**2 * n_steps * dt))


def report(found: Fit, left: tuple[float, float]) -> str:
    return "\n".join(
        [
            f"first mode  {left[0]:.5f} left, exp(-2 pi² t) = {left[1]:.5f}",
            f"misfit      {found.misfits[0]:.3e} -> {found.misfits[-1]:.3e} in {len(found.misfits)}"
            " iterations",
            f"log k       {np.round(found.control, 6)}, that of the data {TRUE}",
        ]
    )


def draw(found: Fit, path: str) -> None:
    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for each, values, title in zip(
        axes, (found.seen, conductivity(found.control, 64)), ("temperature", "k found"), strict=True
    ):
        figure.colorbar(each.imshow(values, origin="lower", extent=(0, 1, 0, 1)), ax=each)
        each.set(title=title)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A conductivity from temperatures.")
    parser.add_argument("--output", default="heat_multigrid.png", help="where to write the figure")
    parser.add_argument("--points", type=int, default=31, help="along each axis, 2**levels - 1")
    parser.add_argument("--steps", type=int, default=20, help="in time")
    options = parser.parse_args(arguments)
    found = fit(options.points, options.steps)
    print(report(found, first_mode(options.points, options.steps)))
    draw(found, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
