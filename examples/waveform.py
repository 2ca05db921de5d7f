"""Find what lies under the ground from the echoes of shots: acoustic full-waveform inversion.

Pressure follows d²p/dt² = c² (d²p/dx² + d²p/dz²) + source. Shots are fired near the surface, and
receivers there record the pressure. The velocity of every cell is found by L-BFGS-B from the misfit
of all shots; the gradient of each shot is taken back through all of its steps within a memory
budget of its own, and summed.

    python examples/waveform.py --output waveform.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter
from scipy.optimize import minimize

import ckad

SPACING, DT = 20.0, 0.003  # m, s
FREQUENCY = 8.0  # Hz, of the source's peak
SLOW, FAST, LENS = 2_000.0, 2_400.0, 2_800.0  # m/s
RIM = 12  # cells in which waves are damped
DEPTH = 3  # cells from the free surface to shots and receivers
KNOWN = 6  # rows of cells about them, whose velocity is known


class Survey(NamedTuple):
    """Shots and what was recorded of them."""

    columns: np.ndarray  # int64[n_shots], where they are fired
    wavelet: np.ndarray  # float64[n_steps]
    recorded: np.ndarray  # float64[n_shots, n_steps, n_columns]


class Image(NamedTuple):
    """What was found, and how the misfit fell."""

    velocity: np.ndarray  # float64[n_rows, n_columns], m/s
    misfits: list[float]


def ground(n_rows: int, n_columns: int) -> np.ndarray:
    """Two layers and a fast lens, m/s."""
    z, x = np.mgrid[:n_rows, :n_columns]
    velocity = np.where(z < 0.6 * n_rows, SLOW, FAST)
    inside = ((x - 0.5 * n_columns) / 9.0) ** 2 + ((z - 0.4 * n_rows) / 4.0) ** 2 < 1.0
    return np.where(inside, LENS, velocity)


def ricker(n_steps: int) -> np.ndarray:
    """The usual source: the second derivative of a Gaussian."""
    phase = (np.pi * FREQUENCY * (np.arange(n_steps) * DT - 1.2 / FREQUENCY)) ** 2
    return (1.0 - 2.0 * phase) * np.exp(-phase)


def damping(n_rows: int, n_columns: int) -> np.ndarray:
    """A factor below one near all edges but the free surface: waves go there and do not return."""
    z, x = np.mgrid[:n_rows, :n_columns]
    inside = np.minimum(n_rows - 1 - z, np.minimum(x, n_columns - 1 - x))
    return np.exp(-((0.02 * np.maximum(RIM - inside, 0)) ** 2))


def shot(velocity, column, wavelet, sponge):
    """What the receivers record of one shot, float64[n_steps, n_columns]."""
    courant = (velocity * DT / SPACING) ** 2
    before = np.zeros_like(velocity)
    now = np.zeros_like(velocity)
    seen = np.zeros((len(wavelet), velocity.shape[1]))
    for k in range(len(wavelet)):
        bend = np.zeros_like(velocity)
        bend[1:-1, 1:-1] = (
            now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4.0 * now[1:-1, 1:-1]
        )
        after = sponge * (2.0 * now - sponge * before + courant * bend)
        after[DEPTH, column] += DT**2 * wavelet[k]
        before, now = now, after
        seen[k] = now[DEPTH]
    return seen


def survey(velocity: np.ndarray, n_shots: int, n_steps: int) -> Survey:
    n_rows, n_columns = velocity.shape
    columns = np.linspace(RIM, n_columns - 1 - RIM, n_shots).astype(np.int64)
    wavelet, sponge = ricker(n_steps), damping(n_rows, n_columns)
    recorded = np.array([shot(velocity, column, wavelet, sponge) for column in columns])
    return Survey(columns, wavelet, recorded)


def invert(found: Survey, start: np.ndarray, n_iterations: int, memory: str = "8 MiB") -> Image:
    sponge = damping(*start.shape)
    scale = 1.0 / np.sum(found.recorded**2)

    def misfit(velocity, column, recorded):
        return 0.5 * np.sum((shot(velocity, column, found.wavelet, sponge) - recorded) ** 2)

    by_shot = ckad.value_and_grad(misfit, memory=memory)

    def objective(relative):
        value, gradient = 0.0, np.zeros(start.shape)
        for column, recorded in zip(found.columns, found.recorded, strict=True):
            part, slope = by_shot(relative.reshape(start.shape) * SLOW, column, recorded)
            value += part
            gradient += slope
        gradient[:KNOWN] = 0.0
        return scale * value, scale * SLOW * gradient.ravel()

    misfits: list[float] = [objective(start.ravel() / SLOW)[0]]
    best = minimize(
        objective,
        start.ravel() / SLOW,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.7, 1.6)] * start.size,
        options={"maxiter": n_iterations},
        callback=lambda intermediate_result: misfits.append(float(intermediate_result.fun)),
    )
    return Image(best.x.reshape(start.shape) * SLOW, misfits)


def report(image: Image, truth: np.ndarray, start: np.ndarray) -> str:
    inside = np.s_[:-RIM, RIM:-RIM]
    before, after = (
        np.sqrt(np.mean((guess[inside] - truth[inside]) ** 2)) for guess in (start, image.velocity)
    )
    return "\n".join(
        [
            f"misfit   {image.misfits[0]:.2e} -> {image.misfits[-1]:.2e} of what was recorded, "
            f"in {len(image.misfits) - 1} iterations",
            f"velocity {before:.0f} -> {after:.0f} m/s off, root mean square",
        ]
    )


def draw(image: Image, truth: np.ndarray, start: np.ndarray, path: str) -> None:
    figure = Figure(figsize=(9.0, 4.6), layout="constrained")
    axes = figure.subplots(2, 2)
    n_rows, n_columns = truth.shape
    extent = (0.0, n_columns * SPACING, n_rows * SPACING, 0.0)
    pictures = {"true": truth, "at first": start, "found": image.velocity}
    for one, (title, velocity) in zip(axes.flat, pictures.items(), strict=False):
        shown = one.imshow(velocity, extent=extent, vmin=SLOW - 100, vmax=LENS, cmap="viridis")
        one.set(title=f"velocity, {title}", xlabel="m", ylabel="m")
    figure.colorbar(shown, ax=axes[:, 0], label="m/s", location="left")
    axes[1, 1].semilogy(image.misfits, color="0.35")
    axes[1, 1].set(title="misfit", xlabel="iteration")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Acoustic full-waveform inversion.")
    parser.add_argument("--output", default="waveform.png", help="where to write the figure")
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--shots", type=int, default=6)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--cells", type=int, nargs=2, default=(70, 100), help="down and across")
    options = parser.parse_args(arguments)
    truth = ground(*options.cells)
    start = gaussian_filter(truth, 8.0)
    start[:KNOWN] = truth[:KNOWN]
    image = invert(survey(truth, options.shots, options.steps), start, options.iterations)
    print(report(image, truth, start))
    draw(image, truth, start, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
