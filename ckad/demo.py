"""The program behind ``ckad demo``: how fast does the soil creep, place by place?

Hillslopes lose their edges by the slow creep of soil, dz/dt = div(kappa grad z). Real terrain (the
Jacksboro fault in Tennessee, shipped with matplotlib) is aged by five million years with a
diffusivity kappa that varies from place to place, and surveyed with an error of a metre. Then kappa
is forgotten and recovered from the two surfaces by L-BFGS-B, with the exact gradient of the misfit
taken back through a thousand steps whose states, 1.1 GB of them, never exist at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.cbook import get_sample_data
from matplotlib.colors import LightSource, LogNorm
from matplotlib.figure import Figure
from scipy.optimize import minimize

import ckad

METRES_PER_DEGREE = np.pi / 180 * 6_371_000  # of latitude
YEARS_PER_STEP = 5_000.0
NODE_SPACING = 16  # cells between two unknown values of log(kappa)
FIRST_GUESS = 0.01  # m²/year
SEARCHED = (0.001, 0.05)  # m²/year; the explicit step is stable up to 0.33
SURVEY_ERROR = 1.0  # m, standard deviation
STEEP = 0.05  # slope below which creep moves too little to tell its speed


class Settings(NamedTuple):
    """What to run: which part of the map, how long, within which memory."""

    rows: slice = slice(None)
    columns: slice = slice(None)
    n_steps: int = 1_000
    iterations: int = 15
    memory: int | str = "64 MiB"


# The valley on the fault, within seconds.
SMALL = Settings(rows=slice(120, 216), columns=slice(160, 272), n_steps=60, iterations=8)


class Terrain(NamedTuple):
    """Elevations in m on a regular grid, and its cells' size and position in m."""

    elevation: np.ndarray  # float64[ny, nx], first row northernmost
    north: np.ndarray  # float64[ny], distance south of the map's corner
    east: np.ndarray  # float64[nx], distance east of it
    dy: float
    dx: float


class Problem(NamedTuple):
    """The two surfaces, and the diffusivity that leads from one to the other."""

    terrain: Terrain
    later: np.ndarray  # float64[ny, nx], m, with the survey's error
    diffusivity: np.ndarray  # float64[ny, nx], m²/year, to be recovered
    n_steps: int


class Recovery(NamedTuple):
    """What the demo found."""

    diffusivity: np.ndarray  # float64[ny, nx], m²/year
    misfits: list[float]  # m, root mean square, at the start and after each iteration
    mean_error: float  # mean of |recovered / true - 1|
    steep_error: float  # the same where slopes exceed STEEP


def load_terrain(rows: slice, columns: slice) -> Terrain:
    with np.load(get_sample_data("jacksboro_fault_dem.npz", asfileobj=False)) as data:
        elevation = data["elevation"].astype(np.float64)
        latitude = np.radians(float(data["ymin"] + data["ymax"]) / 2)
        dy = float(data["dy"]) * METRES_PER_DEGREE
        dx = float(data["dx"]) * METRES_PER_DEGREE * np.cos(latitude)
    north, east = (np.arange(n) * d for n, d in zip(elevation.shape, (dy, dx), strict=True))
    return Terrain(elevation[rows, columns], north[rows], east[columns], dy, dx)


def true_diffusivity(terrain: Terrain) -> np.ndarray:
    """In m²/year: hard rock south-west of the fault, soft rock north-east, and a lens in each."""
    y, x = terrain.north[:, np.newaxis] / 1e3, terrain.east / 1e3
    from_fault = 0.861 * (x - 9.7) - 0.508 * (y - 2.8)
    soft_lens = np.exp(-(((x - 8.0) / 3.0) ** 2) - ((y - 21.0) / 4.0) ** 2)
    hard_lens = np.exp(-(((x - 24.0) / 3.5) ** 2) - ((y - 11.0) / 2.5) ** 2)
    return 0.01 * np.exp(0.6 * np.tanh(from_fault / 1.5) + 0.9 * soft_lens - 0.9 * hard_lens)


def age(terrain: Terrain, diffusivity: Any, n_steps: int) -> Any:
    """The surface ``n_steps`` later; elevations on the map's rim stay as they are."""
    across = YEARS_PER_STEP / terrain.dx**2 * (diffusivity[1:-1, 1:] + diffusivity[1:-1, :-1]) / 2
    along = YEARS_PER_STEP / terrain.dy**2 * (diffusivity[1:, 1:-1] + diffusivity[:-1, 1:-1]) / 2
    z = terrain.elevation.copy()
    for _ in range(n_steps):
        flux_x = across * (z[1:-1, 1:] - z[1:-1, :-1])
        flux_y = along * (z[1:, 1:-1] - z[:-1, 1:-1])
        z[1:-1, 1:-1] += flux_x[:, 1:] - flux_x[:, :-1] + flux_y[1:] - flux_y[:-1]
    return z


