"""Sensitivities of Robertson's stiff reactions to their rates, against published ones.

A -> B, 2 B -> B + C, B + C -> A + C with rates that differ by nine decades:

    da/dt = -k1 a + k3 b c,    db/dt = k1 a - k3 b c - k2 b²,    dc/dt = k2 b²

(H. H. Robertson 1966). One forward-mode sweep through Rodas5P, a Rosenbrock method, gives the
Jacobian of a, b and c at all times by the three rates. It is compared with what CVODES prints for
its example cvsRoberts_FSA_dns, and with SciPy's Radau on the variational equations
dS/dt = (df/dy) S + df/dk, nine more equations.

    python examples/robertson.py --output robertson.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy import integrate

import ckad
from ckad.integrate import solve_ivp

RATES = np.array([0.04, 3e7, 1e4])
START = np.array([1.0, 0.0, 0.0])
TIGHT = {"rtol": 1e-8, "atol": 1e-13}

#: da/dk1, da/dk2, da/dk3 as printed by cvsRoberts_FSA_dns (staggered1, full error control) of
#: SUNDIALS, whose p2 and p3 are k3 and k2: R. Serban, A. C. Hindmarsh, "CVODES: the
#: sensitivity-enabled ODE solver in SUNDIALS" (2005). Its tolerance is 1e-4.
PUBLISHED = {
    0.4: (-3.5595e-01, -1.5833e-11, 9.5428e-08),
    4.0: (-1.8760e00, -4.9337e-10, 2.9615e-06),
    40.0: (-4.2477e00, -2.2885e-09, 1.3732e-05),
    400.0: (-5.9588e00, -3.7900e-09, 2.2740e-05),
    4000.0: (-4.7500e00, -3.1348e-09, 1.8809e-05),
}
TIMES = np.array([*PUBLISHED])


class Sensitivities(NamedTuple):
    times: np.ndarray  # float64[m]
    states: np.ndarray  # float64[3, m]
    by_rates: np.ndarray  # float64[3, m, 3]: d(a, b, c)/dk at each time


def robertson(t, y, k1, k2, k3):
    a, b, c = y
    return [-k1 * a + k3 * b * c, k1 * a - k3 * b * c - k2 * b * b, k2 * b * b]


def sensitivities(times) -> Sensitivities:
    def states(k):
        span = 0.0, times[-1]
        args = k[0], k[1], k[2]
        return solve_ivp(robertson, span, START, "Rodas5P", times, args=args, **TIGHT).y

    return Sensitivities(times, ckad.jit(states)(RATES), ckad.jacfwd(states)(RATES))


def by_variational_equations(times) -> Sensitivities:
    """The same by SciPy, with derivatives written by hand."""
    k1, k2, k3 = RATES

    def joined(t, z):
        (a, b, c), s = z[:3], z[3:].reshape(3, 3)
        by_y = np.array([[-k1, k3 * c, k3 * b], [k1, -k3 * c - 2 * k2 * b, -k3 * b]])
        by_k = np.array([[-a, 0.0, b * c], [a, -b * b, -b * c]])
        by_y, by_k = (np.vstack([x, -x.sum(0)]) for x in (by_y, by_k))
        return np.concatenate([robertson(t, (a, b, c), *RATES), (by_y @ s + by_k).ravel()])

    start = np.concatenate([START, np.zeros(9)])
    # dy/dk2 is of the size of 1e-9, and smaller for b
    atol = 1e-13 * np.concatenate([np.ones(3), np.tile(1.0 / RATES, 3)])
    span = 0.0, times[-1]
    z = integrate.solve_ivp(joined, span, start, "Radau", times, rtol=1e-8, atol=atol).y
    return Sensitivities(times, z[:3], z[3:].reshape(3, 3, -1).transpose(0, 2, 1))


def distance(found: Sensitivities, known: Sensitivities) -> float:
    """The largest, relative to each sensitivity's own size."""
    size = np.max(np.abs(known.by_rates), axis=1, keepdims=True)
    return float(np.max(np.abs(found.by_rates - known.by_rates) / size))


def report(found: Sensitivities, known: Sensitivities) -> str:
    lines = ["       t   da/dk1       da/dk2       da/dk3"]
    for i, (t, published) in enumerate(PUBLISHED.items()):
        by_k = " ".join(f"{x:12.4e}" for x in found.by_rates[0, i])
        there = " ".join(f"{x:12.4e}" for x in published)
        lines += [f"{t:8.1f} {by_k}", f"  CVODES {there}"]
    off = np.abs(found.by_rates[0] / np.array([*PUBLISHED.values()]) - 1.0)
    lines += [
        f"from the published ones   {np.max(off):.1e} of their size (their tolerance is 1e-4)",
        f"from the variational ones {distance(found, known):.1e} of their size",
    ]
    return "\n".join(lines)


def draw(path: str) -> None:
    times = np.geomspace(1e-3, 1e6, 150)
    found = sensitivities(times)
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogx(times, found.states[0], label="a")
    left.semilogx(times, 1e4 * found.states[1], label="10⁴ b")
    left.semilogx(times, found.states[2], label="c")
    left.set(xlabel="t", title="Concentrations")
    for k, (rate, name) in enumerate(zip(RATES, ("k1", "k2", "k3"), strict=True)):
        right.semilogx(times, rate * found.by_rates[0, :, k], label=f"{name} da/d{name}")
    right.set(xlabel="t", title="Sensitivities of a")
    for axes in (left, right):
        axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Sensitivities of Robertson's reactions.")
    parser.add_argument("--output", default="robertson.png", help="where to write the figure")
    options = parser.parse_args(arguments)
    print(report(sensitivities(TIMES), by_variational_equations(TIMES)))
    draw(options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
