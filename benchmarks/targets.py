"""What ckad sets itself: each target beside the figure that the reports hold for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from benchmarks.report import table

COLUMNS = ("target", "asked", "measured", "met")
STENCILS = ("gray_scott", "burgers", "heat1d", "heat2d", "wave2d", "shallow_water")
FASTAD = (
    "sum",
    "sum_iter",
    "prod",
    "prod_iter",
    "log_sum_exp",
    "matrix_product",
    "normal_log_pdf",
    "regression",
    "stochastic_volatility",
)
Report = Mapping[str, Any]


@dataclass(frozen=True)
class Target:
    """A figure of the report of a kind, with the range it has to be in."""

    text: str
    kind: str
    figure: Callable[[Report], float]
    least: float = -inf
    most: float = inf

    def asked(self) -> str:
        if self.least > -inf and self.most < inf:
            return f"{self.least:g} to {self.most:g}"
        return f"≥ {self.least:g}" if self.least > -inf else f"≤ {self.most:g}"


# Figures -----------------------------------------------------------------------------------------


def over(case: str, numerator: str, denominator: str) -> Callable[[Report], float]:
    """The time per cell and step of one row of a comparison in units of another's."""

    def figure(report: Report) -> float:
        return seconds(report, case, numerator) / seconds(report, case, denominator)

    return figure


def seconds(report: Report, case: str, name: str) -> float:
    """A row is a peer, or "ckad, form"; the fastest form has no row besides its peer's."""
    rows = report["cases"][case]["peers"]
    peer, _, form = name.partition(", ")
    is_best = form and rows[peer]["form"] == form
    return rows[peer if is_best else name]["ns_per_cell_step"]


def ratio(case: str) -> Callable[[Report], float]:
    return lambda report: report["cases"][case]["ratio"]


def slope(axis: str) -> Callable[[Report], float]:
    return lambda report: report["axes"][axis]["exponent"]


def first(program: str, moment: str) -> Callable[[Report], float]:
    return lambda report: report["first_gradient"][program][moment]["total_seconds"]


def compile_seconds(report: Report) -> float:
    points = report["compile"]["native"]["points"]
    return next(p["seconds"] for p in points if p["n_ops"] >= 10_000)


# Targets -----------------------------------------------------------------------------------------


def small_systems() -> Iterator[Target]:
    ours = "ckad, 1 MiB"
    yield Target(
        "lorenz63, 1 MiB: JAX's best form / ckad", "compare", over("lorenz63", "jax", ours), 50
    )
    yield Target(
        "lorenz63, 1 MiB: adjoint by hand in Numba / ckad",
        "compare",
        over("lorenz63", "numba", ours),
        1,
    )
    yield Target(
        "lorenz63: within 1 MiB / without a budget",
        "compare",
        over("lorenz63", ours, "ckad, auto"),
        most=1.15,
    )
    yield Target("lorenz96: JAX / ckad", "compare", over("lorenz96", "jax", "ckad"), 10)
    yield Target("neural_ode: JAX / ckad", "compare", over("neural_ode", "jax", "ckad"), 1)


def stencils() -> Iterator[Target]:
    one, two = "ckad, threads=1", "ckad, threads=2"
    yield Target(
        "gray_scott: JAX with its threads / one thread",
        "compare",
        over("gray_scott", "jax", one),
        6,
    )
    for peer, most in (("numba", 0.7), ("c", 1.0)):
        figure = over("gray_scott", one, peer)
        text = f"gray_scott: one thread / adjoint by hand, {peer}"
        yield Target(text, "compare", figure, most=most)
    yield Target(
        "gray_scott: one thread / two threads", "compare", over("gray_scott", one, two), 1.6
    )
    for case in STENCILS[1:]:
        yield Target(f"{case}: JAX / ckad", "compare", over(case, "jax", "ckad"), 4)


def ratios() -> Iterator[Target]:
    for case in STENCILS:
        yield Target(f"{case}: gradient / value", "ratio", ratio(case), most=3.0)
    for name in FASTAD:
        most = 8.0 if name.startswith("prod") else 3.5
        case = f"fastad_{name}"
        yield Target(f"{case}: gradient / value", "ratio", ratio(case), most=most)


def growth() -> Iterator[Target]:
    for axis in ("steps", "cells"):
        yield Target(f"exponent along {axis}", "scaling", slope(axis), 0.9, 1.1)


def waiting() -> Iterator[Target]:
    for program, never in (("lorenz63", 1.5), ("gray_scott", 2.0)):
        for moment, most in (("never seen", never), ("seen before", 1.0), ("first use ever", 5)):
            text = f"{program}: first gradient, {moment}, s"
            yield Target(text, "latency", first(program, moment), most=most)
    yield Target("10⁴ scalar ops: compile, s", "latency", compile_seconds, most=3.0)
    yield Target(
        "exponent of compile time",
        "latency",
        lambda report: report["compile"]["native"]["exponent"],
        most=1.15,
    )
    yield Target(
        "call of a gradient in 3 scalars, µs",
        "latency",
        lambda report: 1e6 * report["call"]["native"]["seconds"],
        most=20.0,
    )


TARGETS = (*small_systems(), *stencils(), *ratios(), *growth(), *waiting())


def markdown(reports: Sequence[Report]) -> str:
    """One row per target; a later report of a kind replaces what an earlier one says."""
    return table(COLUMNS, [row(target, reports) for target in TARGETS]) + "\n"


def row(target: Target, reports: Sequence[Report]) -> tuple[str, ...]:
    figure = measured(target, reports)
    if figure is None:
        return target.text, target.asked(), "not measured", ""
    is_met = target.least <= figure <= target.most
    return target.text, target.asked(), f"{figure:.3g}", "yes" if is_met else "no"


def measured(target: Target, reports: Sequence[Report]) -> float | None:
    for report in reversed(reports):
        if report["kind"] == target.kind:
            try:
                return target.figure(report)
            except (KeyError, StopIteration):  # left out of this run
                continue
    return None