def pose(settings: Settings) -> Problem:
    terrain = load_terrain(settings.rows, settings.columns)
    diffusivity = true_diffusivity(terrain)
    aged = ckad.jit(lambda kappa: age(terrain, kappa, settings.n_steps))(diffusivity)
    error = np.random.default_rng(seed=0).normal(0.0, SURVEY_ERROR, aged.shape)
    return Problem(terrain, aged + error, diffusivity, settings.n_steps)


def interpolation(n_cells: int) -> np.ndarray:
    """Weights float64[n_cells, n_nodes] of linear interpolation from the nodes to the cells."""
    n_nodes = -(-(n_cells - 1) // NODE_SPACING) + 1
    distance = np.arange(n_cells)[:, np.newaxis] / NODE_SPACING - np.arange(n_nodes)
    return np.maximum(0.0, 1.0 - np.abs(distance))


def inversion(problem: Problem) -> tuple[Callable[..., Any], Callable[..., Any], tuple[int, int]]:
    """The diffusivity and the misfit as functions of the nodes' log(kappa), and how many nodes."""
    to_rows, to_columns = (interpolation(n) for n in problem.later.shape)
    shape = to_rows.shape[1], to_columns.shape[1]

    def diffusivity(nodes: Any) -> Any:
        return np.exp(to_rows @ nodes.reshape(shape) @ to_columns.T)

    def misfit(nodes: Any) -> Any:
        surface = age(problem.terrain, diffusivity(nodes), problem.n_steps)
        return np.mean((surface - problem.later) ** 2)

    return diffusivity, misfit, shape


def recover(problem: Problem, settings: Settings, progress: bool) -> Recovery:
    """Search for the diffusivity by L-BFGS-B, printing the plan and every iteration."""
    diffusivity, misfit, shape = inversion(problem)
    guess = np.full(shape[0] * shape[1], np.log(FIRST_GUESS))
    print(ckad.plan(misfit, guess, memory=settings.memory))
    value_and_gradient = ckad.value_and_grad(misfit, memory=settings.memory, progress=progress)

    started = time.perf_counter()
    misfits = [float(np.sqrt(ckad.jit(misfit)(guess)))]
    print(f"\niteration  misfit (m)   seconds\n{0:9d}  {misfits[0]:10.3f}")

    def state(intermediate_result: Any) -> None:
        misfits.append(float(np.sqrt(intermediate_result.fun)))
        seconds = time.perf_counter() - started
        print(f"{len(misfits) - 1:9d}  {misfits[-1]:10.3f}  {seconds:8.1f}", flush=True)

    found = minimize(
        value_and_gradient,
        guess,
        jac=True,
        method="L-BFGS-B",
        bounds=[tuple(np.log(SEARCHED))] * guess.size,
        callback=state,
        options={"maxiter": settings.iterations},
    )
    recovered = diffusivity(found.x)
    return Recovery(recovered, misfits, *errors(problem, recovered))


def errors(problem: Problem, recovered: np.ndarray) -> tuple[float, float]:
    """Mean relative error over the map, and over its slopes steeper than STEEP."""
    error = np.abs(recovered / problem.diffusivity - 1)
    slope = np.hypot(
        *np.gradient(problem.terrain.elevation, problem.terrain.dy, problem.terrain.dx)
    )
    return float(np.mean(error)), float(np.mean(error[slope > STEEP]))


def run(settings: Settings, output: str | Path, progress: bool = True) -> Recovery:
    """Pose the problem, recover the diffusivity, print what happens and draw the figure."""
    problem = pose(settings)
    print(describe(problem, settings))
    result = recover(problem, settings, progress)
    print(conclude(result))
    draw(problem, result, output)
    print(f"figure      {output}")
    return result


def describe(problem: Problem, settings: Settings) -> str:
    terrain = problem.terrain
    ny, nx = terrain.elevation.shape
    nodes = interpolation(ny).shape[1] * interpolation(nx).shape[1]
    years = problem.n_steps * YEARS_PER_STEP / 1e6
    trajectory = terrain.elevation.nbytes * problem.n_steps / 1e9
    return (
        f"terrain     {ny} x {nx} cells of {terrain.dy:.0f} m x {terrain.dx:.0f} m\n"
        f"time        {problem.n_steps} steps, {years:g} million years\n"
        f"unknowns    {nodes} values of the diffusivity\n"
        f"trajectory  {trajectory:.2f} GB if it were kept; memory={settings.memory!r}\n"
    )


def conclude(result: Recovery) -> str:
    return (
        f"\nmisfit      {result.misfits[0]:.2f} m -> {result.misfits[-1]:.2f} m; "
        f"the survey's own error is {SURVEY_ERROR:.2f} m\n"
        f"recovered   the diffusivity to {result.mean_error:.1%} on average, "
        f"{result.steep_error:.1%} where slopes exceed {STEEP:.0%}"
    )


def draw(problem: Problem, result: Recovery, path: str | Path) -> None:
    figure = Figure(figsize=(15, 8.6), layout="constrained")
    (terrain, change, curve), (true, recovered, error) = figure.subplots(2, 3)
    draw_terrain(figure, terrain, problem)
    draw_change(figure, change, problem)
    draw_misfits(curve, result.misfits)
    draw_diffusivity(figure, true, problem, problem.diffusivity, "true diffusivity")
    draw_diffusivity(figure, recovered, problem, result.diffusivity, "recovered diffusivity")
    draw_error(figure, error, problem, result)
    figure.savefig(path, dpi=110)


def draw_map(
    figure: Figure, axes: Any, problem: Problem, values: Any, title: str, unit: str, **style: Any
) -> Any:
    """One map with axes in km and a colour bar; returns its image."""
    terrain = problem.terrain
    west, east = terrain.east[0] / 1e3, (terrain.east[-1] + terrain.dx) / 1e3
    top, bottom = terrain.north[0] / 1e3, (terrain.north[-1] + terrain.dy) / 1e3
    image = axes.imshow(values, extent=(west, east, bottom, top), **style)
    axes.set(title=title, xlabel="east (km)", ylabel="south (km)")
    figure.colorbar(image, ax=axes, label=unit, shrink=0.85)
    return image


def draw_terrain(figure: Figure, axes: Any, problem: Problem) -> None:
    terrain = problem.terrain
    title = "terrain today: the Jacksboro fault"
    low, high = terrain.elevation.min(), terrain.elevation.max()
    # The lowest third of this colour map is the blue of water.
    style = {"cmap": "terrain", "vmin": low - (high - low) / 2, "vmax": high}
    image = draw_map(figure, axes, problem, terrain.elevation, title, "elevation (m)", **style)
    image.colorbar.ax.set_ylim(low, high)
    shaded = LightSource(azdeg=315, altdeg=45).shade_rgb(
        image.to_rgba(terrain.elevation)[..., :3],
        terrain.elevation,
        dx=terrain.dx,
        dy=terrain.dy,
        vert_exag=3,
        blend_mode="soft",
    )
    axes.imshow(shaded, extent=image.get_extent())


def draw_change(figure: Figure, axes: Any, problem: Problem) -> None:
    change = problem.later - problem.terrain.elevation
    largest = np.quantile(np.abs(change), 0.99)
    years = problem.n_steps * YEARS_PER_STEP / 1e6
    title = f"change after {years:g} million years, as surveyed"
    style = {"cmap": "RdBu", "vmin": -largest, "vmax": largest}
    draw_map(figure, axes, problem, change, title, "erosion (-) and deposition (+) (m)", **style)


def draw_misfits(axes: Any, misfits: list[float]) -> None:
    axes.semilogy(misfits, "o-", color="#2a5d8f", markersize=4)
    axes.axhline(SURVEY_ERROR, color="0.5", linestyle="--", label="error of the survey")
    axes.set(title="misfit", xlabel="L-BFGS-B iteration", ylabel="root mean square (m)")
    axes.set_yticks((1, 2, 5, 10), labels=("1", "2", "5", "10"))
    axes.minorticks_off()
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def draw_diffusivity(
    figure: Figure, axes: Any, problem: Problem, values: np.ndarray, title: str
) -> None:
    style = {"cmap": "viridis", "norm": LogNorm(0.005, 0.02)}
    image = draw_map(figure, axes, problem, values, title, "diffusivity (m²/year)", **style)
    image.colorbar.set_ticks((0.005, 0.01, 0.02), labels=("0.005", "0.01", "0.02"))
    image.colorbar.minorticks_off()


def draw_error(figure: Figure, axes: Any, problem: Problem, result: Recovery) -> None:
    error = 100 * (result.diffusivity / problem.diffusivity - 1)
    title = f"error: {result.mean_error:.1%} on average"
    style = {"cmap": "PuOr", "vmin": -20, "vmax": 20}
    draw_map(figure, axes, problem, error, title, "recovered / true - 1 (%)", **style)
