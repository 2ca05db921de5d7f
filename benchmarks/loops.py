"""Loops over elements: ckad's value and gradient in units of the same function under ``@njit``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numba
import numpy as np

import ckad
from benchmarks.compare import Timing
from benchmarks.machine import heading
from benchmarks.programs import index_loops
from benchmarks.report import describe, duration, table

COLUMNS = ("program", "njit", "value", "gradient", "value / njit", "gradient / njit")
#: The value may differ by the rounding of sums in another order.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Program:
    """A function of arrays, and arguments of a size."""

    fun: Callable[..., Any]
    arguments: Callable[[int], Sequence[np.ndarray]]
    size: int
    tiny: int


def _grids(n: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.random((n, n)) for _ in range(count)]


def _system(n: int) -> list[np.ndarray]:
    a, c, more, d = np.random.default_rng(n).random((4, n))
    return [a, a + c + 1.0 + more, c, d]


PROGRAMS = {
    "jacobi2d": Program(index_loops.jacobi2d, lambda n: _grids(n, 2), 200, 10),
    "seidel2d": Program(index_loops.seidel2d, lambda n: _grids(n, 1), 200, 10),
    "thomas": Program(index_loops.thomas, _system, 100_000, 90),
    "lu": Program(index_loops.lu, lambda n: [_grids(n, 1)[0] + n * np.eye(n)], 120, 9),
    "n_body": Program(
        index_loops.n_body, lambda n: list(np.random.default_rng(n).random((2, n, 3))), 100, 10
    ),
}


def loops(
    names: Sequence[str], tiny: bool, timing: Timing, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Times of each program; `options` are those of ``ckad.value_and_grad``."""
    record = heading("loops", ("ckad", "numba")) | {"options": dict(options), "programs": {}}
    for name in names:
        record["programs"][name] = measure(PROGRAMS[name], tiny, timing, options)
    return record


def measure(
    program: Program, tiny: bool, timing: Timing, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Seconds of a call of each kind, in turn."""
    size = program.tiny if tiny else program.size
    arguments = program.arguments(size)
    argnums = tuple(range(len(arguments)))
    calls = {
        "njit": numba.njit(program.fun),
        "value": ckad.jit(program.fun, **options),
        "gradient": ckad.value_and_grad(program.fun, argnums, **options),
    }
    values = [calls["njit"](*arguments), calls["value"](*arguments)]
    values.append(calls["gradient"](*arguments)[0])
    if not np.allclose(values, values[0], rtol=TOLERANCE):
        raise ValueError(f"{program.fun.__name__}: the values {values} differ")
    turns: dict[str, list[float]] = {kind: [] for kind in calls}
    for _ in range(timing.rounds):
        for kind, call in calls.items():
            turns[kind].append(_seconds(call, arguments, timing.turn_seconds))
    return {"size": size, "turns": turns} | {kind: median(t) for kind, t in turns.items()}


def _seconds(call: Callable[..., Any], arguments: Sequence[np.ndarray], turn: float) -> float:
    """The mean time of as many calls as fill a turn, after one that is not counted."""
    call(*arguments)
    start, n = perf_counter(), 0
    while not n or perf_counter() - start < turn:
        call(*arguments)
        n += 1
    return (perf_counter() - start) / n


def markdown(record: Mapping[str, Any]) -> str:
    rows = []
    for name, found in record["programs"].items():
        times = [duration(found[kind]) for kind in ("njit", "value", "gradient")]
        ratios = [f"{found[kind] / found['njit']:.2f}" for kind in ("value", "gradient")]
        rows.append((f"{name} (n={found['size']:,})", *times, *ratios))
    return f"{describe(record)}\n\n{table(COLUMNS, rows)}\n"
