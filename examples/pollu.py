"""Which of 25 reactions decide how much ozone is in the air? The chemistry of POLLU.

J. G. Verwer, SIAM J. Sci. Comput. 15 (1994) 1243-1250: 20 species, 25 reactions, rates from 1e-4 to
4e11. One reverse sweep through Rodas5P gives the derivative of the ozone after an hour by all 25
rates. The concentrations are compared with the reference solution of F. Mazzia, C. Magherini, "Test
Set for Initial Value Problem Solvers" (University of Bari, 2008), and the sensitivities that are
largest with SciPy's Radau on the variational equations dS/dt = (df/dy) S + df/dk.

    python examples/pollu.py --output pollu.png
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

SPECIES = (
    *("NO2", "NO", "O3P", "O3", "HO2", "OH", "HCHO", "CO", "ALD", "MEO2"),
    *("C2O3", "CO2", "PAN", "CH3O", "HNO3", "O1D", "SO2", "SO4", "NO3", "N2O5"),
)
#: Rates in 1/min or 1/(ppm min), and what reacts to what.
REACTIONS = (
    (0.35, "NO2", "NO O3P"),
    (26.6, "NO O3", "NO2"),
    (1.23e4, "HO2 NO", "NO2 OH"),
    (8.6e-4, "HCHO", "HO2 HO2 CO"),
    (8.2e-4, "HCHO", "CO"),
    (1.5e4, "HCHO OH", "HO2 CO"),
    (1.3e-4, "ALD", "MEO2 HO2 CO"),
    (2.4e4, "ALD OH", "C2O3"),
    (1.65e4, "C2O3 NO", "NO2 MEO2 CO2"),
    (9e3, "C2O3 NO2", "PAN"),
    (0.022, "PAN", "C2O3 NO2"),
    (1.2e4, "MEO2 NO", "CH3O NO2"),
    (1.88, "CH3O", "HCHO HO2"),
    (1.63e4, "NO2 OH", "HNO3"),
    (4.8e6, "O3P", "O3"),
    (3.5e-4, "O3", "O1D"),
    (0.0175, "O3", "O3P"),
    (1e8, "O1D", "OH OH"),
    (4.44e11, "O1D", "O3P"),
    (1.24e3, "SO2 OH", "HO2 SO4"),
    (2.1, "NO3", "NO"),
    (5.78, "NO3", "NO2 O3P"),
    (0.0474, "NO2 O3", "NO3"),
    (1.78e3, "NO3 NO2", "N2O5"),
    (3.12, "N2O5", "NO2 NO3"),
)
#: After an hour: y(60) of the Test Set.
REFERENCE = np.array([
    *(0.5646255480022769e-1, 0.1342484130422339, 0.4139734331099427e-8, 0.5523140207484359e-2),
    *(0.2018977262302196e-6, 0.1464541863493966e-6, 0.7784249118997964e-1, 0.3245075353396018),
    *(0.7494013383880406e-2, 0.1622293157301561e-7, 0.1135863833257075e-7, 0.2230505975721359e-2),
    *(0.2087162882798630e-3, 0.1396921016840158e-4, 0.8964884856898295e-2, 0.4352846369330103e-17),
    *(0.6899219696263405e-2, 0.1007803037365946e-3, 0.1772146513969984e-5, 0.5682943292316392e-4),
])  # fmt: skip
START = {"NO": 0.2, "O3": 0.04, "HCHO": 0.1, "CO": 0.3, "ALD": 0.01, "SO2": 0.007}  # ppm
HOUR = 60.0  # min
OZONE = SPECIES.index("O3")

RATES = np.array([rate for rate, _, _ in REACTIONS])
USED = [[SPECIES.index(name) for name in used.split()] for _, used, _ in REACTIONS]
FIRST = np.array([used[0] for used in USED])
SECOND = np.array([used[1] if len(used) == 2 else len(SPECIES) for used in USED])  # then: one
CHANGES = np.zeros((len(SPECIES), len(REACTIONS)))
for k, (_, used, made) in enumerate(REACTIONS):
    for sign, names in ((-1.0, used), (1.0, made)):
        for name in names.split():
            CHANGES[SPECIES.index(name), k] += sign
Y0 = np.array([START.get(name, 0.0) for name in SPECIES])


def chemistry(t, y, rates):
    joined = np.concatenate([y, np.ones(1)])
    return CHANGES @ (rates * joined[FIRST] * joined[SECOND])


class Hour(NamedTuple):
    concentrations: np.ndarray  # float64[20], ppm
    elasticity: np.ndarray  # float64[25]: d log(ozone) / d log(rate)


def hour(rtol: float = 1e-8) -> Hour:
    def ozone(log_factors):
        rates = RATES * np.exp(log_factors)
        options = {"rtol": rtol, "atol": 1e-18}
        y = solve_ivp(chemistry, (0.0, HOUR), Y0, "Rodas5P", args=(rates,), **options).y[:, -1]
        return np.log(y[OZONE]), y

    (_, y), elasticity = ckad.value_and_grad(ozone, has_aux=True)(np.zeros(len(RATES)))
    return Hour(y, elasticity)


def by_variational_equations(reaction: int) -> float:
    """d log(ozone) / d log(rate) of one reaction, by SciPy."""
    n = len(SPECIES)

    def joined(t, z):
        y = np.append(z[:n], 1.0)
        s = np.append(z[n:], 0.0)
        moved = RATES * (s[FIRST] * y[SECOND] + y[FIRST] * s[SECOND])
        moved[reaction] += RATES[reaction] * y[FIRST[reaction]] * y[SECOND[reaction]]
        return np.concatenate([chemistry(t, z[:n], RATES), CHANGES @ moved])

    start = np.concatenate([Y0, np.zeros(n)])
    sol = integrate.solve_ivp(joined, (0.0, HOUR), start, "Radau", rtol=1e-8, atol=1e-14)
    return float(sol.y[n + OZONE, -1] / sol.y[OZONE, -1])


def equation(k: int) -> str:
    _, used, made = REACTIONS[k]
    return " + ".join(used.split()) + " -> " + " + ".join(made.split())


def largest(found: Hour) -> np.ndarray:
    return np.argsort(-np.abs(found.elasticity))


def report(found: Hour, n_checked: int = 5) -> str:
    off = np.max(np.abs(found.concentrations / REFERENCE - 1.0))
    lines = [f"concentrations {off:.1e} from the reference", "d log(ozone) / d log(rate):"]
    for k in largest(found)[:n_checked]:
        lines.append(
            f"{found.elasticity[k]:12.8f}, variational {by_variational_equations(k):12.8f}  "
            f"{equation(k)}"
        )
    return "\n".join(lines)


def draw(found: Hour, path: str) -> None:
    figure = Figure(figsize=(6.5, 5.0), layout="constrained")
    axes = figure.subplots()
    order = largest(found)[::-1]
    axes.barh([equation(k) for k in order], found.elasticity[order], color="#2a5d8f")
    axes.tick_params(axis="y", labelsize=7)
    axes.set(xlabel="d log(ozone) / d log(rate)", title="What decides the ozone after an hour")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Sensitivities of an atmospheric chemistry.")
    parser.add_argument("--output", default="pollu.png", help="where to write the figure")
    parser.add_argument("--rtol", type=float, default=1e-8, help="of the solver")
    options = parser.parse_args(arguments)
    found = hour(options.rtol)
    print(report(found))
    draw(found, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
