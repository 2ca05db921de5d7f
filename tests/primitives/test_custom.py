"""`ckad.custom_vjp`, `ckad.custom_jvp` and `ckad.checkpoint`, as programs for JAX have them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import ckad
from ckad.errors import DifferentiationError, GradientCheckError, TraceError
from ckad.tape.ops import Op
from tests.primitives.test_primitive import ENGINES, X, raised


@ckad.custom_jvp
def softplus(x):
    return np.log1p(np.exp(x))


@softplus.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return softplus(x), t / (1 + np.exp(-x))


@ckad.custom_vjp
def root(a):
    x = a
    while abs(x * x - a) > 1e-13 * a:
        x = 0.5 * (x + a / x)
    return x


def _root_fwd(a):
    x = root(a)
    return x, x


root.defvjp(_root_fwd, lambda x, ct: (ct / (2 * x),))


@ckad.custom_vjp
def clipped(x, low, high):
    return x


clipped.defvjp(
    lambda x, low, high: (x, (low, high)),
    lambda res, ct: (np.clip(ct, res[0], res[1]), None, None),
)


def test_outside_of_transformations_they_are_the_functions():
    assert softplus(0.0) == np.log(2.0)
    assert root(9.0) == pytest.approx(3.0)
    assert softplus.__name__ == "softplus"
    assert "custom_jvp softplus" in repr(softplus)


@pytest.mark.parametrize("engine", ENGINES)
def test_both_modes_and_second_order(engine):
    ckad.testing.check_grads(lambda x: softplus(x) * x, (X,), engine=engine)
    ckad.testing.check_grads(lambda a: root(a) + a, (9.0,), engine=engine)
    ckad.testing.check_grads(softplus, (X,), order=2)
    ckad.testing.check_grads(root, (9.0,), order=2, rtol=1e-5)


def test_the_rule_is_what_is_used():
    gradient = ckad.grad(lambda x: np.sum(x**2 * clipped(x, -1.0, 1.0)))(X)
    np.testing.assert_allclose(gradient, 2 * X**2 + np.clip(X**2, -1, 1), rtol=1e-14)
    assert ckad.grad(lambda x: softplus(x) ** 2)(800.0) == np.inf
    assert ckad.grad(softplus)(-800.0) == 0.0


def test_a_loop_before_the_rule_keeps_nothing():
    tape = ckad.value_and_grad(root).compiled(9.0).tape
    assert [row.op for row in tape.rows if row.op in (Op.TAPED_LOOP, Op.REVERSE_LOOP)] == []
    assert sum(row.op is Op.LOOP for row in tape.rows) == 1
    assert not any(row.op is Op.CALL for row in tape.rows)


def test_in_a_loop_under_budgets():
    def run(x):
        for k in range(60):
            x = 0.5 * softplus(x) + clipped(0.1 * x * k, -2.0, 2.0) / (1 + k)
        return np.sum(x)

    x = np.linspace(-1, 2, 40)
    for engine in ENGINES:
        kept = ckad.grad(run, engine=engine)(x)
        for memory in ("30 KB", "60 KB"):
            assert ckad.grad(run, engine=engine, memory=memory)(x).tobytes() == kept.tobytes()


def test_in_a_branch_and_a_while():
    def run(x):
        while np.sum(x) < 30.0:
            x = softplus(x) + x if x[0] < 3.0 else root(x[1]) + x
        return np.sum(x**2)

    def plain(x):
        while np.sum(x) < 30.0:
            x = np.log1p(np.exp(x)) + x if x[0] < 3.0 else np.sqrt(x[1]) + x
        return np.sum(x**2)

    for engine in ENGINES:
        value, gradient = ckad.value_and_grad(run, engine=engine)(X)
        assert value == pytest.approx(plain(X), rel=1e-12)
        np.testing.assert_allclose(gradient, ckad.grad(plain)(X), rtol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_several_results_and_arguments(engine):
    @ckad.custom_vjp
    def polar(x, y):
        return np.hypot(x, y), {"angle": np.arctan2(y, x), "quadrant": np.where(x > 0, 1, 2)}

    def fwd(x, y):
        return polar(x, y), (x, y)

    def bwd(res, ct):
        (x, y), r = res, np.hypot(*res)
        by_r, by_angle = ct[0] / r, ct[1]["angle"] / r**2
        return by_r * x - by_angle * y, by_r * y + by_angle * x

    polar.defvjp(fwd, bwd)

    def run(x, y):
        r, more = polar(x, y)
        return np.sum(r**2 * more["angle"] * more["quadrant"])

    ckad.testing.check_grads(run, (X, X[::-1] + 0.1), engine=engine, order=2)


def test_arguments_that_are_not_differentiated():
    @partial(ckad.custom_jvp, nondiff_argnums=(0, 2))
    def apply(f, x, n):
        for _ in range(n):
            x = f(x)
        return x

    @apply.defjvp
    def _(f, n, primals, tangents):
        (x,), (t,) = primals, tangents
        return apply(f, x, n), 10.0 * n * t

    assert ckad.grad(lambda x: apply(np.sin, x, 3))(0.5) == 30.0
    assert ckad.grad(lambda x: apply(np.sin, x, 2))(0.5) == 20.0

    @partial(ckad.custom_vjp, nondiff_argnums=(1,))
    def scaled(x, name):
        return x * (2.0 if name == "two" else 3.0)

    scaled.defvjp(lambda x, name: (scaled(x, name), x), lambda name, x, ct: (ct * len(name) * x,))
    assert ckad.grad(lambda x: scaled(x, "two") + scaled(x, "three"))(1.0) == 8.0
    said = raised(DifferentiationError, ckad.grad(lambda x: scaled(x, x)), 1.0)
    assert "nondiff_argnums" in said


def test_a_value_from_around_is_refused_only_if_it_moves():
    def run(x, y):
        f = ckad.custom_jvp(lambda x: x * y)
        f.defjvp(lambda p, t: (f(*p), t[0] * 7.0))
        return f(x)

    assert ckad.grad(run)(2.0, 3.0) == 7.0
    for call in (ckad.grad(run, 1), lambda x, y: ckad.jvp(run, (x, y), (0.0, 1.0))):
        assert "around it" in raised(DifferentiationError, call, 2.0, 3.0)


def test_missing_and_wrong_rules():
    bare = ckad.custom_vjp(lambda x: x * 2)
    assert ckad.jit(bare)(1.0) == 2.0
    assert "no derivative" in raised(DifferentiationError, ckad.grad(bare), 1.0)
    bare.defvjp(lambda x: x, lambda res, ct: (ct,))
    assert "(out, residuals)" in raised(TraceError, ckad.grad(bare), 1.0)
    bare.defvjp(lambda x: (x, None), lambda res, ct: ct)
    assert "tuple" in raised(DifferentiationError, ckad.grad(bare), 1.0)
    bare.defvjp(lambda x: (x * 2, None), lambda res, ct: (ct * 2.01,))
    with pytest.raises(GradientCheckError):
        ckad.testing.check_grads(bare, (1.0,))


def test_one_within_another():
    @ckad.custom_jvp
    def outer(x):
        return softplus(x) * root(x)

    @outer.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        moved = root(x) * t / (1 + np.exp(-x)) + softplus(x) * t / (2 * root(x))
        return outer(x), moved

    ckad.testing.check_grads(lambda x: outer(outer(x)), (2.0,), order=2, rtol=1e-5)


def test_a_rule_that_reads_what_changes():
    factor = [2.0]
    f = ckad.custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda p, t: (f(*p), factor[0] * t[0]))
    gradient = ckad.grad(lambda x: f(x))
    assert gradient(1.0) == 2.0
    factor[0] = 3.0
    assert gradient(1.0) == 3.0


def test_float32_and_empty_arrays():
    x = X.astype(np.float32)
    gradient = ckad.grad(lambda x: np.sum(softplus(x)))(x)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, 1 / (1 + np.exp(-X)), rtol=1e-6)
    assert ckad.grad(lambda x: np.sum(softplus(x)))(np.ones((0, 2))).shape == (0, 2)


def test_checkpoint_is_a_hint():
    def step(x):
        return np.sin(x) * x

    assert ckad.checkpoint(step) is step
    assert ckad.checkpoint(policy=None)(step) is step

    @ckad.checkpoint
    def decorated(x):
        return step(x)

    def run(x):
        for _ in range(4):
            x = ckad.checkpoint(step, prevent_cse=False)(x) + decorated(x)
        return np.sum(x)

    ckad.testing.check_grads(run, (X,))
