"""Derivatives of NumPy functions: against differences of NumPy, and adjoint to each other."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from ckad import trees
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.trace.arguments import take_apart
from ckad.trace.record import record

from .case import Case
from .checks import ENGINES, Program, check_jvp, check_second_order, check_vjp, run_joined
from .test_numpy_semantics import EXPRESSIONS, function_of

#: the last that NumPy takes counts; the first three are for functions that ask for their lengths
SHAPES = [(5, 5, 5), (1, 3), (3, 3), (5,), (3, 4), (4, 4), (2, 3, 4)]
#: differences say nothing: single precision, steps of 0.01, a division by zero
NOT_SMOOTH = {"np.around(x, 2)", "np.nan_to_num(1 / (x * 0), posinf=5, neginf=-5)"}
SMOOTH = [e for e in EXPRESSIONS if "float32" not in e and e not in NOT_SMOOTH]


@dataclass(frozen=True, eq=False)
class Recorded(Case):
    """A case whose tape is what a Python function records."""

    function: Callable[..., Any] = np.positive

    def tape(self) -> Tape:
        return record(self.function, take_apart(self.arrays)).tape


def recorded(name: str, function: Callable[..., Any], *arrays: np.ndarray) -> Recorded:
    def expected(*xs: Any) -> tuple[np.ndarray, ...]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = function(*[x.copy() for x in xs])
        return tuple(np.asarray(leaf) for leaf in trees.flatten(out)[0])

    return Recorded(
        name, Op.INPUT, arrays, lambda b: [], expected, complex=False, function=function
    )


def in_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Integers and truths times one: between their jumps they are constant, of derivative zero."""
    return lambda x: [1.0 * leaf for leaf in trees.flatten(function(x))[0]]


@cache
def program(expression: str) -> Program:
    """The expression on the last shape that NumPy takes; results without a float become floats."""
    for function in (function_of(expression), in_floats(function_of(expression))):
        for shape in SHAPES[::-1]:
            rng = np.random.default_rng(crc32(expression.encode()))
            x = rng.uniform(0.4, 1.9, shape)  # no ties, no kinks
            case = recorded(expression, function, x)
            try:
                results = case.expected(x)
            except Exception:
                continue
            if any(r.dtype.kind == "f" and np.isfinite(r).all() for r in results):
                return Program(case)
    raise AssertionError(f"no shape of the list gives {expression} a finite result")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("expression", SMOOTH)
def test_derivatives(expression):
    made = program(expression)
    for engine in ENGINES.values():
        run = run_joined(engine, [made])
        check_jvp(run, made)
        check_vjp(run, made)


SECOND_ORDER = {
    "prod": lambda x: np.prod(x, (0, 1)),
    "cumprod": lambda x: np.cumprod(x, 1),
    "std": lambda x: np.std(x, 0, ddof=1),
    "norm": lambda x: np.linalg.norm(x, axis=1) ** 3,
    "max": lambda x: np.max(x * x, 0) - np.ptp(x),
    "einsum": lambda x: np.einsum("ij,kj,kl->il", x, x * x, x),
    "interp": lambda x: np.interp(x, np.cumsum(x[0]), x[1]),
    "interp by periods": lambda x: np.interp(x, 3.1 * x[0], x[1], period=1.9),
    "gradient": lambda x: np.gradient(x, np.cumsum(x[0]), axis=1, edge_order=2),
    "convolve": lambda x: np.convolve(x[0], x[1], "same"),
    "trapezoid": lambda x: np.trapezoid(x * x, x),
    "vander": lambda x: np.vander(x[0], 4),
}


@pytest.mark.parametrize("name", SECOND_ORDER)
def test_second_order(name):
    x = np.random.default_rng(7).uniform(0.4, 1.9, (3, 4))
    check_second_order(ENGINES["numpy"], Program(recorded(name, SECOND_ORDER[name], x)))


# --- documented subgradients -------------------------------------------------------------------


def gradient_of(function: Callable[..., Any], x: Any) -> np.ndarray:
    made = Program(recorded("subgradient", function, np.asarray(x, float)))
    return made.vjp(ENGINES["numpy"], [np.ones_like(np.asarray(w)) for w in made.w])[0]


SUBGRADIENTS = [
    ("norm at the origin", np.linalg.norm, [0.0, 0.0], [0.0, 0.0]),
    ("rows of norm 0", lambda x: np.linalg.norm(x, axis=1), [[0, 0], [3, 4]], [[0, 0], [0.6, 0.8]]),
    ("std of equal numbers", np.std, [2.0, 2.0], [0.0, 0.0]),
    ("max shared by ties", np.max, [1.0, 3.0, 3.0], [0.0, 0.5, 0.5]),
    ("min shared by ties", lambda x: x.min(), [1.0, 1.0, 3.0], [0.5, 0.5, 0.0]),
    ("clip at its bounds", lambda x: np.clip(x, 0, 1), [-1, 0, 0.5, 1, 2], [0, 0.5, 1, 0.5, 0]),
    ("abs at 0", lambda x: np.abs(x), [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]),
    ("1-norm at 0", lambda x: np.linalg.norm(x, 1), [-2.0, 0.0], [-1.0, 0.0]),
    ("prod with one zero", np.prod, [2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
    ("prod with two zeros", np.prod, [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ("cumprod with a zero", lambda x: np.cumprod(x)[-1], [2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
    ("where hides nan", lambda x: np.where(x > 0, x, 0.0), [-1.0, 2.0], [0.0, 1.0]),
    ("interp", lambda x: np.interp(x, [0, 1], [0, 5]), [-1, 0, 0.5, 1, 2], [0, 5, 5, 0, 0]),
    ("sinc at 0", np.sinc, [0.0], [0.0]),
    ("nan_to_num", np.nan_to_num, [1.0, np.nan, np.inf], [1.0, 0.0, 0.0]),
    ("round", np.round, [0.4, 1.6], [0.0, 0.0]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "function", "x", "expected"), SUBGRADIENTS, ids=[s[0] for s in SUBGRADIENTS]
)
def test_documented_subgradient(name, function, x, expected):
    np.testing.assert_allclose(gradient_of(function, x), expected, atol=1e-15)
