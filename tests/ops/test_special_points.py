"""First and second derivatives at special points of smooth functions, against mpmath."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import ckad
from ckad.passes.pipeline import adjoint_of_tape
from ckad.passes.simplify import simplify
from ckad.passes.tangent import tangent
from ckad.passes.untape import untape
from ckad.tape.builder import Builder
from ckad.tape.tape import Tape
from ckad.trace.arguments import take_apart
from ckad.trace.record import record

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
    pushed, pulled = tangent(tape), adjoint_of_tape().run(tape)
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
        put(adjoint_of_tape([0], [1]).run(pushed), point, v, one),
        put(tangent(untape(pulled), [0]), point, one, v),
    ]
    axes = range(len(tape.input_types[0].shape))
    products = [b.sum(b.mul(g, v), attrs=axes) for g in gradients]
    twice = put(tangent(pushed, [0]), point, v, v)
    return b.tape([products[0], put(pushed, point, v), *products[1:], twice])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "numpy"])
@pytest.mark.parametrize("special", TABLE, ids=lambda s: s.name)
def test_derivatives_at_special_points(special: Special, engine: str) -> None:
    tapes: dict[tuple[int, ...], Tape] = {}
    with mp.workdps(DIGITS):
        for point in special.points:
            x = np.asarray(point, float)
            if x.shape not in tapes:
                tapes[x.shape] = ways(special, x)
            for v in directions(x):
                first, second = along(special, x, v)
                want = [first, first, second, second, second]
                got = [float(w) for w in ENGINES[engine](tapes[x.shape], x, v)]
                sizes = np.maximum(1.0, np.abs(want))
                off = np.abs(np.subtract(got, want)) / sizes
                assert np.all(off <= CLOSE), (point, v.tolist(), got, want)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_an_infinite_slope_stays_with_its_element(engine: str) -> None:
    def roots(x: Any) -> Any:
        return np.sum(np.sqrt(x))

    second = ckad.hessian(roots, engine=engine)(np.array([0.0, 1.0, 4.0]))
    np.testing.assert_array_equal(second, np.diag([-np.inf, -0.25, -1 / 32]))


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_special_points_inside_of_a_loop(engine: str) -> None:
    """The sum over steps of k r r, r = norm(x), and softplus(x), at x = 0."""

    def steps(x: Any) -> Any:
        total = 0.0
        for k in range(1, 5):
            r = np.linalg.norm(x)
            total = total + k * r * r + np.sum(np.logaddexp(0, x))
        return total

    x = np.zeros(2)
    np.testing.assert_allclose(ckad.grad(steps, engine=engine)(x), [2.0, 2.0], rtol=1e-14)
    second = ckad.hessian(steps, engine=engine)(x)
    np.testing.assert_allclose(second, 21.0 * np.eye(2), rtol=1e-14, atol=1e-14)
    moved = ckad.jvp(ckad.grad(steps, engine=engine), (x,), (np.ones(2),), engine=engine)[1]
    np.testing.assert_allclose(moved, [21.0, 21.0], rtol=1e-14)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_factor_that_moves_beside_a_root_that_does_not(engine: str) -> None:
    """The root is of the step's number alone; what is squared is a slice of its product."""

    def steps(x: Any) -> Any:
        for i in range(6):
            root = np.sqrt(i * np.ones(4))
            x = x + 1e-3 * np.sum((x * root)[1:3] ** 2)
        return np.sum(x)

    x, h = np.linspace(0.5, 1.0, 4), 1e-30
    _, moved = ckad.jvp(steps, (x,), (np.ones(4),), engine=engine)
    np.testing.assert_allclose(moved, np.imag(steps(x + 1j * h)) / h, rtol=1e-13)
    second = ckad.hvp(steps, (x,), (np.ones(4),), engine=engine)
    pushed = ckad.jvp(ckad.grad(steps, engine=engine), (x,), (np.ones(4),), engine=engine)[1]
    np.testing.assert_allclose(second, pushed, rtol=1e-13)


#: What is made of kinks and not known as a whole: docs/mathematics.md
CONVENTIONS = {
    "matrix product of roots": (lambda v: np.abs(v) @ np.abs(v), 0.0, 2.0),  # as it is
    "square of a maximum": (lambda v: np.sum(np.maximum(v, -v) ** 2), 0.0, 0.0),
    "cube of a cubic root": (lambda v: np.sum(np.cbrt(v) ** 3), 0.0, np.nan),
    "xlogy of 0 and 0": (lambda v: np.sum(scipy.special.xlogy(v, v)), 0.0, 0.0),
    "complex power": (lambda v: np.real((v[0] + 0j) ** (1.5 + 0 * v[0])), 0.0, 0.0),
    "complex sign": (lambda v: np.real(np.sign(v[0] + 0j)), 0.0, 0.0),
    "angle": (lambda v: np.arctan2(v[0], v[0]), 0.0, 0.0),
    "sigmoid by abs": (lambda v: np.sum(_sigmoid(np.exp(-np.abs(v)), v)), 0.0, 0.0),
    "odd function by abs": (lambda v: np.sum(np.sign(v) * np.tanh(np.abs(v))), 0.0, 0.0),
    "ELU by minimum": (lambda v: np.sum(np.exp(np.minimum(v, 0)) - 1), 0.5, 0.25),
}


def _sigmoid(decay: Any, v: Any) -> Any:
    return np.where(v >= 0, 1.0, decay) / (1.0 + decay)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_documented_convention(name: str) -> None:
    function, first, second = CONVENTIONS[name]
    x = np.zeros(1)
    np.testing.assert_array_equal(ckad.grad(function, engine="native")(x), [first])
    np.testing.assert_array_equal(ckad.hessian(function, engine="native")(x), [[second]])


@pytest.mark.parametrize("name", "y0 y1 i0 i1 i0e i1e k0 k1 k0e k1e".split())
def test_bessel_functions_of_order_0_and_1_near_0_and_far_from_it(name: str) -> None:
    function = getattr(scipy.special, name)
    both = 1 if name.startswith("i") else 0
    points = [1e-320, 1e-300, 1e-151, 1e-149, 0.5, 2.0]
    if not name.startswith("y"):
        points += [3e9, 1e12, 1e308]
    x = np.array([*points, *(-np.array(points) if both else ())])
    with np.errstate(over="ignore"):
        expected = function(x)
    computed = ckad.jit(lambda x: function(x), engine="vm")(x)
    np.testing.assert_allclose(computed, expected, rtol=1e-13, atol=1e-307)
