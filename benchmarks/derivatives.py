"""Sparse Jacobians in units of an evaluation, Hessian products in units of a gradient."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import ckad
from benchmarks.machine import heading
from benchmarks.report import describe, duration, table

OPTIONS: dict[str, Any] = {"engine": "native", "threads": 1}
#: Directions that go through one sweep, and what is measured of them and of one.
SEEDS = 8
PAIRS = ("several", "hvp"), ("jvps", "jvp"), ("vjps", "vjp")


def reaction_1d(u):
    """A bistable front on a line: cubic reaction, diffusion, fixed ends."""
    out = u * (1.0 - u) * (u - 0.2)
    out[1:-1] += 0.3 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return out


def reaction_2d(w):
    """Gray and Scott's two species on a periodic square."""
    u, v = w[0], w[1]

    def laplacian(a):
        return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a

    r = u * v * v
    return np.stack([0.16 * laplacian(u) - r + 0.04 * (1 - u), 0.08 * laplacian(v) + r - 0.1 * v])


def lorenz(x):
    for _ in range(5_000):
        a, b, c = x[0], x[1], x[2]
        x = x + 0.005 * np.stack([10.0 * (b - a), a * (28.0 - c) - b, a * b - 8.0 / 3.0 * c])
    return x


def burgers(u):
    for _ in range(500):
        f = 0.5 * u * u
        u = u - 0.1 * (np.roll(f, -1) - np.roll(f, 1))
        u = u + 0.2 * (np.roll(u, -1) - 2.0 * u + np.roll(u, 1))
    return u


def gray_scott(w):
    for _ in range(100):
        w = w + reaction_2d(w)
    return w


def kuramoto(angles):
    for _ in range(200):
        pulls = np.sin(np.roll(angles, 1) - angles) + np.sin(np.roll(angles, -1) - angles)
        angles = angles + 0.1 * pulls
    return angles


class Problem(NamedTuple):
    fun: Callable[..., Any]
    shape: tuple[int, ...]
    tiny: tuple[int, ...]

    def point(self, tiny: bool) -> np.ndarray:
        shape = self.tiny if tiny else self.shape
        return 0.5 + 0.3 * np.sin(np.arange(np.prod(shape))).reshape(shape)


JACOBIANS = {
    "reaction-diffusion 1-D": Problem(reaction_1d, (100_000,), (50,)),
    "Gray-Scott 2-D": Problem(reaction_2d, (2, 316, 316), (2, 6, 6)),
}
PRODUCTS = {
    "Lorenz": Problem(lorenz, (3,), (3,)),
    "Burgers": Problem(burgers, (1_000,), (12,)),
    "Gray-Scott": Problem(gray_scott, (2, 64, 64), (2, 4, 4)),
    "Kuramoto": Problem(kuramoto, (1_000,), (12,)),
}


def derivatives(tiny: bool, rounds: int) -> dict[str, Any]:
    jacobians = {name: jacobian_times(p, tiny, rounds) for name, p in JACOBIANS.items()}
    products = {name: product_times(p, tiny, rounds) for name, p in PRODUCTS.items()}
    return heading("derivatives") | {"jacobians": jacobians, "products": products}


def jacobian_times(problem: Problem, tiny: bool, rounds: int) -> dict[str, Any]:
    x = problem.point(tiny)
    evaluate = ckad.jit(problem.fun, **OPTIONS)
    jacobian = ckad.jacobian(problem.fun, sparse=True, **OPTIONS)
    calls = {"NumPy": problem.fun, "evaluation": evaluate, "Jacobian": jacobian}
    began = time.perf_counter()
    found = jacobian(x)
    first = time.perf_counter() - began
    seeds = min(ckad.sparsity(problem.fun)(x).colours)
    size = {"rows": found.shape[0], "elements": int(found.nnz), "seeds": seeds, "first": first}
    return size | in_turn({k: lambda f=f: f(x) for k, f in calls.items()}, rounds)


def product_times(problem: Problem, tiny: bool, rounds: int) -> dict[str, Any]:
    """Of the sum of squares of a state, and of the state itself."""
    x = problem.point(tiny)

    def fun(x: Any) -> Any:
        return np.sum(problem.fun(x) ** 2)

    directions = np.random.default_rng(0).normal(size=(x.size, SEEDS))
    v, one = directions[:, 0].reshape(x.shape), directions[:, :1]
    gradient = ckad.value_and_grad(fun, **OPTIONS)
    hessian = ckad.linear_operator(ckad.grad(fun, **OPTIONS), x)
    jacobian = ckad.linear_operator(problem.fun, x, **OPTIONS)
    return in_turn(
        {
            "gradient": lambda: gradient(x),
            "hvp": lambda: ckad.hvp(fun, (x,), (v,), **OPTIONS),
            "several": lambda: hessian @ directions,
            "Gauss-Newton": lambda: ckad.gauss_newton(fun, (x,), (v,), **OPTIONS),
            "jvp": lambda: jacobian @ one,
            "jvps": lambda: jacobian @ directions,
            "vjp": lambda: jacobian.rmatmat(one),
            "vjps": lambda: jacobian.rmatmat(directions),
        },
        rounds,
    )


def in_turn(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, Any]:
    """Medians of the seconds of a processor that a call of each takes."""
    for call in calls.values():
        call()
    turns: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.process_time()
            call()
            turns[name].append(time.process_time() - began)
    return {name: median(seconds) for name, seconds in turns.items()}


def markdown(record: Mapping[str, Any]) -> str:
    titles = ("Jacobian", "elements", "seeds", "NumPy", "evaluation", "Jacobian ", "/ evaluation")
    jacobians = [
        (
            f"{name}, {t['rows']:,} rows", f"{t['elements']:,}", str(t["seeds"]),
            *(duration(t[k]) for k in ("NumPy", "evaluation", "Jacobian")),
            f"{t['Jacobian'] / t['evaluation']:.1f}",
        )
        for name, t in record["jacobians"].items()
    ]  # fmt: skip
    titles_2 = (
        "product",
        "gradient",
        "hvp",
        "/ gradient",
        f"{SEEDS} hvps / one",
        f"{SEEDS} jvps / one",
        f"{SEEDS} vjps / one",
        "Gauss-Newton",
    )
    products = [
        (
            name, duration(t["gradient"]), duration(t["hvp"]), f"{t['hvp'] / t['gradient']:.2f}",
            *(f"{t[many] / t[one]:.2f}" for many, one in PAIRS), duration(t["Gauss-Newton"]),
        )
        for name, t in record["products"].items()
    ]  # fmt: skip
    return f"{describe(record)}\n\n{table(titles, jacobians)}\n\n{table(titles_2, products)}\n"
