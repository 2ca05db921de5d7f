"""First and second derivatives at special points of smooth functions, against mpmath."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest

from ckad.passes import simplify
from ckad.passes.adjoint import adjoint
from ckad.passes.tangent import tangent
from ckad.tape.builder import Builder
from ckad.tape.tape import Tape
from ckad.trace.tracing import record, take_apart

from .checks import ENGINES
from .special_arrays import ANGLES_AND_POWERS, LENGTHS_OF_VECTORS, PRODUCTS_AND_MATRICES
from .special_complex import COMPLEX
from .special_points import NUMBERS, Special

TABLE = (*NUMBERS, *LENGTHS_OF_VECTORS, *ANGLES_AND_POWERS, *PRODUCTS_AND_MATRICES, *COMPLEX)
#: relative to the sizes of the derivatives, 1 where they are smaller
CLOSE = 2e-13
DIGITS = 50


def along(special: Special, x: np.ndarray, v: np.ndarray) -> list[float]:
    """The first and the second derivative of the smooth function at x in the direction v."""
    start, step = ([mp.mpf(float(e)) for e in a.ravel()] for a in (x, v))

    def moved(t: Any) -> Any:
        return special.smooth(*(a + t * b for a, b in zip(start, step, strict=True)))

    return [float(mp.diff(moved, 0, n)) for n in (1, 2)]


def directions(x: np.ndarray) -> list[np.ndarray]:
    """Those of some elements alone, and one of all."""
    units = np.eye(x.size).reshape(x.size, *x.shape)[:9]
    return [*units, np.linspace(0.6, 1.7, x.size).reshape(x.shape)]


def ways(special: Special, x: np.ndarray) -> Tape:
    """From (x, v) to the first derivative along v both ways, and the second in all ways."""

    def scalar(x: Any) -> Any:
        out = special.function(x)
        return np.sum(out * np.arange(1.0, np.size(out) + 1).reshape(np.shape(out)))

    tape = simplify(record(scalar, take_apart((x,))).tape)
    pushed, pulled = tangent(tape), adjoint(tape)
    b = Builder()
    point, v = (b.input(tape.input_types[0]) for _ in "xv")
    one = b.const(np.float64(1))

    def put(derivative: Tape, *operands: int) -> int:
        env = dict(zip(derivative.inputs.tolist(), operands, strict=True))
        for k in range(len(derivative)):
            if k not in env:
                env[k] = b.copy_row(derivative, k, env)
        return env[int(derivative.outputs[-1])]

    gradients = [
        put(pulled, point, one),
        put(adjoint(pushed, [0], [1]), point, v, one),
        put(tangent(pulled, [0]), point, one, v),
    ]
    axes = range(len(tape.input_types[0].shape))
    products = [b.sum(b.mul(g, v), attrs=axes) for g in gradients]
    twice = put(tangent(pushed, [0]), point, v, v)
    return b.tape([products[0], put(pushed, point, v), *products[1:], twice])


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "numpy"])
@pytest.mark.parametrize("special", TABLE, ids=lambda s: s.name)
def test_derivatives_at_special_points(special: Special, engine: str) -> None:
    run = ENGINES[engine]
    with mp.workdps(DIGITS):
        for point in special.points:
            x = np.asarray(point, float)
            tape = ways(special, x)
            for v in directions(x):
                first, second = along(special, x, v)
                want = [first, first, second, second, second]
                got = [float(w) for w in run(tape, x, v)]
                sizes = np.maximum(1.0, np.abs(want))
                off = np.abs(np.subtract(got, want)) / sizes
                assert np.all(off <= CLOSE), (point, v.tolist(), got, want)
