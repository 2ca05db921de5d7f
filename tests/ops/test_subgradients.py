"""What ckad returns where there is no derivative, as the rule blocks document it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ckad.passes.adjoint import adjoint
from ckad.passes.tangent import tangent
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.types import type_of

from .case import one_row
from .checks import ENGINES, extrapolated

pytestmark = pytest.mark.parametrize("engine", ENGINES)
Build = Callable[..., Sequence[int]]


def gradients(engine: str, build: Build, *points: object) -> list[np.ndarray]:
    """Per input the sum of the derivatives of all outputs; both modes have to say the same."""
    arrays = [np.asarray(p, float) for p in points]
    b = Builder()
    tape = b.tape(build(b, *(b.input(type_of(a)) for a in arrays)))
    run = ENGINES[engine]
    ones = [np.ones(t.shape) for t in tape.output_types]
    reverse = run(adjoint(tape), *arrays, *ones)
    for k, a in enumerate(arrays):
        for place in np.ndindex(a.shape):
            v = np.zeros(a.shape)
            v[place] = 1.0
            pushed = run(tangent(tape, [k]), *arrays, v)[len(ones) :]
            total = sum(float(t.sum()) for t in pushed)
            np.testing.assert_allclose(total, reverse[k][place], rtol=1e-13, atol=0)
    return reverse


def same(got: np.ndarray, want: object) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=0)


def test_abs_and_sign_are_flat_at_zero(engine: str) -> None:
    same(gradients(engine, one_row(Op.ABS), [0.0, -0.0, 2.0, -3.0])[0], [0, 0, 1, -1])
    same(gradients(engine, one_row(Op.SIGN), [0.0, 2.0])[0], [0, 0])
    same(gradients(engine, one_row(Op.COPYSIGN), [0.0, 2.0], [-1.0, -1.0])[0], [0, -1])


@pytest.mark.parametrize("op", [Op.MAXIMUM, Op.MINIMUM], ids=lambda op: op.name)
def test_ties_are_shared_by_both_operands(engine: str, op: Op) -> None:
    first = op is Op.MAXIMUM
    dx, dy = gradients(engine, one_row(op), [1.0, 0.0, 3.0], [1.0, -0.0, 2.0])
    same(dx, [0.5, 0.5, float(first)])
    same(dy, [0.5, 0.5, float(not first)])


def test_clip_gives_one_half_at_its_bounds(engine: str) -> None:
    def build(b: Builder, x: int) -> list[int]:
        return [b.minimum(b.maximum(x, b.full_like(x, -1.0)), b.full_like(x, 1.0))]

    same(gradients(engine, build, [-2.0, -1.0, 0.3, 1.0, 2.0])[0], [0, 0.5, 1, 0.5, 0])


@pytest.mark.parametrize("op", [Op.REDUCE_MAX, Op.REDUCE_MIN], ids=lambda op: op.name)
def test_extrema_are_shared_by_all_that_attain_them(engine: str, op: Op) -> None:
    x = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0]])
    x = x if op is Op.REDUCE_MAX else -x
    third = 1.0 / 3.0
    same(gradients(engine, one_row(op, (1,)), x)[0], [[0.5, 0.5, 0], [third] * 3])
    same(gradients(engine, one_row(op, (0, 1)), x)[0], [[0, 0, 0], [third] * 3])


def test_hypot_is_flat_at_the_origin(engine: str) -> None:
    dx, dy = gradients(engine, one_row(Op.HYPOT), [0.0, 3.0, 0.0], [0.0, 4.0, -2.0])
    same(dx, [0, 0.6, 0])
    same(dy, [0, 0.8, -1])


def test_powers_at_base_zero_and_exponent_zero(engine: str) -> None:
    x, y = [0.0, 0.0, 0.0, 2.0, -2.0], [0.0, 1.0, 2.0, 0.0, 2.0]
    same(gradients(engine, lambda b, x: [b.pow(x, b.const(np.array(y)))], x)[0], [0, 1, 0, 0, -4])
    dx, dy = gradients(engine, one_row(Op.POW), x[:4], y[:4])
    same(dx, [0, 1, 0, 0])
    same(dy, [0, 0, 0, np.log(2.0)])
    same(gradients(engine, one_row(Op.POW), 0.0, 0.5), [np.inf, 0])


def test_second_derivative_of_a_square_at_zero(engine: str) -> None:
    b = Builder()
    x, y = b.input(type_of(np.float64(0))), b.const(np.float64(2))
    tape = b.tape([b.pow(x, y)])
    second = adjoint(tangent(tape), [0], [1])
    same(ENGINES[engine](second, 0.0, 1.0, 1.0)[0], 2.0)


def test_product_with_zeros(engine: str) -> None:
    x = [[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]]
    want = [[12, 8, 6], [0, 8, 0], [0, 0, 0], [0, 0, 0]]
    same(gradients(engine, one_row(Op.PROD, (1,)), x)[0], want)


def test_second_order_of_a_product_with_two_zeros(engine: str) -> None:
    """d2/dx0 dx2 of x0 x1 x2 at (0, 3, 0) is 3."""
    x = np.array([0.0, 3.0, 0.0])
    b = Builder()
    tape = b.tape([b.prod(b.input(type_of(x)), attrs=(0,))])
    second = adjoint(tangent(tape), [0], [1])
    same(ENGINES[engine](second, x, np.array([1.0, 0.0, 0.0]), 1.0)[0], [0, 0, 3])


@pytest.mark.parametrize("x", [[2.0, 0.0, 3.0, 4.0], [0.0, 2.0, 0.0, 5.0]], ids=["one", "two"])
def test_cumulative_product_with_zeros(engine: str, x: list[float]) -> None:
    """As the recurrence p[i] = x[i] p[i - 1] that starts from p = 1."""
    seed = np.array([1.0, 0.0, 0.0, 0.0, 0.0])

    def build(b: Builder, x: int) -> list[int]:
        factors = b.concat(b.const(np.ones(1)), x, attrs=(0,))
        return [b.recurrence(factors, b.const(seed), attrs=(0, 0))]

    (got,) = gradients(engine, build, x)
    for k in range(4):
        step = np.eye(4)[k]

        def move(t: float, step: np.ndarray = step) -> list[np.ndarray]:
            return [np.cumprod(np.array(x) + t * step).sum()]

        np.testing.assert_allclose(got[k], extrapolated(move)[0], rtol=1e-10, atol=1e-10)


def test_roots_are_steep_at_zero(engine: str) -> None:
    same(gradients(engine, one_row(Op.SQRT), 0.0)[0], np.inf)
    same(gradients(engine, one_row(Op.CBRT), 0.0)[0], np.inf)


def test_jumps_have_derivative_zero(engine: str) -> None:
    for op in (Op.FLOOR, Op.CEIL, Op.TRUNC, Op.RINT):
        same(gradients(engine, one_row(op), [0.0, 0.5, 1.0, -1.5])[0], np.zeros(4))


def test_what_is_stopped_is_a_constant(engine: str) -> None:
    same(gradients(engine, one_row(Op.STOP), [0.0, -0.5, np.inf, 1e300])[0], np.zeros(4))


def test_of_repeated_writes_only_the_last_counts(engine: str) -> None:
    def build(b: Builder, x: int, y: int) -> list[int]:
        return [b.scatter(x, b.const(np.array([1, 1, 2, 1])), y, attrs=(0, 0))]

    dx, dy = gradients(engine, build, np.zeros(4), np.ones(4))
    same(dx, [1, 0, 0, 1])
    same(dy, [0, 0, 1, 1])
