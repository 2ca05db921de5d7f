"""Conductances of a nerve from its voltage: Hodgkin and Huxley's equations fitted to a trace.

    C dV/dt = I - gNa m³ h (V - ENa) - gK n⁴ (V - EK) - gL (V - EL),
    dx/dt = alpha_x(V) (1 - x) - beta_x(V) x          for the gates x = m, h, n

with the constants of A. L. Hodgkin and A. F. Huxley, J. Physiol. 117 (1952) 500-544, table 3, and
rest at -65 mV. A noisy trace of V under a constant current shows a few spikes; the conductances
gNa, gK and gL are found by least squares from a guess that is wrong by tens of percent. Spikes that
move apart make this misfit rough, so the trace is fitted in growing lengths. The Jacobian has three
columns: forward mode gives them at once.

    python examples/hodgkin_huxley.py --output hodgkin_huxley.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import least_squares

import ckad
from ckad.integrate import solve_ivp

NAMES = ("gNa", "gK", "gL")
PUBLISHED = np.array([120.0, 36.0, 0.3])  # mS/cm²
GUESS = np.array([90.0, 45.0, 0.4])
REVERSAL = np.array([50.0, -77.0, -54.387])  # mV: of sodium, potassium, and the leak
CURRENT = 10.0  # µA/cm²
TIME, EVERY = 40.0, 0.1  # ms
N_STEPS = 1600
ERROR = 1.0  # mV
# The state of rest, at -65 mV without a current.
REST = np.array([-65.0, 0.0529325, 0.5961208, 0.3176770])


class Fit(NamedTuple):
    conductances: np.ndarray  # float64[3], mS/cm²
    errors: np.ndarray  # float64[3], standard
    times: np.ndarray  # float64[m], ms
    seen: np.ndarray  # float64[m], mV
    fitted: np.ndarray
    guessed: np.ndarray


def nerve(t, y, sodium, potassium, leak):
    v, m, h, n = y
    opening = 0.1 * (v + 40.0) / (1.0 - np.exp(-(v + 40.0) / 10.0))
    potassium_opening = 0.01 * (v + 55.0) / (1.0 - np.exp(-(v + 55.0) / 10.0))
    currents = (
        sodium * m**3 * h * (v - REVERSAL[0])
        + potassium * n**4 * (v - REVERSAL[1])
        + leak * (v - REVERSAL[2])
    )
    return [
        CURRENT - currents,  # C is 1 µF/cm²
        opening * (1.0 - m) - 4.0 * np.exp(-(v + 65.0) / 18.0) * m,
        0.07 * np.exp(-(v + 65.0) / 20.0) * (1.0 - h) - h / (1.0 + np.exp(-(v + 35.0) / 10.0)),
        potassium_opening * (1.0 - n) - 0.125 * np.exp(-(v + 65.0) / 80.0) * n,
    ]


def voltage(conductances, times):
    """mV at each time."""
    args = conductances[0], conductances[1], conductances[2]
    return solve_ivp(nerve, (0.0, TIME), REST, "RK4", times, args=args, n_steps=N_STEPS).y[0]


def fit(lengths: Sequence[float] = (6.0, 20.0, TIME), seed: int = 3) -> Fit:
    """The trace up to each of ``lengths``, ms, in turn."""
    times = np.arange(0.0, lengths[-1] + 1e-9, EVERY)
    noise = ERROR * np.random.default_rng(seed).normal(size=times.shape)

    def trace(factors):
        return voltage(factors * GUESS, times)

    compute, jacobian = ckad.jit(trace), ckad.jacfwd(trace)

    def tried(factors):
        try:
            return compute(factors)
        except ckad.errors.RaisedError:  # conductances for which these steps are too long
            return np.full(times.shape, 1e6)

    seen = compute(PUBLISHED / GUESS) + noise
    factors = np.ones(3)
    for length in lengths:
        kept = times <= length
        best = least_squares(
            lambda x, kept=kept: (tried(x) - seen)[kept] / ERROR,
            factors,
            jac=lambda x, kept=kept: jacobian(x)[kept] / ERROR,
            method="lm",
            max_nfev=50,
        )
        factors = best.x
    errors = np.sqrt(np.diag(np.linalg.inv(best.jac.T @ best.jac))) * GUESS
    return Fit(factors * GUESS, errors, times, seen, compute(factors), compute(np.ones(3)))


def report(found: Fit) -> str:
    lines = [
        f"{name:3s}  {value:8.4f} +- {error:.4f} mS/cm², published {known}"
        for name, value, error, known in zip(
            NAMES, found.conductances, found.errors, PUBLISHED, strict=True
        )
    ]
    off = np.sqrt(np.mean((found.fitted - found.seen) ** 2))
    before = np.sqrt(np.mean((found.guessed - found.seen) ** 2))
    return "\n".join([*lines, f"voltage {before:.1f} -> {off:.2f} mV off (its error: {ERROR} mV)"])


def draw(found: Fit, path: str) -> None:
    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(found.times, found.seen, ".", color="#b5762a", markersize=2, label="seen")
    axes.plot(found.times, found.guessed, color="0.7", label="guess")
    axes.plot(found.times, found.fitted, color="#2a5d8f", label="fitted")
    axes.set(xlabel="ms", ylabel="mV", title="Hodgkin and Huxley's nerve")
    axes.legend(frameon=False, loc="upper right")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Conductances of a nerve from its voltage.")
    parser.add_argument("--output", default="hodgkin_huxley.png", help="where to write the figure")
    parser.add_argument("--seed", type=int, default=3, help="of the noise")
    options = parser.parse_args(arguments)
    found = fit(seed=options.seed)
    print(report(found))
    draw(found, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
