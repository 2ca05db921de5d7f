"""What lies under the ice: the bed of a glacier from its surface, by the shallow ice approximation.

Ice of thickness H on a bed b flows down its surface s = b + H: dH/dt = d/dx (D ds/dx) + m, where
D = 2 A (rho g)³ H⁵ |ds/dx|² / 5 and m is what falls as snow less what melts. A glacier grows for
six hundred years; from its surface at the end, and a glimpse of it halfway, the bed is found. Where
there is no ice the bed is seen.

    python examples/glacier.py --output glacier.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize

import ckad

YEAR = 365.25 * 24 * 3600.0
# Glen's law with n = 3: A = 2.4e-24 Pa^-3 s^-1 (Cuffey and Paterson 2010, for temperate ice).
FLOW = 2.0 / 5.0 * 2.4e-24 * (910.0 * 9.81) ** 3 * YEAR  # m^-3 / year
SPACING, YEARS, DT = 200.0, 600.0, 0.05  # m, years, years
ERROR = 2.0  # m, of a surface


class Bed(NamedTuple):
    """Heights in m, each float64[n]."""

    x: np.ndarray
    true: np.ndarray
    guess: np.ndarray
    found: np.ndarray
    surface: np.ndarray  # as seen at the end
    icy: np.ndarray  # bool[n]
    misfits: list[float]


def surfaces(bed, n_steps):
    """Halfway and at the end, float64[2, n]."""
    thick = np.zeros_like(bed)
    seen = np.zeros((2, len(bed)))
    for k in range(n_steps):
        surface = bed + thick
        slope = (surface[1:] - surface[:-1]) / SPACING
        between = 0.5 * (thick[1:] + thick[:-1])
        flux = FLOW * between**5 * slope**2 * slope
        balance = np.minimum(0.006 * (surface - 2_850.0), 1.0)  # m of ice a year
        thick[1:-1] += DT * ((flux[1:] - flux[:-1]) / SPACING + balance[1:-1])
        thick = np.maximum(thick, 0.0)
        if 2 * (k + 1) == n_steps:
            seen[0] = bed + thick
    seen[1] = bed + thick
    return seen


def invert(n: int = 80, n_iterations: int = 60, seed: int = 2) -> Bed:
    n_steps = round(YEARS / DT)
    x = SPACING * np.arange(n)
    slope = 3_400.0 - 0.1 * x
    true = slope - 90.0 * np.exp(-(((x - 5_000.0) / 900.0) ** 2)) + 40.0 * np.sin(x / 700.0)
    clean = surfaces(true, n_steps)
    icy = np.max(clean, axis=0) > true + 0.5
    seen = clean + ERROR * np.random.default_rng(seed).normal(size=clean.shape)
    guess = np.where(icy, seen[1] - 60.0, true)

    def misfit(change):
        bed = guess + np.where(icy, 10.0 * change, 0.0)
        off = (surfaces(bed, n_steps) - seen) / ERROR
        rough = np.diff(bed, 2) / 15.0
        return 0.5 * np.sum(off**2) + 0.5 * np.sum(rough**2)

    objective = ckad.value_and_grad(misfit, memory="4 MiB")
    misfits = [float(objective(np.zeros(n))[0])]
    best = minimize(
        objective,
        np.zeros(n),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": n_iterations},
        callback=lambda intermediate_result: misfits.append(float(intermediate_result.fun)),
    )
    found = guess + np.where(icy, 10.0 * best.x, 0.0)
    return Bed(x, true, guess, found, seen[1], icy, misfits)


def errors(bed: Bed) -> tuple[float, float]:
    """Root mean square under the ice, m: of the guess and of what was found."""
    before, after = (
        float(np.sqrt(np.mean((one[bed.icy] - bed.true[bed.icy]) ** 2)))
        for one in (bed.guess, bed.found)
    )
    return before, after


def report(bed: Bed) -> str:
    before, after = errors(bed)
    thick = np.max(bed.surface - bed.true)
    return "\n".join(
        [
            f"misfit {bed.misfits[0]:.0f} -> {bed.misfits[-1]:.0f} in {len(bed.misfits) - 1} "
            f"iterations ({2 * len(bed.x)} heights, in units of their error squared)",
            f"bed    {before:.1f} -> {after:.1f} m off under ice of up to {thick:.0f} m",
        ]
    )


def draw(bed: Bed, path: str) -> None:
    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    axes = figure.subplots()
    km = bed.x / 1_000.0
    axes.fill_between(km, bed.true, bed.surface, color="#cfe4f2", label="ice")
    axes.fill_between(km, bed.true, bed.true.min() - 100.0, color="0.75")
    axes.plot(km, bed.guess, "--", color="#4477aa", linewidth=1, label="bed, guessed")
    axes.plot(km, bed.found, color="#b5762a", label="bed, found")
    axes.set(xlabel="km", ylabel="m", title="The bed of a glacier from its surface")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Find the bed of a glacier.")
    parser.add_argument("--output", default="glacier.png", help="where to write the figure")
    parser.add_argument("--cells", type=int, default=80)
    parser.add_argument("--iterations", type=int, default=60)
    options = parser.parse_args(arguments)
    bed = invert(options.cells, options.iterations)
    print(report(bed))
    draw(bed, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
