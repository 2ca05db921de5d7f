"""Where was the water lifted? The first surface of a tsunami from what gauges saw of its waves.

The shallow-water equations of a basin with walls, at rest of depth H,

    du/dt = -g dh/dx,    dv/dt = -g dh/dy,    dh/dt = -d((H + h) u)/dx - d((H + h) v)/dy

on a staggered grid, velocities before surface in each step. A lifted patch runs out as waves;
gauges record the surface with an error. The patch is found from the records by L-BFGS, with the
gradient taken back through all steps, and a small weight on what is rough. What is recovered is
compared with the patch itself, and the program with a known solution: a standing wave of length L
in a basin has the period 2 L / sqrt(g H).

    python examples/shallow_water.py --output shallow_water.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize

import ckad

GRAVITY, DEPTH = 9.81, 4000.0  # m/s², m
SIZE = 400e3  # m, of the basin
SPEED = np.sqrt(GRAVITY * DEPTH)
ERROR = 0.02  # m, of a gauge
SMOOTH = 0.3  # weight of the differences of neighbours


class Survey(NamedTuple):
    true: np.ndarray  # float64[n, n], m
    rows: np.ndarray  # int64[n_gauges]
    columns: np.ndarray
    records: np.ndarray  # float64[n_steps, n_gauges], m


class Inversion(NamedTuple):
    surface: np.ndarray  # float64[n, n], m
    fitted: np.ndarray  # float64[n_steps, n_gauges], m
    misfits: list[float]


def waves(surface, n_steps: int, rows, columns):
    """The surface at the gauges after each step, float64[n_steps, n_gauges]."""
    n = len(surface)
    dx = SIZE / n
    dt = 0.5 * dx / SPEED
    # Velocities on the faces of the cells; those of the walls stay zero.
    u, v = np.zeros((n + 1, n)), np.zeros((n, n + 1))
    h = surface
    records = np.zeros((n_steps, len(rows)))
    for i in range(n_steps):
        u[1:-1] -= dt / dx * GRAVITY * (h[1:] - h[:-1])
        v[:, 1:-1] -= dt / dx * GRAVITY * (h[:, 1:] - h[:, :-1])
        depth = DEPTH + h
        along = np.zeros((n + 1, n))
        along[1:-1] = u[1:-1] * 0.5 * (depth[1:] + depth[:-1])
        across = np.zeros((n, n + 1))
        across[:, 1:-1] = v[:, 1:-1] * 0.5 * (depth[:, 1:] + depth[:, :-1])
        h = h - dt / dx * (along[1:] - along[:-1] + across[:, 1:] - across[:, :-1])
        records[i] = h[rows, columns]
    return records


def lifted(n: int) -> np.ndarray:
    """An oblong patch, lifted by two metres, sunk beside."""
    x, y = np.meshgrid(*2 * [(np.arange(n) + 0.5) / n], indexing="ij")
    along, across = 0.8 * (x - 0.4) + 0.6 * (y - 0.55), -0.6 * (x - 0.4) + 0.8 * (y - 0.55)
    return 2.0 * np.exp(-((along / 0.14) ** 2) - (across / 0.07) ** 2) * (1.0 - 8.0 * across)


def survey(n: int = 40, n_steps: int = 160, n_gauges: int = 24, seed: int = 5) -> Survey:
    generator = np.random.default_rng(seed)
    rows, columns = generator.integers(1, n - 1, size=(2, n_gauges))
    true = lifted(n)
    records = ckad.jit(lambda h: waves(h, n_steps, rows, columns))(true)
    return Survey(true, rows, columns, records + ERROR * generator.normal(size=records.shape))


def invert(seen: Survey, n_iterations: int = 100) -> Inversion:
    n_steps = len(seen.records)

    def misfit(surface):
        off = waves(surface, n_steps, seen.rows, seen.columns) - seen.records
        rough = np.sum((surface[1:] - surface[:-1]) ** 2)
        rough = rough + np.sum((surface[:, 1:] - surface[:, :-1]) ** 2)
        return np.sum(off**2) / ERROR**2 + SMOOTH / ERROR * rough

    compute = ckad.value_and_grad(misfit)
    shape = seen.true.shape

    def flat(control):
        value, gradient = compute(control.reshape(shape))
        return value, gradient.ravel()

    misfits = [float(compute(np.zeros(shape))[0])]
    found = minimize(
        flat,
        np.zeros(seen.true.size),
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: misfits.append(float(intermediate_result.fun)),
        options={"maxiter": n_iterations, "maxcor": 20},
    )
    surface = found.x.reshape(shape)
    fitted = ckad.jit(lambda h: waves(h, n_steps, seen.rows, seen.columns))(surface)
    return Inversion(surface, fitted, misfits)


def standing_wave(n: int = 40) -> tuple[float, float]:
    """The surface at a wall after one period of the lowest standing wave, and what is known."""
    height = 1e-3
    wave = height * np.cos(np.pi * (np.arange(n) + 0.5) / n)[:, np.newaxis] * np.ones(n)
    n_steps = 4 * n  # a period is 2 SIZE / SPEED, a step 0.5 SIZE / (n SPEED)
    wall = np.array([0])
    records = ckad.jit(lambda h: waves(h, n_steps, wall, wall))(wave)
    return float(records[-1, 0] / height), float(wave[0, 0] / height)


def report(found: Inversion, seen: Survey) -> str:
    error = np.linalg.norm(found.surface - seen.true) / np.linalg.norm(seen.true)
    spread = np.sqrt(np.mean((found.fitted - seen.records) ** 2))
    volume, known = (np.sum(x) * (SIZE / len(x)) ** 2 / 1e9 for x in (found.surface, seen.true))
    ended, wave = standing_wave(len(seen.true))
    return "\n".join(
        [
            f"misfit   {found.misfits[0]:.0f} -> {found.misfits[-1]:.0f} "
            f"in {len(found.misfits) - 1} iterations, {seen.records.size} records",
            f"records  {spread:.4f} m off (their error: {ERROR} m)",
            f"surface  {error:.1%} off; highest {found.surface.max():.2f} m, "
            f"true {seen.true.max():.2f} m",
            f"volume   {volume:.2f} km³, true {known:.2f} km³",
            f"standing wave after its period {ended:.5f}, known {wave:.5f}",
        ]
    )


def draw(found: Inversion, seen: Survey, path: str) -> None:
    figure = Figure(figsize=(9.0, 2.9), layout="constrained")
    true, recovered, record = figure.subplots(1, 3, width_ratios=(1, 1, 1.3))
    extent = (0.0, SIZE / 1e3, 0.0, SIZE / 1e3)
    look = {"origin": "lower", "cmap": "RdBu_r", "vmin": -2.0, "vmax": 2.0, "extent": extent}
    for axes, title, surface in (
        (true, "true", seen.true),
        (recovered, "recovered", found.surface),
    ):
        axes.imshow(surface, **look)
        axes.set(title=title, xlabel="km")
    places = (np.stack([seen.columns, seen.rows]) + 0.5) * SIZE / 1e3 / len(seen.true)
    true.plot(*places, "k^", markersize=3)
    minutes = np.arange(1, len(seen.records) + 1) * 0.5 * SIZE / len(seen.true) / SPEED / 60.0
    for k in range(3):
        record.plot(minutes, seen.records[:, k], ".", color=f"C{k}", markersize=2)
        record.plot(minutes, found.fitted[:, k], color=f"C{k}")
    record.set(xlabel="minutes", title="Three gauges, m")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The first surface of a tsunami.")
    parser.add_argument("--output", default="shallow_water.png", help="where to write the figure")
    parser.add_argument("--cells", type=int, default=40, help="of one side of the basin")
    parser.add_argument("--iterations", type=int, default=100)
    options = parser.parse_args(arguments)
    seen = survey(options.cells)
    found = invert(seen, options.iterations)
    print(report(found, seen))
    draw(found, seen, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
